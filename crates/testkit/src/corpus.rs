//! Generated sessions of realistic shape, the same for the same seed, for reproducible benchmarks.
//!
//! Word frequencies are those of a natural language (the word of rank *r* occurs about 1/*r* as often as the first
//! one). The vocabulary has some hundred common words and identifiers made of them. Messages have realistic lengths and
//! roles: questions, thinking with answers and tool calls, and tool results.

use std::{fs, io, path::Path};

use serde_json::{Value, json};

use crate::{folder::SessionFolder, random::Random};

/// Common words, the most frequent first.
const COMMON: &str = "the to of a in is and that for it with this on be not as are if was or from by an we can \
    you have has but there when which file test error value code function should return use data line type run \
    one new call list name time path build check user only all then first after message result set add request \
    change string server read write key config default module class state find open query table number response \
    client process version update field branch commit cache index index failed missing timeout retry queue worker \
    thread lock memory buffer stream socket connection database schema column record session token login access \
    permission deploy release package import export parse format encode decode compile link load store save delete \
    create insert select filter sort merge split join match pattern regex option argument parameter variable \
    constant loop branch condition exception handler callback event listener trigger signal schedule interval \
    deadline budget limit quota metric counter gauge histogram trace span log level debug warning info panic crash \
    restart recover backup restore snapshot migrate upgrade rollback transaction isolation consistency replica \
    shard partition leader follower election consensus network latency throughput bandwidth packet header payload \
    checksum signature certificate secret password encrypt hash salt cookie browser page button form input output \
    render layout style color image font screen window menu icon click scroll swipe mobile desktop platform kernel \
    driver device disk folder directory symlink mount volume container image registry cluster node pod service \
    endpoint gateway proxy balancer route domain address port host zone region account invoice payment refund \
    charge customer order basket product price discount tax currency report chart dashboard alert incident ticket \
    review comment feedback decision plan goal step task milestone owner team member role policy rule exception";

/// The number of different words: the common ones, then identifiers.
const VOCABULARY: usize = 60_000;

const TOOLS: [&str; 6] = ["bash", "read_file", "edit_file", "grep", "web_fetch", "task"];
const PROJECTS: [&str; 5] = [
    "-home-dana-payments",
    "-home-dana-search",
    "-home-dana-website",
    "-home-dana-infra",
    "-home-dana-notes",
];
const MODELS: [(&str, &str); 3] =
    [("anthropic", "model-large"), ("anthropic", "model-small"), ("openai", "model-other")];

/// A generator of sessions.
#[derive(Debug, Clone)]
pub struct Corpus {
    common: Vec<&'static str>,
    random: Random,
}

/// The size of a corpus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CorpusSize {
    /// The number of sessions.
    pub sessions: usize,
    /// The number of messages of each session.
    pub messages: usize,
    /// The number of events of each session.
    pub events: usize,
}

impl Corpus {
    /// Creates a generator from a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { common: COMMON.split_whitespace().collect(), random: Random(seed) }
    }

    /// Writes session folders below `root` in the layout of Amplifier.
    ///
    /// # Errors
    ///
    /// If a file cannot be written.
    pub fn write(&mut self, root: &Path, size: CorpusSize) -> io::Result<()> {
        for number in 0..size.sessions {
            let project = *self.random.one(&PROJECTS);
            let id = self.id();
            let folder = root.join("projects").join(project).join("sessions").join(&id);
            let begun = 1_767_225_600 + (number as i64) * 3_600;
            let mut metadata = json!({"session_id": id, "name": self.text(4), "bundle": "bundle:foundation",
                "created": begun, "tags": [self.word()]});
            metadata["model"] = json!(self.random.one(&MODELS).1);
            SessionFolder::create(folder)?
                .metadata(&metadata.to_string())?
                .file("transcript.jsonl", self.transcript(size.messages, begun))?
                .file("events.jsonl", self.events(size.events, begun))?;
        }
        Ok(())
    }

    /// Writes `queries.json` with the lists `keyword` (queries of one to three words) and `semantic` (queries of nine
    /// words).
    ///
    /// # Errors
    ///
    /// If the file cannot be written.
    pub fn write_queries(&mut self, root: &Path) -> io::Result<()> {
        let keyword: Vec<String> = (0..50).map(|number| self.query(1 + number % 3)).collect();
        let semantic: Vec<String> = (0..50).map(|_| self.query(9)).collect();
        let queries = json!({"keyword": keyword, "semantic": semantic});
        fs::write(root.join("queries.json"), format!("{queries:#}\n"))
    }

    /// A query of `words` words, without the most frequent ones.
    pub fn query(&mut self, words: usize) -> String {
        let rare = |random: &mut Random| (VOCABULARY as f64).powf(0.35 + 0.6 * random.part()) as usize;
        let words: Vec<String> = (0..words)
            .map(|_| {
                let rank = rare(&mut self.random);
                self.word_of(rank)
            })
            .collect();
        words.join(" ")
    }

    /// Text of `words` words.
    pub fn text(&mut self, words: usize) -> String {
        let mut text = String::with_capacity(words * 7);
        for position in 1..=words {
            let word = self.word();
            text.push_str(&word);
            match position {
                last if last == words => {}
                stop if stop % 13 == 0 => text.push_str(". "),
                _ => text.push(' '),
            }
        }
        text
    }

    /// The lines of a transcript.
    pub fn transcript(&mut self, messages: usize, begun: i64) -> String {
        let mut lines = String::new();
        let mut before = "assistant";
        for number in 0..messages {
            let (role, content) = match before {
                "assistant" => ("user", self.question()),
                "call" => ("tool", self.tool_output()),
                _ => ("assistant", self.answer()),
            };
            let calls = role == "assistant" && number + 1 < messages && self.random.part() < 0.6;
            before = if calls { "call" } else { role };
            let ts = begun + (number as i64) * 20;
            let line = json!({"role": role, "content": content, "timestamp": ts});
            lines.push_str(&line.to_string());
            lines.push('\n');
        }
        lines
    }

    /// The lines of an event log. Most are small; one in a thousand has a payload of at least 50 KB.
    pub fn events(&mut self, events: usize, begun: i64) -> String {
        const TYPES: [&str; 6] =
            ["llm:request", "llm:response", "tool:pre", "tool:post", "prompt:submit", "hooks:log"];
        let mut lines = String::new();
        for number in 0..events {
            let event_type = *self.random.one(&TYPES);
            let words = match self.random.below(1_000) {
                0 => self.random.length(20_000.0, 0.5, 90_000),
                _ => self.random.length(130.0, 1.0, 5_000),
            };
            let (provider, model) = *self.random.one(&MODELS);
            let mut data = json!({"payload": self.text(words)});
            if event_type.starts_with("tool:") {
                data["tool_name"] = json!(self.random.one(&TOOLS));
            }
            if event_type.starts_with("llm:") {
                let (input, output) = (self.random.below(90_000), self.random.below(4_000));
                data["provider"] = json!(provider);
                data["model"] = json!(model);
                data["usage"] = json!({"input_tokens": input, "output_tokens": output});
            }
            let level = if self.random.below(30) == 0 { "ERROR" } else { "INFO" };
            let ts = begun + (number as i64) * 10;
            let line = json!({"ts": ts, "lvl": level, "event": event_type, "data": data});
            lines.push_str(&line.to_string());
            lines.push('\n');
        }
        lines
    }

    fn question(&mut self) -> Value {
        let words = self.random.length(25.0, 0.8, 400);
        json!(format!("{}?", self.text(words)))
    }

    fn answer(&mut self) -> Value {
        let words = self.random.length(90.0, 0.9, 4_000);
        let answer = json!({"type": "text", "text": self.text(words)});
        if self.random.part() < 0.2 {
            return json!([answer]);
        }
        let words = self.random.length(70.0, 0.7, 1_000);
        json!([{"type": "thinking", "thinking": self.text(words)}, answer])
    }

    fn tool_output(&mut self) -> Value {
        let words = self.random.length(150.0, 1.2, 5_000);
        json!(self.text(words))
    }

    fn word(&mut self) -> String {
        let rank = (VOCABULARY as f64).powf(self.random.part()) as usize - 1;
        self.word_of(rank)
    }

    fn word_of(&self, rank: usize) -> String {
        let common = |number: usize| self.common[number % self.common.len()];
        match rank.checked_sub(self.common.len()) {
            None => common(rank).to_owned(),
            // Every identifier is a different pair of words.
            Some(beyond) => {
                format!("{}_{}", common(beyond * 7 + 40), common(beyond / self.common.len() + beyond))
            }
        }
    }

    fn id(&mut self) -> String {
        let (high, low) = (self.random.bits(), self.random.bits());
        let (a, b, c) = (high >> 32, (high >> 16) & 0xffff, high & 0xfff);
        format!("{a:08x}-{b:04x}-4{c:03x}-{:04x}-{:012x}", 0x8000 | (low >> 50), low & 0xffff_ffff_ffff)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_text() {
        let text = |seed| Corpus::new(seed).transcript(20, 0) + &Corpus::new(seed).events(20, 0);
        assert_eq!(text(1), text(1));
        assert_ne!(text(1), text(2));
    }

    #[test]
    fn lines_are_json_and_have_every_role() {
        let mut corpus = Corpus::new(3);
        let transcript = corpus.transcript(100, 0);
        let roles: Vec<String> = transcript
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap()["role"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(roles.len(), 100);
        for role in ["user", "assistant", "tool"] {
            assert!(roles.iter().filter(|one| *one == role).count() > 10, "{role}");
        }
        assert!(corpus.events(50, 0).lines().all(|line| serde_json::from_str::<Value>(line).is_ok()));
        assert_eq!(corpus.id().len(), 36);
    }
}
