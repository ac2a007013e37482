//! Queries with functions that the emulator does not support, in exactly the forms that are sent.

use serde_json::{Value, json};

/// Functions that are never sent, or only in one form.
const GUARDED: [&str; 7] = [
    "VECTORDISTANCE",
    "FULLTEXTCONTAINSANY",
    "FULLTEXTCONTAINSALL",
    "FULLTEXTCONTAINS",
    "FULLTEXTSCORE",
    "RRF(",
    "ORDER BY RANK",
];

/// A query that the emulator cannot answer.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Special {
    /// The nearest vectors.
    Vectors(VectorQuery),
    /// Texts that contain any of some terms.
    Texts(TextQuery),
}

/// The nearest vectors, nearest first.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct VectorQuery {
    pub(super) top: usize,
    /// The selected properties.
    pub(super) columns: Vec<String>,
    /// The name of the parameter that has the vector.
    pub(super) vector: String,
    /// The text after `WHERE`.
    pub(super) conditions: String,
}

/// Texts that contain any of some terms.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct TextQuery {
    pub(super) top: usize,
    /// The query without the function.
    before: String,
    /// The names of the parameters that have the terms.
    terms: Vec<String>,
    after: String,
}

/// Parses a query that the emulator cannot answer; `None` if the emulator can.
///
/// # Errors
///
/// The reason, if a query with one of these functions has none of the forms that are sent.
pub(super) fn special(text: &str) -> Result<Option<Special>, String> {
    let upper = text.to_ascii_uppercase();
    if !GUARDED.iter().any(|guarded| upper.contains(guarded)) {
        return Ok(None);
    }
    let vectors = VectorQuery::asked(text).or_else(|| VectorQuery::rewritten(text)).map(Special::Vectors);
    let found = vectors.or_else(|| TextQuery::read(text).map(Special::Texts));
    found.map(Some).ok_or_else(|| format!("no query that this account answers: {text}"))
}

fn is_plain(text: &str) -> bool {
    let upper = text.to_ascii_uppercase();
    !GUARDED.iter().any(|guarded| upper.contains(guarded)) && !upper.contains(" ORDER BY ")
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// The number after `SELECT TOP`, and the text after it.
fn top(text: &str) -> Option<(usize, &str)> {
    let (number, rest) = text.strip_prefix("SELECT TOP ")?.split_once(' ')?;
    Some((number.parse().ok()?, rest))
}

impl VectorQuery {
    fn distance(&self) -> String {
        format!("VectorDistance(c.vector, {})", self.vector)
    }

    /// Parses a query except for its columns.
    fn frame(text: &str) -> Option<(Self, &str)> {
        let (top, rest) = top(text)?;
        let (select, rest) = rest.split_once(" FROM c WHERE ")?;
        let (conditions, order) = rest.rsplit_once(" ORDER BY ")?;
        let vector = order.strip_prefix("VectorDistance(c.vector, ")?.strip_suffix(')')?;
        if !is_plain(conditions) || !vector.strip_prefix('@').is_some_and(is_name) {
            return None;
        }
        let conditions = conditions.to_owned();
        Some((Self { top, columns: Vec::new(), vector: vector.to_owned(), conditions }, select))
    }

    /// Parses the form that clients send: `SELECT TOP n c.a, …, VectorDistance(…) AS similarity FROM c WHERE … ORDER BY
    /// …`.
    fn asked(text: &str) -> Option<Self> {
        let (mut query, select) = Self::frame(text)?;
        let columns = select.strip_suffix(&format!(", {} AS similarity", query.distance()))?;
        let columns =
            columns.split(", ").map(|column| column.strip_prefix("c.").filter(|name| is_name(name)));
        query.columns = columns.map(|name| name.map(str::to_owned)).collect::<Option<_>>()?;
        Some(query)
    }

    /// Parses the form that the query plan sends to partitions.
    fn rewritten(text: &str) -> Option<Self> {
        let (mut query, select) = Self::frame(text)?;
        let prefix = format!("c._rid, [{{\"item\": {}}}] AS orderByItems, {{", query.distance());
        let columns = select.strip_prefix(&prefix)?.strip_suffix("} AS payload")?;
        let columns = columns.strip_suffix(&format!(", \"similarity\": {}", query.distance()))?;
        let column = |column: &str| {
            let (name, value) = column.strip_prefix('"')?.split_once("\": c.")?;
            (name == value && is_name(name)).then(|| name.to_owned())
        };
        query.columns = columns.split(", ").map(column).collect::<Option<_>>()?;
        Some(query)
    }

    /// The query for a partition: it selects the ordering value and the result.
    fn rewrite(&self) -> String {
        let distance = self.distance();
        let columns: Vec<String> =
            self.columns.iter().map(|column| format!("\"{column}\": c.{column}")).collect();
        format!(
            "SELECT TOP {} c._rid, [{{\"item\": {distance}}}] AS orderByItems, {{{}, \"similarity\": {distance}}} AS \
             payload FROM c WHERE {} ORDER BY {distance}",
            self.top,
            columns.join(", "),
            self.conditions
        )
    }

    /// The query for all vectors that are candidates.
    pub(super) fn candidates(&self) -> String {
        format!("SELECT * FROM c WHERE {}", self.conditions)
    }
}

impl TextQuery {
    fn read(text: &str) -> Option<Self> {
        let (top, _) = top(text)?;
        let (before, rest) = text.split_once("FullTextContainsAny(c.terms, ")?;
        let (terms, after) = rest.split_once(')')?;
        let terms: Vec<String> = terms.split(", ").map(str::to_owned).collect();
        let names = terms.iter().all(|term| term.strip_prefix('@').is_some_and(is_name));
        let plain = is_plain(before) && is_plain(after) && before.contains(" FROM c WHERE ");
        (names && plain).then(|| Self { top, before: before.to_owned(), terms, after: after.to_owned() })
    }

    /// The same query with `CONTAINS`, which finds a term by the spaces around it. Also changes the parameters.
    pub(super) fn with_contains(&self, parameters: &mut [Value]) -> String {
        for parameter in parameters {
            let is_term = |name: &str| self.terms.iter().any(|term| term == name);
            if parameter.get("name").and_then(Value::as_str).is_some_and(is_term)
                && let Some(Value::String(term)) = parameter.get_mut("value")
            {
                *term = format!(" {term} ");
            }
        }
        let each: Vec<String> = self.terms.iter().map(|term| format!("CONTAINS(c.terms, {term})")).collect();
        format!("{}({}){}", self.before, each.join(" OR "), self.after)
    }
}

impl Special {
    /// The plan for the SDK: it queries each range and keeps the best of all results.
    pub(super) fn plan(&self) -> Value {
        let info = match self {
            Self::Vectors(query) => json!({
                "distinctType": "None",
                "top": query.top,
                // The highest similarity is the nearest.
                "orderBy": ["Descending"],
                "orderByExpressions": [query.distance()],
                "rewrittenQuery": query.rewrite(),
                "hasSelectValue": false,
                "hasNonStreamingOrderBy": true,
            }),
            Self::Texts(query) => json!({
                "distinctType": "None",
                "top": query.top,
                "rewrittenQuery": "",
                "hasSelectValue": false,
                "hasNonStreamingOrderBy": false,
            }),
        };
        let range = json!({"min": "", "max": "FF", "isMinInclusive": true, "isMaxInclusive": false});
        json!({"partitionedQueryExecutionInfoVersion": 2, "queryInfo": info, "queryRanges": [range]})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VECTORS: &str = "SELECT TOP 20 c.sequence, c.vector, VectorDistance(c.vector, @p4) AS similarity FROM c WHERE \
                           c.type = 'transcript_vector' AND c.role = @p2 ORDER BY VectorDistance(c.vector, @p4)";
    const TEXTS: &str =
        "SELECT TOP 100 * FROM c WHERE c.type = 'transcript_text' AND FullTextContainsAny(c.terms, @p0, @p1)";

    #[test]
    fn queries_that_the_emulator_supports_are_forwarded() {
        assert_eq!(special("SELECT * FROM c WHERE CONTAINS(c.terms, @p0)"), Ok(None));
    }

    #[test]
    fn vector_queries_are_parsed_in_both_forms() {
        let Ok(Some(Special::Vectors(query))) = special(VECTORS) else { panic!("{:?}", special(VECTORS)) };
        assert_eq!((query.top, query.vector.as_str()), (20, "@p4"));
        assert_eq!(query.columns, ["sequence", "vector"]);
        assert_eq!(query.conditions, "c.type = 'transcript_vector' AND c.role = @p2");
        assert_eq!(special(&query.rewrite()), Ok(Some(Special::Vectors(query))));
    }

    #[test]
    fn terms_are_found_by_the_spaces_around_them() {
        let Ok(Some(Special::Texts(query))) = special(TEXTS) else { panic!("{:?}", special(TEXTS)) };
        let mut parameters =
            [json!({"name": "@p0", "value": "run"}), json!({"name": "@p2", "value": "other"})];
        assert_eq!(
            query.with_contains(&mut parameters),
            "SELECT TOP 100 * FROM c WHERE c.type = 'transcript_text' AND (CONTAINS(c.terms, @p0) OR \
             CONTAINS(c.terms, @p1))"
        );
        assert_eq!(parameters[0]["value"], " run ");
        assert_eq!(parameters[1]["value"], "other");
    }

    #[test]
    fn any_other_query_with_these_functions_is_refused() {
        let refused = [
            "SELECT TOP 5 * FROM c ORDER BY RANK FullTextScore(c.terms, 'a')",
            "SELECT TOP 5 * FROM c ORDER BY RANK RRF(FullTextScore(c.terms, 'a'), VectorDistance(c.vector, @v))",
            "SELECT c.id FROM c WHERE c.type = 'a' ORDER BY VectorDistance(c.vector, @v)",
            "SELECT TOP 5 c.id FROM c WHERE VectorDistance(c.vector, @v) > 0.5",
            "SELECT TOP 5 * FROM c WHERE FullTextContainsAll(c.terms, @a)",
            "SELECT TOP 5 * FROM c WHERE fulltextcontains(c.terms, @a)",
            "SELECT TOP 5 * FROM c WHERE FullTextContainsAny(c.raw, @a)",
            &VECTORS.replace("@p4) AS", "@p3) AS"),
            &VECTORS.replace(
                "ORDER BY VectorDistance(c.vector, @p4)",
                "ORDER BY VectorDistance(c.vector, @p4) DESC",
            ),
            &TEXTS.replace("@p1)", "@p1) ORDER BY RANK FullTextScore(c.terms, @p0)"),
        ];
        for text in refused {
            assert!(special(text).is_err(), "{text}");
        }
    }
}
