//! The suite lists every promise: each public function of the conformance modules. Those about all users have a store of
//! their own.

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

#[test]
fn promises_about_all_users_have_a_store_of_their_own() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/conformance");
    let list = fs::read_to_string(folder.join("mod.rs")).unwrap();
    let (_, groups) = list.split_once("            meta: [").unwrap();
    for group in fs::read_dir(folder).unwrap() {
        let path = group.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        let Some((_, promises)) = groups.split_once(&format!("            {name}: [")) else { continue };
        let (shared, _) = promises.split_once(']').unwrap();
        let source = fs::read_to_string(&path).unwrap();
        for promise in shared.split([',', '\n']).map(str::trim).filter(|name| !name.is_empty()) {
            let (_, body) = source.split_once(&format!("pub async fn {promise}(")).unwrap();
            let (body, _) = body.split_once("\n}\n").unwrap();
            let is_about_all = body.contains("Everyone") || body.contains("Viewer");
            assert!(!is_about_all, "{name}: {promise} has to stand after the `+`");
        }
    }
}
