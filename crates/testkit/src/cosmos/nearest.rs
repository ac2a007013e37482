//! `VectorDistance` for vectors compared by cosine: a similarity, so higher is nearer.

use serde_json::{Map, Value, json};

use super::queries::VectorQuery;

/// The nearest of `documents`, in the form that the query plan requires.
///
/// # Errors
///
/// The reason, if a vector cannot be compared.
pub(super) fn rows(query: &VectorQuery, vector: &Value, documents: Vec<Value>) -> Result<Vec<Value>, String> {
    let wanted = numbers(vector).ok_or_else(|| format!("{} is no vector", query.vector))?;
    let mut rows = Vec::with_capacity(documents.len());
    for document in documents {
        // Like the service, this skips documents without a vector.
        let Some(own) = document.get("vector").and_then(numbers) else { continue };
        if own.len() != wanted.len() {
            return Err(format!("a vector of {} dimensions among those of {}", own.len(), wanted.len()));
        }
        rows.push((cosine(&wanted, &own), document));
    }
    rows.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    rows.truncate(query.top);
    Ok(rows.into_iter().map(|(similarity, document)| row(query, similarity, &document)).collect())
}

fn row(query: &VectorQuery, similarity: f64, document: &Value) -> Value {
    let columns = query.columns.iter();
    let mut payload: Map<String, Value> =
        columns.filter_map(|column| Some((column.clone(), document.get(column)?.clone()))).collect();
    payload.insert("similarity".to_owned(), json!(similarity));
    json!({
        "_rid": document.get("_rid"),
        "orderByItems": [{"item": similarity}],
        "payload": payload,
    })
}

fn numbers(value: &Value) -> Option<Vec<f64>> {
    value.as_array()?.iter().map(Value::as_f64).collect()
}

fn cosine(a: &[f64], b: &[f64]) -> f64 {
    let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f64>();
    let lengths = (product(a, a) * product(b, b)).sqrt();
    if lengths > 0.0 { product(a, b) / lengths } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(top: usize) -> VectorQuery {
        let columns = vec!["id".to_owned()];
        VectorQuery { top, columns, vector: "@v".to_owned(), conditions: "true".to_owned() }
    }

    #[test]
    fn the_nearest_come_first_and_documents_without_vectors_are_skipped() {
        let documents = vec![
            json!({"id": "across", "vector": [0.0, 1.0], "_rid": "r"}),
            json!({"id": "none"}),
            json!({"id": "same", "vector": [2.0, 0.0], "_rid": "r"}),
            json!({"id": "against", "vector": [-1.0, 0.0], "_rid": "r"}),
        ];
        let rows = rows(&query(2), &json!([1.0, 0.0]), documents).unwrap();
        let found: Vec<_> = rows.iter().map(|row| row["payload"].clone()).collect();
        assert_eq!(
            found,
            [json!({"id": "same", "similarity": 1.0}), json!({"id": "across", "similarity": 0.0})]
        );
        assert_eq!(rows[0]["orderByItems"], json!([{"item": 1.0}]));
    }

    #[test]
    fn vectors_of_other_lengths_are_refused() {
        assert!(rows(&query(1), &json!([1.0]), vec![json!({"vector": [1.0, 2.0]})]).is_err());
        assert!(rows(&query(1), &json!("no"), vec![]).is_err());
    }
}
