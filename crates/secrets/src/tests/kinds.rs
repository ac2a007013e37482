//! An example of each important kind of secret, put together at run time so that this file contains none.

use super::*;

/// Texts around a secret in a conversation.
const PLACES: [(&str, &str); 8] = [
    ("", ""),
    ("it is ", " I think"),
    ("export TOKEN=\"", "\""),
    ("{\"value\": \"", "\"}"),
    ("{\\\"value\\\": \\\"", "\\\"}"),
    ("(see ", ")"),
    ("use ", ", please"),
    ("that was ", ".\n"),
];

fn assert_is_masked_everywhere(kind: &str, secret: &str) {
    for (before, after) in PLACES {
        let text = format!("{before}{secret}{after}");
        let expected = format!("{before}{}{after}", "*".repeat(secret.chars().count()));
        assert_eq!(masked(&text), expected, "{kind}");
    }
}

#[test]
fn tokens_with_a_known_form_are_masked_anywhere() {
    let alnum = |length, seed| random(ALNUM, length, seed);
    let kinds = [
        ("AWS access key", format!("AK{}{}", "IA", random(UPPER, 16, 1))),
        ("AWS temporary key", format!("AS{}{}", "IA", random(UPPER, 16, 2))),
        ("GitHub personal token", format!("gh{}{}", "p_", alnum(36, 3))),
        ("GitHub fine-grained token", format!("github_{}{}", "pat_", alnum(82, 4))),
        ("GitHub app token", format!("gh{}{}", "s_", alnum(36, 5))),
        ("GitLab token", format!("gl{}{}", "pat-", alnum(20, 6))),
        ("Slack bot token", format!("xo{}123456789012-123456789013-{}", "xb-", alnum(24, 7))),
        ("OpenAI key", format!("sk{}{}T3Blbk{}{}", "-", alnum(20, 8), "FJ", alnum(20, 9))),
        ("OpenAI project key", format!("sk{}{}", "-proj-", alnum(120, 10))),
        ("OpenRouter key", format!("sk{}{}", "-or-v1-", random(HEX, 64, 11))),
        ("Anthropic key", format!("sk{}{}AA", "-ant-api03-", alnum(93, 12))),
        ("Google API key", format!("AI{}{}", "za", alnum(35, 13))),
        ("Hugging Face token", format!("hf{}{}", "_", random("abcdefghijklmnopqrstuvwxyz", 34, 14))),
        ("Stripe key", format!("sk{}{}", "_live_", alnum(24, 20))),
        ("npm token", format!("np{}{}", "m_", random("abcdefghijklmnopqrstuvwxyz0123456789", 36, 21))),
        ("PyPI token", format!("py{}{}", "pi-AgEIcHlwaS5vcmc", alnum(60, 22))),
        ("SendGrid key", format!("S{}{}", "G.", alnum(66, 23))),
        ("DigitalOcean token", format!("do{}{}", "p_v1_", random(HEX, 64, 24))),
        ("Databricks token", format!("da{}{}", "pi", random(HEX, 32, 25))),
    ];
    for (kind, secret) in kinds {
        assert_is_masked_everywhere(kind, &secret);
    }
}

#[test]
fn json_web_tokens_are_masked() {
    let part = |length, seed| random(ALNUM, length, seed);
    let signed = format!("ey{}.ey{}.{}", part(30, 15), part(60, 16), part(43, 17));
    let unsigned = format!("ey{}.ey{}", part(30, 18), part(60, 19));
    for token in [&signed, &unsigned] {
        for context in ["{}", "Bearer {}", "(token {})", "{\"jwt\": \"{}\"}", "it was {} there"] {
            assert_is_masked_in(context, token);
        }
    }
    // For this rule, the backslash is a part of the token.
    assert!(!masked(&format!("{{\\\"jwt\\\": \\\"{signed}\\\"}}")).contains(&signed[..4]));
}

/// `{}` stands for the secret.
fn assert_is_masked_in(context: &str, secret: &str) {
    let text = context.replace("{}", secret);
    let expected = context.replace("{}", &"*".repeat(secret.chars().count()));
    assert_eq!(masked(&text), expected);
}

#[test]
fn values_with_a_telling_name_or_form_are_masked() {
    let secret = random(ALNUM, 32, 30);
    let contexts = [
        "api_key=\"{}\"",
        "\"apiKey\": \"{}\",",
        "{\\\"api_key\\\": \\\"{}\\\"}",
        "AUTH_TOKEN = '{}'",
        "client_secret: {}\n",
        "Authorization: Bearer {}",
        "curl -H 'Authorization: Bearer {}' https://example.com",
        "authorization: Basic {}",
        "https://example.com/file?token={}&page=2",
        "https://example.com/blob?sv=2024&sig={}",
        "Server=db;User Id=me;Password={};Encrypt=true",
        "redis://:{}@cache:6379/0",
        "git clone https://me:{}@example.com/repo.git",
        "amqp://user:{}@[::1]/vhost",
    ];
    for context in contexts {
        assert_is_masked_in(context, &secret);
    }
}

#[test]
fn azure_keys_are_masked() {
    let key = format!("{}==", random(BASE64, 86, 40));
    assert_is_masked_in(
        "DefaultEndpointsProtocol=https;AccountName=me;AccountKey={};EndpointSuffix=core.windows.net",
        &key,
    );
    assert_is_masked_in("AccountEndpoint=https://me.documents.azure.com:443/;AccountKey={};", &key);
    let shared = format!("{}=", random(BASE64, 43, 41));
    assert_is_masked_in("Endpoint=sb://me.example.com/;SharedAccessKeyName=all;SharedAccessKey={}", &shared);
    assert_is_masked_in("api-key: {}", &random(HEX, 32, 42));
    assert_is_masked_in("AZURE_OPENAI_API_KEY={}", &random(ALNUM, 84, 43));
}

fn key_lines(lines: usize, seed: u64) -> Vec<String> {
    (0..lines).map(|line| random(BASE64, 64, seed + line as u64)).collect()
}

#[test]
fn incomplete_private_keys_are_masked() {
    for label in ["", "RSA ", "EC ", "OPENSSH ", "ENCRYPTED "] {
        let begin = format!("-----BEGIN {label}{} KEY-----", "PRIVATE");
        let end = format!("-----END {label}{} KEY-----", "PRIVATE");
        let lines = key_lines(4, 50);
        let body = lines.join("\n");
        let numbered: String =
            lines.iter().enumerate().map(|(at, line)| format!("{:>6}\t{line}\n", at + 2)).collect();
        let texts = [
            format!("{begin}\n{body}\nQUJD\n{end}\n"),
            format!("{begin}\n{body}\nQUJDRA==\n"),
            format!("{begin}\n{body}"),
            format!("     1\t{begin}\n{numbered}"),
            format!("{begin}\nProc-Type: 4,{0}\nDEK-Info: AES-256-CBC,00\n\n{body}", "ENCRYPTED"),
            format!("{begin}\\n{}\\n", lines.join("\\n")),
            format!("\"{begin}\\n\" +\n\"{}\"", lines.join("\\n\" +\n\"")),
            format!("...\n{body}\nQUJD\n{end}\n"),
        ];
        for text in texts {
            let masked = masked(&text);
            assert_eq!(masked.chars().count(), text.chars().count());
            for line in &lines {
                assert!(!masked.contains(&line[..8]) && !masked.contains(&line[56..]), "{masked}");
            }
        }
    }
}

/// Passwords without a name and an operator; `{}` stands for the password.
#[test]
fn passwords_in_commands_headers_and_files_are_masked() {
    let contexts = [
        "Authorization: Bearer {}",
        "{\"Authorization\": \"Bearer {}\"}",
        "curl -u admin:{} https://x.example",
        "curl --user \"admin:{}\" https://x.example",
        "mysql -u root -p{} db",
        "sshpass -p {} ssh host",
        "docker login -u me -p {} registry.example",
        "redis-cli -h cache -a {} ping",
        "machine api.example.com login me password {}",
        "CREATE USER me IDENTIFIED BY '{}';",
        "CREATE ROLE me WITH LOGIN PASSWORD '{}';",
        "Data Source=x;Password=\"{}\";User=me",
        "host=db user=me password={} dbname=app",
        "password: |\n  {}\nnext: 1",
        "password:\n  {}",
        "\"password\":\n   \"{}\"",
        "My password is {}, isn't it?",
        "passwords = [\"{}\", \"{}\"]",
        "{\"password\": {\"value\": \"{}\"}}",
        "<secret-key>{}</secret-key>",
        "&quot;password&quot;: &quot;{}&quot;",
        "%22password%22%3A%22{}%22",
        "PASSWORD={}\\nNEXT=1",
        "\u{1b}[31mpassword\u{1b}[0m: \u{1b}[32m{}\u{1b}[0m",
        "Cookie: a=1; session={}; theme=dark",
        "ldapsearch -D cn=admin -w {} -b dc=x",
        "openssl enc -aes-256-cbc -pass pass:{}",
        "user:{}@tcp(db:3306)/app",
        "ConvertTo-SecureString \"{}\" -AsPlainText",
        "new NetworkCredential(\"me\", \"{}\")",
        "requests.get(url, auth=(\"me\", \"{}\"))",
        "process.env.DB_PASSWORD || \"{}\"",
        "echo '{}' | sudo -S ls",
        "密码：{}",
        "das Passwort ist {}",
        "parole = x; пароль: {}",
    ];
    for secret in ["S3cr3t!x#9", "aB3$dE6&gH9"] {
        for context in contexts {
            let text = context.replace("{}", secret);
            assert!(
                !masked(&text).contains(&secret[..5]) && !masked(&text).contains(&secret[5..]),
                "{}",
                masked(&text)
            );
        }
    }
}
