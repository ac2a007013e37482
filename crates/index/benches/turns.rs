//! The nearest turns, beside the nearest messages: as many vectors of both, with 256 dimensions, in one index.
//!
//! `cargo bench -p amplifier-session-index --bench turns` prints the medians of both, searched in turn, and their
//! ratio; with and without a filter. `TURN_BENCH_VECTORS` sets other numbers of vectors.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a benchmark tells what it found and stops where it can't go on"
)]

use std::{
    ops::ControlFlow,
    time::{Duration, Instant},
};

use amplifier_session_core::{
    Result, Scope,
    backend::VectorQuery,
    model::{ContentType, ContentTypes, Role, Timestamp, UserId},
    search::{SearchFilter, SessionFilter},
};
use amplifier_session_index::{
    MessageRow, Rows, SearchIndex, SessionOfRow, StoreRevision, VectorRow, WhenBusy,
};

const DIMENSIONS: usize = 256;
const ROUNDS: usize = 60;
const SESSION: u64 = 50;
/// Rows of one write.
const WRITE: u64 = 1_000;

/// Numbers that look random and are the same every time.
fn random(seed: u64) -> u64 {
    let mut bits = seed.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    bits = (bits ^ bits >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ bits >> 31
}

/// A vector of unit length near to one of 500 centres.
fn vector(key: u64) -> Vec<f32> {
    let number = |seed: u64| (random(seed) >> 40) as f32 / (1_u64 << 24) as f32 - 0.5;
    let centre = random(key) % 500;
    let numbers = (0..DIMENSIONS as u64).map(|n| number(centre << 32 | n) + 0.4 * number(key << 20 | n));
    let vector: Vec<f32> = numbers.collect();
    let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
    vector.into_iter().map(|x| x / length).collect()
}

/// So many vectors of messages and of turns, made when they are read.
struct VectorsOfBoth(u64);

impl Rows for VectorsOfBoth {
    fn store_revision(&mut self) -> Result<StoreRevision> {
        let revision = self.0 / WRITE + 1;
        Ok(StoreRevision { store: [1; 16], revision, nonce: revision })
    }

    fn nonce(&mut self, revision: u64) -> Result<Option<u64>> {
        Ok(Some(revision))
    }

    fn messages_after(
        &mut self,
        _: u64,
        _: &mut dyn FnMut(MessageRow<'_>) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        Ok(())
    }

    fn vectors_after(
        &mut self,
        turns: bool,
        revision: u64,
        each: &mut dyn FnMut(VectorRow<'_>) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        for key in revision * WRITE..self.0 {
            let session = format!("session-{}", key / SESSION);
            let user = if (key / SESSION).is_multiple_of(10) { "ben" } else { "ana" };
            let row = VectorRow {
                key,
                revision: key / WRITE + 1,
                session: SessionOfRow { key: key / SESSION, user, project: "shop", session: &session },
                role: if turns || key.is_multiple_of(2) { Role::User } else { Role::Assistant },
                content_type: ContentType::UserQuery,
                ts: Timestamp::from_micros(key as i64),
                generation: 0,
                vector: &vector(key),
            };
            if each(row)?.is_break() {
                break;
            }
        }
        Ok(())
    }

    fn removed_messages_after(&mut self, _: u64) -> Result<Vec<u64>> {
        Ok(Vec::new())
    }

    fn removed_vectors_after(&mut self, _: bool, _: u64) -> Result<Vec<u64>> {
        Ok(Vec::new())
    }

    fn session_keys(&mut self, _: &Scope, _: &SessionFilter) -> Result<Vec<u64>> {
        Ok((0..self.0.div_ceil(SESSION)).collect())
    }

    fn messages_of_vectors(&mut self, _: &[u64]) -> Result<Vec<(u64, u64)>> {
        unimplemented!("no query has tools")
    }

    fn vectors(
        &mut self,
        _: bool,
        keys: &[u64],
        each: &mut dyn FnMut(u64, &[f32]) -> Result<()>,
    ) -> Result<()> {
        keys.iter().try_for_each(|key| each(*key, &vector(*key)))
    }
}

/// The medians of both searches, one after the other in each round.
fn medians(index: &SearchIndex, count: u64, query: &VectorQuery) -> [Duration; 2] {
    let mut times = [Vec::new(), Vec::new()];
    for round in 0..ROUNDS + 5 {
        let vector = vector(u64::MAX / 2 - round as u64);
        for (turns, times) in [false, true].into_iter().zip(&mut times) {
            let query = VectorQuery { turns, vector: vector.clone(), ..query.clone() };
            let start = Instant::now();
            let answer = index.vector_candidates(&mut VectorsOfBoth(count), &query).unwrap();
            let time = start.elapsed();
            assert!(answer.notice.is_none() && answer.hits.len() == query.limit.min(count as usize));
            // The first rounds read the files.
            times.extend((round >= 5).then_some(time));
        }
    }
    times.map(|mut times: Vec<Duration>| {
        times.sort_unstable();
        times[times.len() / 2]
    })
}

fn compare(count: u64) {
    let folder = tempfile::tempdir().unwrap();
    let index = SearchIndex::open(folder.path());
    index.fold(&mut VectorsOfBoth(count), WhenBusy::Skip).unwrap();
    let all = VectorQuery {
        scope: Scope::Everyone,
        filter: SearchFilter::default(),
        content_types: ContentTypes::embedded(),
        tools: Vec::new(),
        turns: false,
        vector: Vec::new(),
        generation: 0,
        limit: 50,
    };
    let of_ben = VectorQuery { scope: Scope::User(UserId::new("ben").unwrap()), ..all.clone() };
    for (name, query) in [("all", all), ("a user with a tenth", of_ben)] {
        let [messages, turns] = medians(&index, count, &query);
        let ratio = turns.as_secs_f64() / messages.as_secs_f64();
        println!("{count} vectors, {name}: messages {messages:.0?}, turns {turns:.0?}, ratio {ratio:.2}");
    }
}

fn main() {
    // As a test, it is listed first.
    let arguments: Vec<String> = std::env::args().collect();
    if arguments.iter().any(|argument| argument == "--list") {
        if !arguments.iter().any(|argument| argument == "--ignored") {
            println!("turns: test");
        }
        return;
    }
    let counts = std::env::var("TURN_BENCH_VECTORS").unwrap_or_else(|_| "1000 100000 1000000".to_owned());
    counts.split_whitespace().for_each(|count| compare(count.parse().unwrap()));
}
