//! The parameters of routes.

/// A parameter of a route, in its path, its query or its JSON body.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RouteParameter {
    pub(crate) name: &'static str,
    /// The field of the request of the API.
    pub(crate) field: &'static str,
    pub(crate) kind: ParameterKind,
    pub(crate) about: &'static str,
    pub(crate) is_required: bool,
}

/// The values of a parameter.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ParameterKind {
    /// Text.
    Text,
    /// A list of texts: in a query, the parameter is repeated.
    Texts,
    /// A number from 0 to this.
    Count(u64),
    /// Numbers with decimals, which only a JSON body can have.
    Numbers,
    /// A number with decimals.
    Decimal,
    /// `true` or `false`; in a query, its name alone means `true`.
    Flag,
    /// One of these texts.
    Choice(&'static [&'static str]),
    /// Several of these texts: in a query, repeated or with commas.
    Choices(&'static [&'static str]),
    /// A value that only a JSON body can have, of this type of the API; with `[]`, a list of them.
    Json(&'static str),
}

impl RouteParameter {
    const fn new(name: &'static str, kind: ParameterKind, about: &'static str) -> Self {
        Self { name, field: name, kind, about, is_required: false }
    }

    pub(crate) const fn text(name: &'static str, about: &'static str) -> Self {
        Self::new(name, ParameterKind::Text, about)
    }

    pub(crate) const fn texts(name: &'static str, about: &'static str) -> Self {
        Self::new(name, ParameterKind::Texts, about)
    }

    pub(crate) const fn count(name: &'static str, most: u64, about: &'static str) -> Self {
        Self::new(name, ParameterKind::Count(most), about)
    }

    pub(crate) const fn number(name: &'static str, about: &'static str) -> Self {
        Self::new(name, ParameterKind::Count(u32::MAX as u64), about)
    }

    pub(crate) const fn decimal(name: &'static str, about: &'static str) -> Self {
        Self::new(name, ParameterKind::Decimal, about)
    }

    pub(crate) const fn numbers(name: &'static str, about: &'static str) -> Self {
        Self::new(name, ParameterKind::Numbers, about)
    }

    pub(crate) const fn flag(name: &'static str, about: &'static str) -> Self {
        Self::new(name, ParameterKind::Flag, about)
    }

    pub(crate) const fn choice(
        name: &'static str,
        values: &'static [&'static str],
        about: &'static str,
    ) -> Self {
        Self::new(name, ParameterKind::Choice(values), about)
    }

    pub(crate) const fn choices(
        name: &'static str,
        values: &'static [&'static str],
        about: &'static str,
    ) -> Self {
        Self::new(name, ParameterKind::Choices(values), about)
    }

    pub(crate) const fn json(name: &'static str, type_name: &'static str, about: &'static str) -> Self {
        Self::new(name, ParameterKind::Json(type_name), about)
    }

    /// Sets the field of the request, if it has another name.
    pub(crate) const fn of(self, field: &'static str) -> Self {
        Self { field, ..self }
    }

    pub(crate) const fn required(self) -> Self {
        Self { is_required: true, ..self }
    }
}
