//! How certain a finding is.
//!
//! A secret with a known form is certain. A value that only its name or its surroundings make a secret is likely if it
//! looks generated or like a password. Otherwise it is possible, or it is no finding at all: paths, code, emphasis,
//! templates, words and names of tests.

use amplifier_session_core::content::Certainty::{self, Certain, Likely, Possible};

use super::{
    match_context::MatchContext,
    names::{NameKind, words},
    rule::Rule,
    values::{
        is_digits, is_identifier, is_jumbled, is_key, is_password, is_strong, is_wordy, without_templates,
    },
};

/// The minimum length of a value that is likely because it looks generated, although its name is only a hint.
const GENERATED: usize = 16;

/// The beginning of the first line of every OpenSSH key, which contains nothing secret.
const OPENSSH: &str = "b3BlbnNzaC1rZXktdjE";

/// Parts of secrets that are examples, in lower case.
#[rustfmt::skip]
const EXAMPLES: &[&str] = &[
    "example", "xxxx", "redacted", "placeholder", "your_", "your-",
    // The user of the token that every introduction to JSON web tokens shows.
    "eyjzdwiioiixmjm0nty3odkw",
    // The keys of the emulators of Cosmos DB and of Azure storage.
    "c2y6ydjf5/r+ob0n8a7cgv30vrdjiwehlm", "eby8vdm02xnocqflquwjpllmetlcdxj1ouzft50usrz6",
];
/// Characters in their order, longest first.
const SEQUENCES: [&str; 8] = [
    "abcdefghijklmnopqrstuvwxyz",
    "1234567890",
    "0123456789",
    "12345678",
    "abcdefgh",
    "123456",
    "abcdef",
    "abcd",
];
/// The minimum number of other characters in a secret with such a sequence.
const BESIDES_SEQUENCES: usize = 12;

/// Words of passwords in examples and tests, longest first.
#[rustfmt::skip]
const EXAMPLE_WORDS: &[&str] = &[
    "placeholder", "anything", "password", "changeme", "incorrect", "postgres", "example", "correct",
    "invalid", "private", "another", "testing", "default", "secret", "dummy", "passwd", "sample", "access",
    "client", "master", "public", "letmein", "qwerty", "welcome", "pass", "admin", "valid", "wrong",
    "token", "guest", "value", "first", "second", "redis", "mysql", "local", "other", "test", "demo", "user",
    "fake", "mock", "root", "auth", "some", "your", "temp", "prod", "live", "key", "api", "foo", "bar", "baz",
    "abc", "xyz", "new", "old", "pwd", "dev", "the", "bad", "id", "my", "db", "sk", "pk",
];

/// Words of sentences that passphrases do not have.
#[rustfmt::skip]
const SENTENCE_WORDS: &[&str] = &[
    "the", "a", "an", "in", "on", "by", "you", "we", "it", "its", "as", "no", "all", "any", "use", "using",
    "via", "only", "after", "before", "into", "then", "than", "new", "each", "per", "but", "so", "i", "is",
    "are", "was", "be", "must", "your", "not", "for", "of", "with", "this", "if", "from", "when", "that",
    "to", "and", "or", "run", "add", "get", "set", "test", "tests",
];

/// The letters that often follow `a`, `b`, …: nine of ten pairs in the words of documentation and source code. In
/// generated values, four of ten pairs are among them.
#[rustfmt::skip]
const FOLLOWERS: [&str; 26] = [
    "bcdgilmnprstuvxy", "aceilorsu", "abcehiklmoprstu", "abcdeilorsuw", "abcdefgilmnoprstvwxy", "aefilors",
    "aeinrstu", "aeiort", "abcdefglmnoprstvz", "aeou", "aeios", "adeilopstuy", "abeimopsu",
    "acdefgilmnopstuv", "abcdfgilmnoprstuvw", "abcdefhiloprstuw", "u", "acdegilmnoprstuvy", "acehiklmoprstuyz",
    "acdefhilmoprstuy", "abcefilmnprst", "aeio", "aehinos", "aempt", "enops", "aeoz",
];

/// Folders at the root of a machine.
#[rustfmt::skip]
const ROOTS: &[&str] = &[
    "home", "users", "tmp", "var", "usr", "etc", "opt", "private", "root", "mnt", "srv", "app", "apps", "data",
    "dev", "proc", "run", "lib", "bin", "volumes", "workspace", "workspaces", "work", "src", "repo", "code",
    "media", "system", "library", "applications", "nix", "snap", "build", "builds", "project", "projects",
];

/// The certainty of a value that a rule's expression found; `None` if it is not a secret.
pub(super) fn of_rule(rule: &Rule, value: &str) -> Option<Certainty> {
    let value = value.trim_matches(['"', '\'']);
    if rule.id.starts_with("private-key") {
        return Some(if has_key_lines(value) { Certain } else { Possible });
    }
    if !rule.has_form {
        let kind = if rule.is_password { NameKind::Password } else { NameKind::Weak };
        return of_named(kind, MatchContext::Variable, true, value);
    }
    let has_prefix = !value.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    let is_named = value.matches(['-', '_']).count() > 2 && is_name(value);
    Some(if is_example(value) || is_named || !has_prefix { Possible } else { Certain })
}

/// The certainty of a password in a URL; `None` if it is not a secret.
pub(super) fn of_url(user: &str, password: &str, host: &str) -> Option<Certainty> {
    let is_here =
        ["localhost", "127.", "0.0.0.0", "[::1]", "host.docker"].iter().any(|own| host.starts_with(own));
    // Nothing but a password is at this place, so it may be a plain word.
    let is_ordinary = is_example(password)
        || password.chars().count() < 3
        || !is_strong(password)
            && (is_here || password == user || is_punctuated_words(password) && is_example(host));
    (!is_filled_in(password)).then_some(if is_ordinary { Possible } else { Likely })
}

/// The certainty of the value of a name; `None` if it is not a secret.
pub(super) fn of_named(
    kind: NameKind,
    place: MatchContext,
    is_quoted: bool,
    value: &str,
) -> Option<Certainty> {
    let value = value.trim();
    let bare = value.trim_end_matches([',', ';', '.', ':']);
    let is_code = is_call(bare) || (!is_quoted && (is_number(bare) || is_identifier(bare) && is_name(bare)));
    if is_path(value) || is_emphasis(value) || is_filled_in(value) || is_test(bare) || is_code {
        return None;
    }
    if value.contains(char::is_whitespace) {
        return of_words(kind, is_quoted, value);
    }
    if is_punctuated_words(bare) {
        let is_stated = is_quoted || place == MatchContext::Variable;
        let is_joined = bare.chars().all(|c| c.is_alphanumeric() || c == '-');
        return match kind {
            NameKind::Password if is_stated && is_joined => {
                Some(if is_passphrase(bare) { Likely } else { Possible })
            }
            _ => None,
        };
    }
    let is_unclear = if is_quoted {
        has_escapes(value)
    } else {
        is_abbreviation(bare) || value.find('(').is_some_and(|at| at > 0)
    };
    if is_example(value) || is_name(bare) || is_unclear {
        return Some(Possible);
    }
    let is_likely = match kind {
        NameKind::Password => is_strong(bare) || is_mixed(bare) || is_password(bare) || has_signs(bare),
        NameKind::Secret => is_strong(bare) || is_mixed(bare) || is_key(bare) || has_signs(bare),
        NameKind::Weak => {
            is_generated(bare) || (has_signs(bare) && bare.contains(|c: char| c.is_ascii_digit()))
        }
    };
    Some(if is_likely { Likely } else { Possible })
}

/// The certainty of a value with spaces.
fn of_words(kind: NameKind, is_quoted: bool, value: &str) -> Option<Certainty> {
    let is_code =
        value.len() > 40 && value.matches(['(', ')', '{', '}', '[', ']', ';', '=', '<', '>']).count() > 5;
    if kind == NameKind::Weak || is_code || value.contains(" --") || value.contains("%s") {
        return value.split_whitespace().any(is_generated).then_some(Possible);
    }
    let words = || value.split_whitespace().map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()));
    let is_phrase = words().all(|word| {
        word.chars().all(char::is_alphanumeric) && !SENTENCE_WORDS.contains(&word.to_lowercase().as_str())
    });
    let is_odd = value.split_whitespace().any(|word| is_jumbled(word) || is_strong(word));
    if is_quoted && is_phrase && (is_odd || (4..=8).contains(&words().count())) {
        return Some(Likely);
    }
    let is_certain_word = |word: &str| of_named(kind, MatchContext::Beside, false, word) == Some(Likely);
    value.split_whitespace().any(is_certain_word).then_some(if is_quoted { Likely } else { Possible })
}

/// Whether `value` is several words with hyphens that make no sentence: `purple-monkey-dishwasher-lamp`.
fn is_passphrase(value: &str) -> bool {
    let is_word = |word: &str| !SENTENCE_WORDS.contains(&word) && !EXAMPLE_WORDS.contains(&word);
    value.split('-').count() > 3 && value.split('-').all(|word| word.len() > 2 && is_word(word))
}

/// Whether `value` is a path: several names from a root, or from a folder that machines have.
fn is_path(value: &str) -> bool {
    let bytes = value.as_bytes();
    let is_drive = matches!(bytes, [letter, b':', b'\\' | b'/', ..] if letter.is_ascii_alphabetic());
    let is_relative = ["./", "../", "~/", "$HOME/", "@/"].iter().any(|start| value.starts_with(start));
    let Some(rest) = value.strip_prefix('/') else {
        return is_drive || is_relative || value == "~";
    };
    let mut parts = rest.split('/');
    let first = parts.next().unwrap_or_default();
    ROOTS.contains(&first.to_lowercase().as_str())
        || (rest.contains('/') && parts.all(is_wordy) && is_wordy(first))
}

/// Whether `value` is emphasized text, as in Markdown.
fn is_emphasis(value: &str) -> bool {
    let inner = value.trim_matches(['*', '_', '`', '.', ',', ':', '!', '?', ')']);
    let is_marked =
        value.starts_with("**") || value.starts_with("__") || value.starts_with('*') && value.ends_with('*');
    is_marked && !inner.is_empty() && (is_punctuated_words(inner) || inner.contains(' '))
}

/// Whether `value` contains a template and nothing else but words.
fn is_filled_in(value: &str) -> bool {
    let has_template = ["${", "{{", "#{", "<%", "$("].iter().any(|start| value.contains(start));
    let rest = without_templates(value);
    has_template && rest.len() < value.len() && (is_punctuated_words(&rest) || is_wordy(rest.trim()))
}

/// Whether `value` is the name of a test, as the tools of Go, Python and Java write it.
fn is_test(value: &str) -> bool {
    let begins = |start: &str| {
        value.strip_prefix(start).is_some_and(|rest| rest.starts_with(|c: char| c.is_uppercase() || c == '_'))
    };
    let end = value.find(['/', '[', '(', ':']).unwrap_or(value.len());
    let is_named = value.get(..end).is_some_and(is_identifier) && !is_generated(value);
    is_named && ["Test", "Benchmark", "Example", "Fuzz", "test"].iter().any(|start| begins(start))
        || value.contains("::test_")
}

/// Whether `value` is a call: names, and arguments in brackets at its end.
fn is_call(value: &str) -> bool {
    let Some((name, rest)) = value.split_once('(') else { return false };
    let name = name.trim_start_matches(['&', '*', '!', '$', '@']);
    let is_name = |part: &str| {
        part.is_empty()
            || is_identifier(part) && words(part).iter().any(|word| word.len() > 2 && is_word(word))
    };
    name.len() > 2
        && rest.ends_with([')', '?', '}'])
        && name.split(['.', ':', '-', '>', '?', '!']).all(is_name)
}

/// Whether `value` is a hexadecimal number of a program.
fn is_number(value: &str) -> bool {
    let number = value.trim_start_matches(['[', '(']);
    number.strip_prefix("0x").is_some_and(|digits| {
        let end = digits.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(digits.len());
        (1..=16).contains(&end)
            && matches!(digits.get(end..), Some("" | "u" | "u8" | "u16" | "u32" | "u64" | "usize"))
    })
}

/// Whether `value` is an abbreviation with a number: `PKCS12`.
fn is_abbreviation(value: &str) -> bool {
    let letters = value.trim_end_matches(|c: char| c.is_ascii_digit());
    value.len() < 9
        && value.len() - letters.len() < 4
        && letters.bytes().all(|byte| byte.is_ascii_uppercase())
}

/// Whether there are escapes of a program in `value`. Without them, another view shows it.
fn has_escapes(value: &str) -> bool {
    ["\\x", "\\u", "\\U"].iter().any(|escape| value.contains(escape))
}

/// Whether `value` consists of words and small numbers between other characters.
fn is_punctuated_words(value: &str) -> bool {
    let mut parts = value.split(|c: char| !c.is_alphanumeric()).filter(|part| !part.is_empty());
    let has_word = !value.contains(|c: char| c.is_numeric())
        || words(value).iter().any(|word| word.len() > 3 && is_word(word));
    has_word
        && parts
            .all(|part| (is_digits(part) && part.len() <= 4) || words(part).iter().all(|word| is_word(word)))
}

/// Whether the lower-case `word` may be one of a language, or an abbreviation.
fn is_word(word: &str) -> bool {
    word.chars().all(char::is_alphabetic) && (word.chars().count() <= 3 || familiar([word]) >= 0.6)
}

/// Whether `value` is a name: mostly words, with separators and numbers.
fn is_name(value: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || "_-./:#=~@+?,!".contains(c);
    if !value.chars().all(is_part) {
        return false;
    }
    let all = words(value);
    let long =
        || all.iter().map(String::as_str).filter(|word| word.len() > 3 && word.contains(char::is_alphabetic));
    let letters = long().map(str::len).sum::<usize>();
    let share = letters as f64 / all.iter().map(String::len).sum::<usize>().max(1) as f64;
    letters >= 12 && share >= 0.55 && familiar(long()) >= 0.7
}

/// The share of pairs of letters in `words` that are common in words and in names.
fn familiar<'a>(words: impl IntoIterator<Item = &'a str>) -> f64 {
    let (mut pairs, mut common) = (0_usize, 0_usize);
    for word in words {
        for (first, second) in word.chars().zip(word.chars().skip(1)) {
            let row = (first as usize).checked_sub('a' as usize).and_then(|row| FOLLOWERS.get(row));
            pairs += 1;
            // Other alphabets are rare in generated values.
            common += usize::from(row.is_none_or(|row| row.contains(second)));
        }
    }
    common as f64 / pairs.max(1) as f64
}

/// Whether `value` looks generated: long, with digits between its letters, and neither a name nor an identifier of a
/// thing, such as a UUID or a digest.
fn is_generated(value: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-+/=.~%".contains(c);
    let longest =
        value.split(|c: char| !c.is_ascii_alphanumeric()).max_by_key(|part| part.len()).unwrap_or_default();
    let is_hexadecimal = |part: &str| part.bytes().all(|byte| byte.is_ascii_hexdigit());
    value.len() >= GENERATED
        && value.chars().all(is_plain)
        && is_strong(value)
        && !is_hexadecimal(longest)
        && longest.len() >= 12
        && (longest.chars().filter(char::is_ascii_digit).count() > 2
            || familiar(words(longest).iter().map(String::as_str)) < 0.7)
        && !is_name(value)
}

/// Whether `value` consists of capital and small letters in an order that words do not have.
fn is_mixed(value: &str) -> bool {
    let all = words(value);
    value.len() >= GENERATED
        && value.chars().all(|c| c.is_ascii_alphabetic())
        && all.len() > 4
        && familiar(all.iter().map(String::as_str)) < 0.65
}

/// Whether there are signs in `value` that are common in passwords and rare elsewhere.
fn has_signs(value: &str) -> bool {
    let is_sign = |c: char| "!@#$%^&*~".contains(c);
    let inner = value.trim_matches(|c: char| !c.is_alphanumeric());
    value.chars().any(char::is_alphabetic)
        && value.chars().filter(|c| is_sign(*c)).count() > 1
        && inner.contains(is_sign)
        && !inner.contains(['(', '[', '{', '<', '.', ':', '/'])
}

/// Whether `value` is one of an example or a test: `test-key-123`, `sk-xxxx`, `AKIA…EXAMPLE`.
fn is_example(value: &str) -> bool {
    let lower = value.to_lowercase();
    if EXAMPLES.iter().any(|part| lower.contains(part)) {
        return true;
    }
    let rest = SEQUENCES.iter().fold(lower.clone(), |rest, sequence| rest.replace(sequence, ""));
    if rest.len() < lower.len() && rest.chars().filter(|c| c.is_alphanumeric()).count() < BESIDES_SEQUENCES {
        return true;
    }
    let runs = lower.split(|c: char| !c.is_alphabetic()).filter(|run| !run.is_empty());
    let (mut letters, mut left) = (0, 0);
    for run in runs {
        let rest = EXAMPLE_WORDS.iter().fold(run.to_owned(), |rest, word| rest.replace(word, ""));
        letters += run.len();
        left += rest.len();
    }
    left < letters && left < 2
}

/// Whether there are lines of a key in `value`, more than what every key begins with.
fn has_key_lines(value: &str) -> bool {
    const LEAST: usize = 40;
    let is_key = |part: &&str| part.len() >= 12 && !part.contains(OPENSSH) && !part.contains("REDACTED");
    let is_code = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '/');
    let parts = value.split(|c: char| !is_code(c)).filter(is_key);
    parts
        .filter(|part| part.contains(|c: char| c.is_ascii_digit() || c.is_ascii_lowercase()))
        .map(str::len)
        .sum::<usize>()
        >= LEAST
}

#[cfg(test)]
mod tests {
    use super::{super::tests::*, *};

    #[test]
    fn generated_values_are_likely() {
        for (alphabet, length) in [
            (ALNUM, 20),
            (ALNUM, 32),
            (BASE64, 40),
            (BASE64, 86),
            ("abcdefghijklmnopqrstuvwxyz0123456789", 32),
        ] {
            let is_likely =
                |kind, value: &str| of_named(kind, MatchContext::Loose, false, value) == Some(Likely);
            for kind in [NameKind::Password, NameKind::Secret, NameKind::Weak] {
                let missed: Vec<_> = (0..2_000)
                    .map(|seed| random(alphabet, length, seed))
                    .filter(|value| !is_likely(kind, value))
                    .collect();
                // Short values without digits resemble names.
                let most = match (length, kind) {
                    (_, NameKind::Weak) => 120,
                    (20, _) => 30,
                    _ => 20,
                };
                assert!(missed.len() < most, "{kind:?} {length}: {} {missed:?}", missed.len());
            }
        }
    }
}
