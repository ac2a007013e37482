//! URLs of stores.

use std::path::Path;

use amplifier_session_core::ErrorKind;
use amplifier_session_storage::StoreUrl;

use crate::Target;

pub(super) const TARGET: Target = Target {
    name: "store_url",
    seeds: || {
        let urls = [
            "sqlite:~/.amplifier/sessions.sqlite",
            "sqlite:///var/lib/s.db",
            "sqlite:a?b=c?d",
            "duckdb:",
            "duckdb:x.duckdb?hnsw=true&extension_directory=/a%26b",
            "cosmos://host:443/db?vector_index=flat",
            "cosmos://localhost?key=secret",
            "postgres://h/db",
        ];
        urls.map(|url| url.as_bytes().to_vec()).to_vec()
    },
    tokens: &[
        "sqlite:",
        "duckdb:",
        "cosmos://",
        "//",
        "~/",
        "~",
        "?",
        "&",
        "=",
        "%",
        "%2",
        "%26",
        "%ff",
        "hnsw=on",
        ":",
    ],
    caught: &[],
    check,
};

/// A printed URL opens the same store.
fn check(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let parse = |text: &str| StoreUrl::parse(text, Some(Path::new("/home/ana")));
    let url = match parse(&text) {
        Ok(url) => url,
        Err(error) => {
            assert!(matches!(error.kind(), ErrorKind::Validation | ErrorKind::Unsupported), "{error}");
            return;
        }
    };
    let printed = url.to_string();
    let again = parse(&printed).unwrap();
    assert_eq!(again.to_string(), printed);
    assert_eq!((again.backend().name, again.file()), (url.backend().name, url.file()), "{printed}");
}
