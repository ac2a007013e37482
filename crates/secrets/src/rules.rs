//! Reads files of rules in the format of gitleaks (<https://github.com/gitleaks/gitleaks#configuration>).
//!
//! There are these differences:
//!
//! - A rule applies to all texts, even if gitleaks applies it only to certain files. Rules and exceptions that are only
//!   about paths are ignored.
//! - Most rules require a quote, a space, a semicolon or an end of line after a secret. In conversations, a comma, a
//!   bracket, a full stop or the backslash of escaped JSON may follow, too. So any character may follow that can't be
//!   part of a token. For `generic-api-key`, only a backslash or `&` is added, because otherwise many names in source
//!   code would match.
//! - `hashicorp-tf-password` is ignored: values are found by their names in all files, see `assignments.rs`.

use std::sync::OnceLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use serde::Deserialize;

use super::{
    GENERIC, SecretRules,
    pattern::Pattern,
    rule::{Allowlist, Rule, Target},
};

/// What most gitleaks rules require after a secret.
const END: &str = r#"(?:[\x60'"\s;]|\\[nr]|$)"#;
const WIDER_END: &str = r"(?:[^\w+/=-]|$)";
const WIDER_END_OF_GENERIC: &str = r#"(?:[\x60'"\s;\\&]|$)"#;

/// A rule for passwords in Terraform files, which matches any quoted word.
const REPLACED: &str = "hashicorp-tf-password";

/// Parts of the expressions of rules that find any value near a name.
const NEAR_A_NAME: &str = r"[\w.-]{0,50}?";
/// Rules for values that only what is around them makes secrets.
const WITHOUT_FORM: [&str; 4] =
    ["curl-auth-header", "curl-auth-user", "kubernetes-secret-yaml", "nuget-config-password"];

#[derive(Deserialize)]
struct RuleFile {
    allowlist: Option<AllowlistEntry>,
    rules: Vec<RuleEntry>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RuleEntry {
    id: String,
    regex: Option<String>,
    secret_group: Option<usize>,
    entropy: Option<f64>,
    /// What the secret is, in our own rules: `form`, `password` or `context`.
    finds: Option<String>,
    #[serde(default)]
    keywords: Vec<String>,
    #[serde(default)]
    allowlists: Vec<AllowlistEntry>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AllowlistEntry {
    /// `AND` if all kinds of conditions must hold. Default: any of them.
    condition: Option<String>,
    regex_target: Option<String>,
    #[serde(default)]
    regexes: Vec<String>,
    #[serde(default)]
    stopwords: Vec<String>,
}

impl SecretRules {
    /// Reads the rules of all `files`. Global exceptions of one file also apply to the rules of the other files.
    pub(super) fn parse(files: &[&str]) -> Result<Self, String> {
        let mut rules = Vec::new();
        let mut keywords = Vec::new();
        let mut owners = Vec::new();
        let mut allowlist = None;
        for file in files {
            let file: RuleFile = toml::from_str(file).map_err(|error| error.message().to_owned())?;
            allowlist = allowlist.or(file.allowlist.and_then(AllowlistEntry::build));
            for mut entry in file.rules {
                let words = std::mem::take(&mut entry.keywords);
                if entry.id == REPLACED {
                    continue;
                }
                let Some(rule) = entry.build() else { continue };
                owners.extend(words.iter().map(|_| rules.len()));
                keywords.extend(words);
                rules.push(rule);
            }
        }
        let keywords = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .kind(Some(AhoCorasickKind::DFA))
            .build(keywords)
            .map_err(|error| error.to_string())?;
        Ok(Self { rules, keywords, owners, allowlist })
    }
}

impl RuleEntry {
    fn build(self) -> Option<Rule> {
        let end = if self.id == GENERIC { WIDER_END_OF_GENERIC } else { WIDER_END };
        let source = self.regex?.replace(END, end);
        let has_form = match &self.finds {
            Some(finds) => finds == "form",
            None => !source.contains(NEAR_A_NAME) && !WITHOUT_FORM.contains(&self.id.as_str()),
        };
        let is_password = self.finds.is_some_and(|finds| finds == "password")
            || matches!(
                self.id.as_str(),
                "curl-auth-user" | "kubernetes-secret-yaml" | "nuget-config-password"
            );
        Some(Rule {
            has_form,
            is_password,
            id: self.id,
            pattern: Pattern::new(&source),
            secret_group: self.secret_group,
            entropy: self.entropy,
            allowlists: self.allowlists.into_iter().filter_map(AllowlistEntry::build).collect(),
        })
    }
}

impl AllowlistEntry {
    /// The exceptions, unless they depend on paths.
    fn build(self) -> Option<Allowlist> {
        let needs_all = self.condition.is_some_and(|condition| condition.eq_ignore_ascii_case("and"));
        if needs_all || (self.regexes.is_empty() && self.stopwords.is_empty()) {
            return None;
        }
        Some(Allowlist {
            target: match self.regex_target.as_deref() {
                Some("match") => Target::Match,
                Some("line") => Target::Line,
                _ => Target::Secret,
            },
            patterns: self.regexes.iter().map(|source| Pattern::new(source)).collect(),
            stopwords: self.stopwords,
            stopword_finder: OnceLock::new(),
        })
    }
}
