//! Combinations of names, quotes, nesting, surroundings and special characters: nothing may leak.

use super::*;

#[rustfmt::skip]
const PASSWORDS: [&str; 14] = [
    "password", "passwd", "pwd", "pass", "DB_PASSWORD", "db.password", "Password", "userPassword",
    "passphrase", "PGPASSWORD", "database_password", "ADMIN_PASS", "PASSWORD_PROD", "smtp-password",
];
#[rustfmt::skip]
const KEYS: [&str; 20] = [
    "secret", "api_key", "apikey", "API-KEY", "apiKey", "API_KEY", "access_token", "auth_token",
    "client_secret", "clientSecret", "private_key", "SECRET_KEY", "aws_secret_access_key", "X-Api-Key",
    "accessKey", "refresh_token", "GITHUB_TOKEN", "encryption_key", "webhook_secret", "STRIPE_API_KEY",
];

/// Values that are not words.
const VALUES: [&str; 44] = [
    "aB3!dE6#gH9$",
    "!start9Xy",
    "#hash7Kq!",
    "$ecr3t!Pw",
    "$Tr0ngPassw0rd",
    "%pct4Gh&k",
    "&amp9Zx!",
    "*star8Qw",
    "@at7Ui!k",
    "-dash5Tt!",
    "(par3n)Xx",
    "[brk7]Yy!",
    "{cur1y}Zz!",
    "<ang9>Ww!",
    "^car3t~Vv",
    "p@ssw0rd!",
    "hunter2!",
    "Tr0ub4dor&3",
    "x;y1Z!aa",
    "a,b1C!dd",
    r"back\sl4sh!",
    r"\lead7Xy!",
    "quo\"te1X!",
    "apo's7X!y",
    "tick`8X!yz",
    "ünï¢ödé9!",
    "密码Pa55!字",
    "end.dot9X.",
    "trail1X!,",
    "tail2Y!;",
    "q?x=1&y=2Z",
    "a/b/c9!X",
    "a:b:c9!X",
    "a=b=c9!X==",
    "a|b9!X|c",
    "a+b9!X+c",
    "~tilde5Rr%",
    "=equal6Ss!",
    "/sl4sh+Tt9!x",
    "0f9e8d7c6b5a4f3e2d1c0b9a8f7e6d5c",
    "550e8400-e29b-41d4-a716-446655440000",
    "aB3dE6gH9jK2mN5pQ8rS",
    "wJ4lrXUtnFEMI/K7MDENG/bPxRfiCY",
    "Zm9v+YmFy/MTIz==",
];
/// Quoted values may contain spaces.
const WITH_BLANKS: [&str; 4] =
    ["correct horse battery staple", "my p4ss w0rd!", " lead 1ng bl4nk", "säure & 7 Zwerge!"];

/// `◆` is the name, `●` the value.
const DOUBLE: [&str; 39] = [
    r#"<add key="◆" value="●"/>"#,
    r#"define("◆", "●");"#,
    r#"os.environ["◆"] = "●""#,
    r#"getenv("◆", "●")"#,
    r#"$env:◆ = "●""#,
    r#"◆: "●",  // a remark"#,
    r#"curl -d '{"user":"me","◆":"●"}' https://x.example"#,
    r#"◆="●" ./run.sh"#,
    r#"- "◆=●""#,
    r#"["A=1", "◆=●"]"#,
    r#"curl -H "◆: ●" https://x.example"#,
    r#"var ◆ string = "●""#,
    r#"static const char *◆ = "●";"#,
    r#"char ◆[] = "●";"#,
    r#"String ◆ = "●";"#,
    r#"◆ = SecretStr("●")"#,
    r#"'◆': "●""#,
    r#"gh secret set ◆ --body "●""#,
    r#"◆ = b"●""#,
    r#"<x ◆="●">"#,
    r#"self.◆ == "●""#,
    r#"# ◆: "●""#,
    r#"◆ = """●""""#,
    r#"◆ = "●""#,
    r#"◆="●""#,
    r#"◆: "●""#,
    r#""◆": "●""#,
    r#""◆":"●""#,
    r#""◆" => "●""#,
    r#"◆ := "●""#,
    r#"export ◆="●""#,
    r#"--◆ "●""#,
    r#"--◆="●""#,
    r#"const ◆ = "●";"#,
    r#"{"a": 1, "◆": "●", "b": 2}"#,
    r#"connect(user="me", ◆="●")"#,
    r#"config["◆"] = "●""#,
    r#"let ◆: &str = "●";"#,
    r#"{"name": "◆", "value": "●"}"#,
];
#[rustfmt::skip]
const SINGLE: [&str; 17] = [
    "ALTER USER me SET ◆ = '●';", "$◆ = '●';", "'◆=●'", "curl -d '◆=●' https://x.example", "SET ◆ '●'",
    "◆ = '●'", "◆='●'", "◆: '●'", "'◆': '●'", "'◆' => '●'", "export ◆='●'", "--◆ '●'", "{'a': 1, '◆': '●'}",
    "  ◆: '●'  # a remark", "self.◆ = '●'", "params[:◆] = '●'", "-H '◆: ●'",
];
const BACKTICK: [&str; 5] = ["the ◆ is `●`", "◆ = `●`", "◆: `●`", "const ◆ = `●`;", "**◆**: `●`"];
#[rustfmt::skip]
const BARE: [&str; 27] = [
    "Server=db;◆=●;Encrypt=true", "docker run -e ◆=● image", "-D◆=●", "--set x.◆=●", "--from-literal=◆=●",
    "aws configure set ◆ ●", "◆=● ./run.sh", "echo ◆=● >> .env", "◆ : ●", "◆   =   ●", "the ◆ is ●",
    "# ◆=●", "◆=●\r\nX=1", "◆\t●", "set ◆=●", "- name: ◆\n  value: ●", "| ◆ | ● |", "◆=●", "export ◆=●",
    "◆: ●", "◆ = ●", "--◆ ●", "--◆=●", "- ◆: ●", "ENV ◆=●", "https://x.example/p?a=1&◆=●", "<◆>●</◆>",
];

const AROUND: [(&str, &str); 5] = [
    ("", ""),
    ("before\n", "\nafter"),
    ("$ cat .env\nHOST=db\n", "\nPORT=1\n"),
    ("    12\t", "\n    13\tx = 1"),
    ("+", "\n-y: 2"),
];

/// A text with a value, and the range of the value in bytes.
pub(super) struct Case {
    before: String,
    value: String,
    after: String,
}

impl Case {
    fn new(form: &str, name: &str, value: &str, around: (&str, &str)) -> Self {
        let form = form.replace('◆', name);
        let (start, end) = form.split_once('●').unwrap();
        Self {
            before: format!("{}{start}", around.0),
            value: value.to_owned(),
            after: format!("{end}{}", around.1),
        }
    }

    /// The case as a JSON string in an object.
    fn nested(self) -> Self {
        let inner = |text: &str| {
            let quoted = serde_json::to_string(text).unwrap();
            quoted[1..quoted.len() - 1].to_owned()
        };
        Self {
            before: format!("{{\"error\": null, \"output\": {{\"stdout\": \"{}", inner(&self.before)),
            value: inner(&self.value),
            after: format!("{}\", \"returncode\": 0}}}}", inner(&self.after)),
        }
    }

    /// The part of the value that is not masked, except for punctuation at its end.
    fn leak(&self) -> Option<String> {
        self.leak_in(&masked(&self.text()))
    }

    pub(super) fn text(&self) -> String {
        format!("{}{}{}", self.before, self.value, self.after)
    }

    /// As [`Self::leak`], of the masked text.
    pub(super) fn leak_in(&self, masked: &str) -> Option<String> {
        let text = self.text();
        assert_eq!(masked.chars().count(), text.chars().count());
        let skip = self.before.chars().count();
        let left: String = masked.chars().skip(skip).take(self.value.chars().count()).collect();
        left.chars().any(char::is_alphanumeric).then(|| format!("{text}\n  -> {masked}"))
    }
}

/// Whether the form can contain the value.
fn can_hold(form: &str, value: &str) -> bool {
    let quote = if DOUBLE.contains(&form) {
        '"'
    } else if SINGLE.contains(&form) {
        '\''
    } else if BACKTICK.contains(&form) {
        '`'
    } else {
        // White space, markup, and special characters of shells and YAML end an unquoted value.
        let is_cut = value.contains([' ', '<']) || (form.contains('?') && value.contains(['#', '&']));
        return !is_cut;
    };
    !value.contains(quote) && !(value.ends_with('\\'))
}

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    let names = || PASSWORDS.iter().chain(&KEYS);
    let forms: Vec<&str> = DOUBLE.iter().chain(&SINGLE).chain(&BACKTICK).chain(&BARE).copied().collect();
    let values: Vec<&str> = VALUES.iter().chain(&WITH_BLANKS).copied().collect();
    let mut turn = 0;
    for name in names() {
        for form in &forms {
            for value in values.iter().filter(|value| can_hold(form, value)) {
                turn += 1;
                // All combinations would take long. With the stride, every pair of name, form and value is covered.
                if turn % STRIDE != 0 {
                    continue;
                }
                let levels = (turn / STRIDE) % 4;
                let case = Case::new(form, name, value, AROUND[(turn / STRIDE / 4) % AROUND.len()]);
                cases.push((0..levels).fold(case, |case, _| case.nested()));
            }
        }
    }
    cases
}

const STRIDE: usize = 23;

#[test]
fn no_combination_leaks() {
    let cases = cases();
    assert!(cases.len() >= 2_000, "{}", cases.len());
    let leaks: Vec<String> = cases.iter().filter_map(Case::leak).collect();
    assert!(
        leaks.is_empty(),
        "{} of {} leak:\n{}",
        leaks.len(),
        cases.len(),
        leaks[..leaks.len().min(400)].join("\n")
    );
}
