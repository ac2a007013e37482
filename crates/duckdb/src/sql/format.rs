//! The text form of each type's values, as SQL expressions, so that DuckDB converts them.

/// The form in which values are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum SqlForm {
    /// As text: times in ISO 8601, bytes as text if they are UTF-8 and otherwise as hexadecimal digits.
    #[default]
    Text,
    /// As JSON: numbers, booleans, lists and objects as such, everything else as a string in the form of
    /// [`SqlForm::Text`].
    Json,
}

/// Whether values of the type are numbers, which tables align to the right.
pub(crate) fn is_number(sql_type: &str) -> bool {
    const NUMBERS: [&str; 12] = [
        "TINYINT",
        "SMALLINT",
        "INTEGER",
        "BIGINT",
        "HUGEINT",
        "UTINYINT",
        "USMALLINT",
        "UINTEGER",
        "UBIGINT",
        "UHUGEINT",
        "FLOAT",
        "DOUBLE",
    ];
    NUMBERS.contains(&sql_type) || sql_type.starts_with("DECIMAL(") && sql_type.ends_with(')')
}

/// The expression for the column `column` of type `sql_type`.
pub(crate) fn expression(column: &str, sql_type: &str, form: SqlForm) -> String {
    let text = text(column, sql_type);
    if form == SqlForm::Text {
        return text;
    }
    let is_float = matches!(sql_type, "FLOAT" | "DOUBLE");
    match sql_type {
        // JSON has no NaN and no infinity.
        _ if is_float => format!("CASE WHEN isfinite({column}) THEN {text} ELSE to_json({text}) END"),
        "BOOLEAN" => text,
        "BIGNUM" | "BIT" => format!("CAST(to_json({text}) AS VARCHAR)"),
        _ if is_number(sql_type) => text,
        _ if is_nested(sql_type) => format!("CAST(to_json({column}) AS VARCHAR)"),
        "JSON" => text,
        _ => format!("CAST(to_json({text}) AS VARCHAR)"),
    }
}

fn text(column: &str, sql_type: &str) -> String {
    const ISO: &str = "'%Y-%m-%dT%H:%M:%S.%fZ'";
    match sql_type {
        "VARCHAR" => column.to_owned(),
        // Costs: without trailing zeros.
        "DECIMAL(38,24)" => format!("rtrim(rtrim(CAST({column} AS VARCHAR), '0'), '.')"),
        "BLOB" => format!("coalesce(TRY(decode({column})), lower(hex({column})))"),
        // By its number, because formatting a time with a time zone requires an extension.
        "TIMESTAMP WITH TIME ZONE" => {
            format!(
                "CASE WHEN isfinite({column}) THEN strftime(make_timestamp(epoch_us({column})), {ISO})
                 ELSE CAST({column} AS VARCHAR) END"
            )
        }
        _ if sql_type.starts_with("TIMESTAMP") && !is_nested(sql_type) => {
            format!("strftime(CAST({column} AS TIMESTAMP), {ISO})")
        }
        _ => format!("CAST({column} AS VARCHAR)"),
    }
}

fn is_nested(sql_type: &str) -> bool {
    sql_type.ends_with(']') || ["STRUCT(", "MAP(", "UNION("].iter().any(|begin| sql_type.starts_with(begin))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_distinguished_from_lookalikes() {
        assert!(is_number("HUGEINT") && is_number("DECIMAL(38,2)"));
        assert!(!is_number("BIGINT[]") && !is_number("DECIMAL(3,1)[]") && !is_number("VARCHAR"));
    }
}
