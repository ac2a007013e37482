//! The suite lists every promise: each public function of the conformance modules.

use std::{fs, path::Path};

#[test]
fn every_promise_is_in_the_suite() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/conformance");
    let list = fs::read_to_string(folder.join("mod.rs")).unwrap();
    let mut promises = 0;
    for file in fs::read_dir(folder).unwrap() {
        let source = fs::read_to_string(file.unwrap().path()).unwrap();
        let name = |line: &str| {
            line.strip_prefix("pub async fn ")?.strip_suffix("(store: Store) {").map(str::to_owned)
        };
        let names = source.lines().filter_map(name);
        for name in names {
            promises += 1;
            assert!(list.contains(&format!(" {name},\n")), "{name} is not in the list");
        }
    }
    assert!(promises > 90, "{promises}");
}
