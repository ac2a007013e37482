//! The backends: the list from which URLs, messages, `--help` and `config show` are made.

use amplifier_session_core::backend::BackendFactory;

/// The backends of this build.
pub static BACKENDS: &[&BackendFactory] = &[
    &amplifier_session_sqlite::FACTORY,
    #[cfg(feature = "duckdb-system")]
    &amplifier_session_duckdb::FACTORY,
    #[cfg(feature = "cosmos")]
    &amplifier_session_cosmos::FACTORY,
    #[cfg(feature = "postgres")]
    &amplifier_session_postgres::FACTORY,
];

/// A backend that this build does not include.
pub(crate) struct MissingBackend {
    pub(crate) name: &'static str,
    pub(crate) schemes: &'static [&'static str],
    /// The Cargo feature that adds it; `None` if there is no such backend yet.
    pub(crate) feature: Option<&'static str>,
    /// Its settings, which a configuration file may still contain: keys, and tables ending in a dot.
    pub(crate) settings: &'static [&'static str],
}

/// The backends that this build does not include.
pub(crate) static LEFT_OUT: &[MissingBackend] = &[
    #[cfg(not(feature = "duckdb-system"))]
    MissingBackend {
        name: "DuckDB",
        schemes: &["duckdb"],
        feature: Some("duckdb"),
        settings: &["hnsw", "extension_directory"],
    },
    #[cfg(not(feature = "cosmos"))]
    MissingBackend {
        name: "Azure Cosmos DB",
        schemes: &["cosmos"],
        feature: Some("cosmos"),
        settings: &["cosmos."],
    },
    #[cfg(not(feature = "postgres"))]
    MissingBackend {
        name: "PostgreSQL",
        schemes: &["postgres", "postgresql"],
        feature: Some("postgres"),
        settings: &["postgres."],
    },
];

impl MissingBackend {
    /// Whether it has a setting with this name.
    pub(crate) fn has_setting(&self, key: &str) -> bool {
        self.settings.iter().any(|own| *own == key || own.ends_with('.') && key.starts_with(own))
    }
}

/// The forms of store URLs that this build accepts, for messages.
pub(crate) fn forms() -> String {
    BACKENDS.iter().map(|backend| backend.form).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_scheme_has_one_backend() {
        let built_in = BACKENDS.iter().flat_map(|backend| backend.schemes);
        let schemes: Vec<_> = built_in.chain(LEFT_OUT.iter().flat_map(|left_out| left_out.schemes)).collect();
        assert_eq!(schemes.iter().collect::<HashSet<_>>().len(), schemes.len(), "{schemes:?}");
        assert!(["sqlite", "duckdb", "cosmos", "postgres"].iter().all(|scheme| schemes.contains(&scheme)));
    }

    #[test]
    fn a_backend_describes_itself() {
        for backend in BACKENDS {
            assert!(backend.form.starts_with(&format!("{}:", backend.schemes[0])), "{backend:?}");
            let names: HashSet<_> = backend.settings.iter().map(|setting| setting.name()).collect();
            assert_eq!(
                names.len(),
                backend.settings.len(),
                "{}: names in a URL are not unique",
                backend.name
            );
            let help = backend.settings.iter().map(|setting| setting.help).chain([backend.help]);
            for help in help {
                assert!(!help.is_empty() && !help.ends_with('.'), "{}: {help:?}", backend.name);
            }
        }
    }
}
