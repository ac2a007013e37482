use super::*;

#[test]
fn smoke() {
    let settings = ChunkSettings::for_limits(64, 64);
    let text = "Some words here. ".repeat(100);
    let chunks = chunk(ContentType::UserQuery, &text, &settings);
    assert!(chunks.len() > 2);
}
