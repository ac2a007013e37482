//! A store of made-up messages: words with the frequencies of a language, vectors in clusters.

use std::{collections::BinaryHeap, ops::ControlFlow};

use amplifier_session_core::{
    Result, Scope,
    model::{ContentType, Role, Timestamp},
    search::SessionFilter,
};
use amplifier_session_index::{MessageRow, Rows, SessionOfRow, StoreRevision, VectorRow};

pub(crate) const DIMENSIONS: usize = 256;
/// Messages of one session; also of one write.
const SESSION: u64 = 50;
const VOCABULARY: usize = 60_000;
const CLUSTERS: usize = 500;

/// Numbers that look random and are the same every time.
pub(crate) struct Random(pub u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// At least 0, less than 1.
    pub(crate) fn part(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.part() * bound as f64) as usize
    }
}

pub(crate) struct Corpus {
    words: Vec<String>,
    centres: Vec<Vec<f32>>,
    users: Vec<String>,
    lines: Vec<String>,
    /// For each vector the number of its message.
    of_message: Vec<u64>,
    vectors: Vec<f32>,
    random: Random,
}

impl Corpus {
    /// Messages of one user.
    pub(crate) fn new(messages: u64) -> Self {
        Self::of_users(messages, vec!["ana".to_owned()])
    }

    /// Messages of ten users, the first the busiest by far.
    pub(crate) fn of_ten_users(messages: u64) -> Self {
        Self::of_users(messages, (0..10).map(|number| format!("user-{number}")).collect())
    }

    fn of_users(messages: u64, users: Vec<String>) -> Self {
        let mut random = Random(88_172_645_463_325_252);
        let words = (0..VOCABULARY).map(word).collect();
        let centres =
            (0..CLUSTERS).map(|_| unit((0..DIMENSIONS).map(|_| normal(&mut random)).collect())).collect();
        let mut corpus = Self {
            words,
            centres,
            users,
            lines: Vec::new(),
            of_message: Vec::new(),
            vectors: Vec::new(),
            random,
        };
        corpus.grow(messages);
        corpus
    }

    /// Adds messages.
    pub(crate) fn grow(&mut self, messages: u64) {
        let mut random = Random(self.random.next() | 1);
        for _ in 0..messages {
            // Lengths spread as those of real messages: many short ones, few long ones, 1.5 KB on average.
            let length = (150.0 * (1.0 * normal(&mut random)).exp()).clamp(3.0, 6_000.0) as usize;
            let text = self.text(&mut random, length, 0);
            self.lines.push(format!(r#"{{"role":"assistant","content":"{text}"}}"#));
            for _ in 0..1 + usize::from(random.part() < 0.45) {
                self.of_message.push(self.lines.len() as u64 - 1);
                let vector = self.vector(&mut random);
                self.vectors.extend(vector);
            }
        }
    }

    fn text(&self, random: &mut Random, words: usize, least_rank: usize) -> String {
        let mut text = String::with_capacity(words * 8);
        for _ in 0..words {
            // The word of rank r occurs with a frequency of about 1/r.
            let rank = (VOCABULARY as f64).powf(random.part()) as usize - 1;
            text.push_str(&self.words[rank.max(least_rank).min(VOCABULARY - 1)]);
            text.push(' ');
        }
        text.pop();
        text
    }

    /// Words to search for, none of the most frequent.
    pub(crate) fn query(&self, random: &mut Random, words: usize) -> String {
        let skewed =
            |random: &mut Random| 30 + ((VOCABULARY as f64).powf(0.25 + 0.6 * random.part()) as usize);
        (0..words).map(|_| self.words[skewed(random)].as_str()).collect::<Vec<_>>().join(" ")
    }

    /// A vector near to one of the centres.
    pub(crate) fn vector(&self, random: &mut Random) -> Vec<f32> {
        let centre = &self.centres[random.below(CLUSTERS)];
        unit(centre.iter().map(|x| x + normal(random) as f32 * 0.05).collect())
    }

    pub(crate) fn bytes(&self) -> usize {
        self.lines.iter().map(String::len).sum()
    }

    pub(crate) fn vectors(&self) -> usize {
        self.of_message.len()
    }

    /// The keys of the nearest vectors, found by comparing all.
    pub(crate) fn nearest(&self, query: &[f32], limit: usize) -> Vec<u64> {
        let mut nearest = BinaryHeap::new();
        for (key, vector) in self.vectors.chunks_exact(DIMENSIONS).enumerate() {
            let distance = (1e9 - 1e9 * f64::from(product(vector, query))) as u64;
            if nearest.len() < limit {
                nearest.push((distance, key as u64));
            } else if nearest.peek().is_some_and(|(worst, _)| *worst > distance) {
                nearest.pop();
                nearest.push((distance, key as u64));
            }
        }
        nearest.into_sorted_vec().into_iter().map(|(_, key)| key).collect()
    }

    pub(crate) fn rows(&self) -> CorpusRows<'_> {
        CorpusRows(self)
    }

    fn user(&self, message: u64) -> &str {
        // Squares make the first users the busy ones.
        let session = message / SESSION;
        let part = (session.wrapping_mul(2_654_435_761) % 1_000) as f64 / 1_000.0;
        &self.users[(part * part * self.users.len() as f64) as usize]
    }

    fn session_of_row<'a>(&'a self, message: u64, session: &'a str) -> SessionOfRow<'a> {
        SessionOfRow { key: message / SESSION, user: self.user(message), project: "shop", session }
    }
}

#[multiversion::multiversion(targets = "simd")]
fn product(a: &[f32], b: &[f32]) -> f32 {
    let mut sums = [0.0; 16];
    for (a, b) in a.as_chunks::<16>().0.iter().zip(b.as_chunks::<16>().0) {
        for lane in 0..16 {
            sums[lane] += a[lane] * b[lane];
        }
    }
    sums.iter().sum()
}

fn normal(random: &mut Random) -> f64 {
    (0..12).map(|_| random.part()).sum::<f64>() - 6.0
}

fn unit<T: Into<f64> + Copy>(vector: Vec<T>) -> Vec<f32> {
    let length = vector.iter().map(|x| (*x).into() * (*x).into()).sum::<f64>().sqrt();
    vector.into_iter().map(|x| (x.into() / length) as f32).collect()
}

/// A word that can be spoken, another one for each number.
fn word(mut number: usize) -> String {
    const SYLLABLES: [&str; 40] = [
        "ba", "ke", "lo", "mi", "nu", "pa", "re", "so", "ti", "vu", "da", "fe", "go", "hi", "ju", "ka", "le",
        "mo", "ni", "pu", "ra", "se", "to", "vi", "zu", "bra", "cle", "dro", "fli", "gru", "pla", "tre",
        "sko", "sti", "spu", "nda", "rke", "lto", "mpi", "xu",
    ];
    let mut word = String::from(SYLLABLES[number % SYLLABLES.len()]);
    while number >= SYLLABLES.len() {
        number /= SYLLABLES.len();
        word.push_str(SYLLABLES[number % SYLLABLES.len()]);
    }
    word
}

/// One state of the corpus: messages and vectors have their number as key.
pub(crate) struct CorpusRows<'a>(&'a Corpus);

fn revision(message: u64) -> u64 {
    message / SESSION + 1
}

impl Rows for CorpusRows<'_> {
    fn store_revision(&mut self) -> Result<StoreRevision> {
        let revision = revision(self.0.lines.len() as u64 - 1);
        Ok(StoreRevision { store: [7; 16], revision, nonce: revision })
    }

    fn nonce(&mut self, revision: u64) -> Result<Option<u64>> {
        Ok(Some(revision))
    }

    fn messages_after(
        &mut self,
        after: u64,
        each: &mut dyn FnMut(MessageRow<'_>) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        for (key, line) in (0..).zip(&self.0.lines).skip((after * SESSION) as usize) {
            let session = format!("session-{}", key / SESSION);
            let row = MessageRow {
                key,
                revision: revision(key),
                session: self.0.session_of_row(key, &session),
                role: Role::Assistant,
                ts: Timestamp::from_micros(key as i64),
                raw: line.as_bytes().into(),
            };
            if each(row)?.is_break() {
                break;
            }
        }
        Ok(())
    }

    fn vectors_after(
        &mut self,
        turns: bool,
        after: u64,
        each: &mut dyn FnMut(VectorRow<'_>) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let first = self.0.of_message.partition_point(|message| revision(*message) <= after);
        let vectors = self.0.vectors.chunks_exact(DIMENSIONS);
        for ((key, message), vector) in (0..).zip(&self.0.of_message).zip(vectors).skip(first) {
            let session = format!("session-{}", message / SESSION);
            let row = VectorRow {
                key,
                revision: revision(*message),
                session: self.0.session_of_row(*message, &session),
                role: if turns { Role::User } else { Role::Assistant },
                content_type: if turns { ContentType::UserQuery } else { ContentType::AssistantResponse },
                ts: Timestamp::from_micros(*message as i64),
                generation: 0,
                vector,
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

    /// A viewer may see the sessions of their own, and one in fifty of the others.
    fn session_keys(&mut self, scope: &Scope, _: &SessionFilter) -> Result<Vec<u64>> {
        let sessions = 0..(self.0.lines.len() as u64).div_ceil(SESSION);
        let admitted = |session: &u64| match scope {
            Scope::User(user) => user.as_str() == self.0.user(session * SESSION),
            Scope::Visible(viewer) => {
                session.is_multiple_of(50) || viewer.user_id.as_str() == self.0.user(session * SESSION)
            }
            _ => true,
        };
        Ok(sessions.filter(admitted).collect())
    }

    /// Each vector is one of a text and one of a turn.
    fn messages_of_vectors(&mut self, _: &[u64]) -> Result<Vec<(u64, u64)>> {
        unimplemented!("no query has tools")
    }

    fn vectors(
        &mut self,
        _: bool,
        keys: &[u64],
        each: &mut dyn FnMut(u64, &[f32]) -> Result<()>,
    ) -> Result<()> {
        for key in keys {
            let start = *key as usize * DIMENSIONS;
            each(*key, &self.0.vectors[start..start + DIMENSIONS])?;
        }
        Ok(())
    }
}
