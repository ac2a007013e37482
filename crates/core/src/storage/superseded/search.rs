//! Searches superseded messages for words. They are not in the search index, so all of them in scope are read.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{SupersededLine, unpack_all};
use crate::{
    Result, Scope,
    backend::SupersededQuery,
    content::MessageLine,
    model::{LineKind, ProjectSlug, SessionKey, SupersededReason, TimeSource, Timestamp},
    search::{Checks, EvidenceFinder, SearchOptions, SearchResult, SearchSource},
    storage::store::SupersededHistory,
    text::{
        Analyzer, QueryWords, Snippets,
        bm25::{CollectionStatistics, DocumentTerms, count_terms, score},
    },
};

/// A superseded message that a search found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct SupersededMatch {
    /// The message, with its former sequence. Another message may have that sequence now.
    #[serde(flatten)]
    pub result: SearchResult,
    /// Always true.
    pub superseded: bool,
    /// When it was superseded.
    pub superseded_at: Timestamp,
    /// Why it was superseded.
    pub reason: SupersededReason,
}

impl SupersededHistory<'_> {
    /// Searches the superseded messages in `scope` for words, best first. Scores are BM25 scores among the superseded
    /// messages. Ignores the mode and the options for semantic search.
    ///
    /// Reads all superseded messages of the matching sessions.
    ///
    /// # Errors
    ///
    /// `Validation` if an option is out of range; errors of the backend.
    pub async fn search_superseded(
        self,
        scope: &Scope,
        options: &SearchOptions,
    ) -> Result<Vec<SupersededMatch>> {
        options.validate()?;
        let words = QueryWords::of(&options.query);
        let query = SupersededQuery::new(scope.clone())
            .with_filter(options.filter.sessions.clone())
            .with_kind(LineKind::Message);
        let sessions = self.superseded_sessions(&query).await?.into_iter();
        let projects = sessions.map(|of| (SessionKey::new(of.user_id, of.session_id), of.project)).collect();
        let mut scan = Scan::new(options, &words, projects);
        unpack_all(self.store, query, |line| scan.search(&line)).await?;
        Ok(scan.best())
    }
}

struct Scan<'a> {
    options: &'a SearchOptions,
    words: &'a QueryWords,
    checks: Checks,
    projects: BTreeMap<SessionKey, ProjectSlug>,
    analyzer: Analyzer,
    evidence: EvidenceFinder<'a>,
    snippets: Snippets<'a>,
    statistics: CollectionStatistics,
    found: Vec<(DocumentTerms, SupersededMatch)>,
}

impl<'a> Scan<'a> {
    fn new(
        options: &'a SearchOptions,
        words: &'a QueryWords,
        projects: BTreeMap<SessionKey, ProjectSlug>,
    ) -> Self {
        Self {
            options,
            words,
            checks: Checks::new(&options.conditions, options.content_types),
            projects,
            analyzer: Analyzer::looking_for(words.terms()),
            evidence: EvidenceFinder::new(words),
            snippets: Snippets::new(words.terms()),
            statistics: CollectionStatistics::new(words.terms().len()),
            found: Vec::new(),
        }
    }

    fn search(&mut self, line: &SupersededLine) {
        let Ok(read) = MessageLine::parse(&line.raw, line.session_id.source()) else { return };
        let role = read.role();
        let key = SessionKey::new(line.user_id.clone(), line.session_id.clone());
        let Some(project) = self.projects.get(&key) else { return };
        let meets = self.options.conditions.is_empty() || self.checks.admit(&read);
        for text in read.texts() {
            let document = count_terms(&mut self.analyzer, &text.text, self.words.terms());
            // How rare a word is depends on all texts, also on those that the filter excludes.
            self.statistics.add_document(&document);
            let is_wanted = self.options.content_types.contains(text.content_type)
                && self.options.filter.admits_message(role, line.ts);
            let is_found =
                document.matches() || self.options.conditions.exact.is_some() || self.options.lists_newest();
            if !is_wanted || !is_found || !meets {
                continue;
            }
            let evidence = self.evidence.find(&text.text);
            let snippet = self.snippets.cut(&text.text, text.content_type, None, self.options.snippet_chars);
            let ts_source = line.ts_source.unwrap_or(TimeSource::File);
            let result = SearchResult {
                user_id: line.user_id.clone(),
                session_id: line.session_id.clone(),
                project: project.clone(),
                sequence: line.sequence,
                turn: line.turn,
                role,
                ts: line.ts,
                ts_estimated: ts_source.is_estimated(),
                ts_source,
                content_type: text.content_type,
                span: (0, u32::try_from(text.text.chars().count()).unwrap_or(u32::MAX)),
                score: 0.0,
                match_kind: evidence.kind(),
                words: evidence.typed(self.words),
                by_title: false,
                source: SearchSource::FullText,
                text_score: None,
                similarity: None,
                snippet: snippet.text,
                highlights: snippet.highlights,
                also_in: Vec::new(),
                explanation: None,
                message: self.options.with_message.then(|| serde_json::Value::Object(read.fields().clone())),
            };
            let (superseded_at, reason) = (line.superseded_at, line.reason);
            self.found.push((document, SupersededMatch { result, superseded: true, superseded_at, reason }));
        }
    }

    /// The best matches, each with the best text of its message.
    fn best(self) -> Vec<SupersededMatch> {
        let Self { options, statistics, found, .. } = self;
        let scored = found.into_iter().map(|(document, found)| (score(&statistics, &document), found));
        let mut scored: Vec<(f32, SupersededMatch)> = scored.collect();
        scored.sort_by(|(a, _), (b, _)| b.total_cmp(a));
        let highest = scored.first().map_or(1.0, |(score, _)| *score).max(f32::MIN_POSITIVE);
        let mut matches: Vec<SupersededMatch> = Vec::new();
        for (score, mut found) in scored {
            let is_same = |other: &SupersededMatch| {
                (&other.result.user_id, &other.result.session_id, other.result.sequence, other.superseded_at)
                    == (
                        &found.result.user_id,
                        &found.result.session_id,
                        found.result.sequence,
                        found.superseded_at,
                    )
            };
            if matches.iter().any(is_same) {
                continue;
            }
            found.result.score = score / highest;
            found.result.text_score = Some(score);
            matches.push(found);
            if matches.len() == options.limit {
                break;
            }
        }
        matches
    }
}
