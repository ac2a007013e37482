//! Text analysis: how text is cut into terms, scored and shown.
