//! Judges the best candidates by their texts: where the words of the query are, and whether people look for such a
//! message at all.

use std::collections::HashMap;

use super::reading::{ReadMessage, ReadMessages};
use crate::{
    KnownPart, Result,
    backend::TextCandidate,
    content::{ExtractedText, is_automatic, is_continuation, is_real, without_noise},
    model::{ContentType, MessageRef, Role, SessionKey},
    search::{Evidence, EvidenceFinder, Judgements, Lowered, RankedText, coverage},
    storage::store::TranscriptSearch,
    text::{QueryWords, bm25::CollectionStatistics},
};

/// A question of fewer words is a search for words, which every message may contain.
const LEAST_WORDS: usize = 3;

/// How many messages after a question may contain its answer.
const ANSWER_WITHIN: u32 = 8;

/// At most this many repeated questions bring their answers along.
const ANSWERED: usize = 5;

/// The texts that match, judged.
pub(super) struct Judged {
    pub(super) texts: Vec<RankedText>,
    pub(super) judgements: Judgements,
    /// Whether a text that was read has all words of the query.
    pub(super) has_all_words: bool,
}

impl TranscriptSearch<'_> {
    /// Reads the messages `leading` and judges them. The other texts keep their BM25 scores.
    pub(super) async fn judge(
        self,
        mut texts: Vec<RankedText>,
        leading: Vec<MessageRef>,
        words: &QueryWords,
        statistics: &CollectionStatistics,
        reading: &mut ReadMessages,
    ) -> Result<Judged> {
        reading.read(self.store, leading.iter().cloned()).await?;
        let weights: Vec<f32> = (0..words.terms().len()).map(|term| statistics.idf(term)).collect();
        let mut finder = EvidenceFinder::new(words);
        let mut judgements = Judgements::default();
        let mut questions = Vec::new();
        for message_ref in &leading {
            let Some(read) = reading.get(message_ref) else { continue };
            if read.message.role == Role::User && is_continuation(read.line.fields()) {
                judgements.lowered.insert(message_ref.clone(), Lowered::Inserted);
            } else if is_unrelated(read) {
                judgements.unrelated.insert(message_ref.clone(), Lowered::Inserted);
            } else if is_noise(read, &found_in(&texts, message_ref), &mut finder) {
                judgements.unrelated.insert(message_ref.clone(), Lowered::Noise);
            } else if is_repeated(read, words, &mut finder) {
                questions.push(message_ref);
            }
        }
        let mut has_all_words = false;
        let mut said: HashMap<&SessionKey, Vec<bool>> = HashMap::new();
        for text in &mut texts {
            let TextCandidate { message_ref, content_type, score } = &text.candidate;
            if let Some(read) = reading.get(message_ref) {
                let evidence = finder.find(read.text(*content_type));
                text.score = evidence.score(*score, &weights);
                has_all_words |= evidence.has_all(words);
                let is_exact = evidence.is_exact();
                let counts = is_exact || is_conversation(*content_type);
                if counts && !judgements.unrelated.contains_key(message_ref) {
                    let said = said.entry(&message_ref.session).or_default();
                    said.resize(evidence.has.len(), false);
                    said.iter_mut().zip(&evidence.has).for_each(|(said, has)| *said |= has | is_exact);
                }
            }
        }
        judgements.covered =
            said.into_iter().map(|(session, said)| (session.clone(), coverage(&said, &weights))).collect();
        // After all texts are judged, because an answer gets the score of its question.
        for question in self.add_answers(&mut texts, questions, reading).await? {
            judgements.lowered.insert(question, Lowered::RepeatedQuestion);
        }
        Ok(Judged { texts, judgements, has_all_words })
    }

    /// Adds the answers to repeated questions: an answer need not contain a word of its question. Returns the
    /// questions that have one.
    async fn add_answers(
        self,
        texts: &mut Vec<RankedText>,
        questions: Vec<&MessageRef>,
        reading: &mut ReadMessages,
    ) -> Result<Vec<MessageRef>> {
        let mut answered = Vec::new();
        for question in questions.into_iter().take(ANSWERED) {
            let after = (1..=ANSWER_WITHIN).filter_map(|by| question.sequence.checked_add(by));
            let after: Vec<MessageRef> =
                after.map(|sequence| MessageRef::new(question.session.clone(), sequence)).collect();
            reading.read(self.store, after.iter().cloned()).await?;
            let Some(answer) = answer_among(&after, reading) else { continue };
            let of_question = texts.iter().find(|text| text.candidate.message_ref == *question);
            let Some(score) = of_question.map(|text| text.score) else { continue };
            answered.push(question.clone());
            let is_answer = |text: &&mut RankedText| {
                text.candidate.message_ref == answer
                    && text.candidate.content_type == ContentType::AssistantResponse
            };
            match texts.iter_mut().find(is_answer) {
                Some(text) => text.score = text.score.max(score),
                None => texts.push(RankedText {
                    candidate: TextCandidate {
                        message_ref: answer,
                        content_type: ContentType::AssistantResponse,
                        score: 0.0,
                    },
                    score,
                }),
            }
        }
        Ok(answered)
    }
}

fn is_conversation(content_type: ContentType) -> bool {
    matches!(content_type, ContentType::UserQuery | ContentType::AssistantResponse)
}

/// The last answer before the next question.
fn answer_among(after: &[MessageRef], reading: &ReadMessages) -> Option<MessageRef> {
    let read = after.iter().map_while(|message_ref| Some((message_ref, reading.get(message_ref)?)));
    let turn = read.take_while(|(_, read)| read.message.role != Role::User || !is_real(read.line.fields()));
    let is_answer = |read: &ReadMessage| {
        !is_automatic(read.line.fields()) && !read.text(ContentType::AssistantResponse).trim().is_empty()
    };
    let answers = turn.filter(|(_, read)| is_answer(read));
    answers.last().map(|(message_ref, _)| message_ref.clone())
}

/// Whether a program inserted the message, or it repeats what was found before.
fn is_unrelated(read: &ReadMessage) -> bool {
    if is_automatic(read.line.fields()) {
        return true;
    }
    let asked = || !read.text(ContentType::UserQuery).is_empty();
    match read.message.role {
        Role::User if asked() => !is_real(read.line.fields()),
        _ => {
            is_own_call(read.text(ContentType::ToolCall)) || is_own_output(read.text(ContentType::ToolOutput))
        }
    }
}

/// The content types of the texts of a message that match by words.
fn found_in(texts: &[RankedText], message_ref: &MessageRef) -> Vec<ContentType> {
    let of_message = texts.iter().filter(|text| text.candidate.message_ref == *message_ref);
    of_message.map(|text| text.candidate.content_type).collect()
}

/// Whether the words of the query are only in noise; without words, whether all texts of the message are noise.
fn is_noise(read: &ReadMessage, found: &[ContentType], finder: &mut EvidenceFinder<'_>) -> bool {
    let mut texts = read.texts.iter().filter(|text| found.is_empty() || found.contains(&text.content_type));
    let mut is_noise = |text: &ExtractedText| {
        let own = without_noise(&read.line, text.content_type, &text.text);
        if own.trim().is_empty() || own.len() == text.text.len() {
            return own.trim().is_empty();
        }
        let mut has_words = |text: &str| finder.find(text).has.contains(&true);
        has_words(&text.text) && !has_words(&own)
    };
    !read.texts.is_empty() && texts.all(&mut is_noise)
}

/// Whether a tool call runs our search.
fn is_own_call(text: &str) -> bool {
    text.contains("amplifier-sessions") && text.contains("search")
}

/// Whether a tool's output is that of our search, as JSON or as lines: score, session, message, ….
fn is_own_output(text: &str) -> bool {
    /// Fields of a result are within this many bytes of the beginning.
    const BEGINNING: usize = 2_000;
    let end = (0..=BEGINNING.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let beginning = text.part(..end);
    let has_fields = ["\"session_id\"", "\"content_type\"", "\"snippet\"", "\"results\""]
        .iter()
        .all(|field| beginning.contains(field));
    let mut fields = beginning.lines().next().unwrap_or_default().split('\t');
    let is_score =
        |field: &str| field.len() == 4 && field.parse::<f32>().is_ok_and(|x| (0.0..=1.0).contains(&x));
    has_fields || (fields.next().is_some_and(is_score) && fields.count() >= 6)
}

/// Whether a person asked in this message what the query asks: it has all of its words and few others.
fn is_repeated(read: &ReadMessage, words: &QueryWords, finder: &mut EvidenceFinder<'_>) -> bool {
    let asked = words.sequence().len();
    if read.message.role != Role::User || words.terms().len() < LEAST_WORDS {
        return false;
    }
    let Evidence { has, length, .. } = finder.find(read.text(ContentType::UserQuery));
    has.iter().all(|has| *has) && (length as usize) <= asked + asked / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_of_our_own_search_is_recognised() {
        let json = r#"{"mode":"hybrid","results":[{"user_id":"ana","session_id":"s","content_type":"user_query","snippet":"x"}]}"#;
        assert!(is_own_output(json));
        assert!(is_own_output("0.97\t7f3c9a52-0000\t4\t2026-01-01\tp\tuser_query\ttext\t7f3c9a52#4\n"));
        assert!(!is_own_output("0.97 seconds"));
        assert!(!is_own_output(r#"{"session_id": "s", "snippet": "x"}"#));
        assert!(!is_own_output(&"é".repeat(3_000)));
        assert!(is_own_call("bash: amplifier-sessions search 'flaky test' --json"));
        assert!(!is_own_call("bash: rg search"));
    }
}
