//! How long content rules and text analysis take: chunking and counting must stay linear, analysis fast.
//!
//! `cargo bench -p amplifier-session-core --bench content`; compare the throughput of 100 KB with that of 1 MB.

use std::hint::black_box;

use amplifier_session_core::{
    content::{ChunkSettings, MessageLine, chunk, tokens},
    model::{ContentType, RawJson, Role, SessionSource},
    text::{Analyzer, Snippets, bm25::count_terms, query_terms},
};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use serde_json::json;

const SIZES: [(&str, usize); 2] = [("100KB", 100_000), ("1MB", 1_000_000)];

/// Prose with the word frequencies of English, in paragraphs.
fn prose(bytes: usize) -> String {
    const WORDS: &str = "the of and to in that it is was for on with as are this be at by from have not or which one \
        session storage backend vector search message transcript embedding authentication token request response \
        failing tests because configuration running quickly database connection timeout retried after several \
        attempts however generally happened investigation nevertheless interesting characteristics relationships";
    let words: Vec<&str> = WORDS.split_whitespace().collect();
    let mut random = Random(7);
    let mut text = String::with_capacity(bytes + 64);
    while text.len() < bytes {
        for _ in 0..4 {
            for _ in 0..12 {
                // Squaring makes the first words the frequent ones.
                let at = random.below(1000) * random.below(1000) * words.len() / 1_000_000;
                text.push_str(words[at]);
                text.push(' ');
            }
            text.pop();
            text.push_str(". ");
        }
        text.push_str("\n\n");
    }
    text
}

/// One line of base64, as of an encoded file.
fn base64(bytes: usize) -> String {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut random = Random(7);
    (0..bytes).map(|_| char::from(DIGITS[random.below(DIGITS.len())])).collect()
}

/// Markdown with headings, lists and code.
fn markdown(bytes: usize) -> String {
    let paragraph = prose(600);
    let mut text = String::with_capacity(bytes + 4096);
    while text.len() < bytes {
        text.push_str("## A heading\n\n");
        text.push_str(&paragraph);
        text.push_str("- an item\n- another item, longer than the first\n\n```rust\n");
        text.push_str(&"    let value = compute(&input)?;\n".repeat(20));
        text.push_str("```\n\n");
    }
    text
}

/// Lines of a log.
fn log(bytes: usize) -> String {
    let line = |n: usize| format!("2026-01-05T10:{:02}:00Z INFO worker-{} took {n} ms\n", n % 60, n % 7);
    // A line has at least 40 bytes.
    let mut text: String = (0..bytes / 40).map(line).collect();
    text.truncate(bytes);
    text
}

/// A generator of its own, so that every run sees the same texts.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % limit as u64) as usize
    }
}

fn texts(bytes: usize) -> [(&'static str, ContentType, String); 6] {
    [
        ("prose", ContentType::UserQuery, prose(bytes)),
        ("markdown", ContentType::AssistantResponse, markdown(bytes)),
        ("log", ContentType::ToolOutput, log(bytes)),
        ("base64", ContentType::ToolOutput, base64(bytes)),
        ("one_letter", ContentType::AssistantResponse, "a".repeat(bytes)),
        ("chinese", ContentType::AssistantResponse, "会话存储把向量和文本放在一起。".repeat(bytes / 45)),
    ]
}

fn chunking(criterion: &mut Criterion) {
    black_box(tokens::count("loads the vocabulary"));
    let mut group = criterion.benchmark_group("chunk");
    group.sample_size(10);
    for (size, bytes) in SIZES {
        for (name, content_type, text) in texts(bytes) {
            group.throughput(Throughput::Bytes(text.len() as u64));
            group.bench_function(BenchmarkId::new(name, size), |bench| {
                bench.iter(|| chunk(content_type, black_box(&text), &ChunkSettings::default()));
            });
        }
    }
    group.finish();
}

fn counting(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("tokens");
    group.sample_size(10);
    for (name, _, text) in texts(1_000_000) {
        group.throughput(Throughput::Bytes(text.len() as u64));
        group.bench_function(name, |bench| bench.iter(|| tokens::count(black_box(&text))));
    }
    group.finish();
}

fn extraction(criterion: &mut Criterion) {
    let blocks: Vec<_> = (0..100)
        .map(|n| match n % 3 {
            0 => json!({"type": "thinking", "thinking": prose(1000), "signature": "c2ln"}),
            1 => json!({"type": "text", "text": prose(1000)}),
            _ => json!({"type": "tool_call", "id": "1", "name": "bash", "input": {"command": prose(1000)}}),
        })
        .collect();
    let line = json!({"role": "assistant", "content": blocks});
    let line =
        MessageLine::stored(&RawJson::new(line.to_string()), Role::Assistant, SessionSource::default());
    criterion.bench_function("extract/100_blocks", |bench| bench.iter(|| black_box(&line).texts()));
}

fn analysis(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("analysis");
    let mut accents = prose(1_000_000);
    accents = accents.replace("session", "séance").replace("database", "base de données");
    let cases = [
        ("prose", prose(1_000_000)),
        ("log", log(1_000_000)),
        ("base64", base64(1_000_000)),
        ("accents", accents),
        ("chinese", "会话存储把向量和文本放在一起。".repeat(22_000)),
    ];
    let mut analyzer = Analyzer::new();
    for (name, text) in cases {
        group.throughput(Throughput::Bytes(text.len() as u64));
        group.bench_function(name, |bench| {
            bench.iter(|| {
                let mut tokens = analyzer.tokens(black_box(&text));
                let mut bytes = 0;
                while tokens.advance() {
                    bytes += tokens.term().len();
                }
                bytes
            });
        });
    }
    group.finish();
}

fn matching(criterion: &mut Criterion) {
    let text = prose(1_000_000);
    let terms = query_terms("why did the database connection time out after several attempts");
    let mut group = criterion.benchmark_group("matching");
    group.throughput(Throughput::Bytes(text.len() as u64));
    let mut analyzer = Analyzer::new();
    group.bench_function("count_terms", |bench| {
        bench.iter(|| count_terms(&mut analyzer, black_box(&text), &terms))
    });
    group.bench_function("snippet", |bench| {
        bench.iter(|| Snippets::new(&terms).cut(black_box(&text), ContentType::ToolOutput, None, 200))
    });
    group.finish();
}

criterion_group!(benches, chunking, counting, extraction, analysis, matching);
criterion_main!(benches);
