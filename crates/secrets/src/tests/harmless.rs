//! Thousands of texts without secrets, as in repositories and conversations. Almost none may be masked.

use super::*;

#[rustfmt::skip]
const NAMES: [&str; 24] = [
    "commit", "sha256", "checksum", "etag", "revision", "digest", "integrity", "build_id", "request_id",
    "trace", "session_id", "parent", "tree", "blob", "image", "layer", "hash", "cache_key", "primaryKey",
    "correlation_id", "cursor", "fingerprint", "nonce_count", "span_id",
];

/// `◆` is a random value.
#[rustfmt::skip]
const AROUND_HASHES: [&str; 16] = [
    "◆", "commit ◆", "sha256:◆", "{\"id\": \"◆\", \"parent\": null}", "index ◆..◆ 100644",
    "checksum = \"◆\"", "\"integrity\": \"sha512-◆==\"",
    "  resolved \"https://registry.example/x/-/x-1.2.3.tgz#◆\"", "ETag: W/\"◆\"",
    "docker.io/library/alpine@sha256:◆", "[INFO] request ◆ took 12 ms", "golang.org/x/text v0.3.0 h1:◆=",
    "refs/heads/main -> ◆", "key: ◆", "{\"tool_call_id\": \"toolu_◆\"}",
    "version = \"1.2.3\"\nsource = \"registry\"\nhash = \"◆\"",
];

#[rustfmt::skip]
const CODE: [&str; 95] = [
    "password = getpass()", "token: Token", "max_tokens = 4096", "let token = lexer.next_token();",
    "password: str", "password: string;", "password: String,", "api_key: Option<String>,",
    "secret: SecretString,", "token: &str,", "def login(user, password):\n    \"\"\"Logs in.\"\"\"",
    "fn auth(token: &[u8]) -> bool {", "self.password = password", "this.token = token;",
    "const token = await getToken();", "password = os.environ[\"DB_PASSWORD\"]",
    "password = os.getenv('DB_PASSWORD')", "const apiKey = process.env.API_KEY;", "api_key=api_key,",
    "token=self.token)", "password=${DB_PASSWORD}", "password: {{ .Values.password }}",
    "PASSWORD=$(cat /run/secrets/db)", "export TOKEN=$TOKEN", "TOKEN=\"${GITHUB_TOKEN}\"",
    "SECRET_KEY=${{ secrets.SECRET_KEY }}", "password = \"\"", "password = None", "token = null",
    "password: undefined", "token == ')'", "match token { Token::Ident(name) => name, _ => return }",
    "token.kind == TokenKind::Eof", "if (!password) return;", "password VARCHAR(255) NOT NULL,",
    "password: z.string().min(8)", "token_count = 128",
    "\"usage\": {\"input_tokens\": 1200, \"output_tokens\": 300}", "total_tokens: 15,000",
    "pad_token = \"[PAD]\"", "eos_token: \"<|endoftext|>\"", "eos_token_id: 50256",
    "tokenizer = AutoTokenizer.from_pretrained(\"bert-base-uncased\")",
    "<input type=\"password\" name=\"password\" placeholder=\"Password\">",
    "<label for=\"password\">Password:</label>", "secretKeyRef:\n  name: db-secret\n  key: password",
    "existingSecret: my-release-postgresql", "secretName: app-tls",
    "PASSWORD_FILE=/run/secrets/db_password", "token_url = \"https://example.com/oauth/token\"",
    "auth: required", "credentials: 'same-origin'", "\"token_type\": \"bearer\"",
    "Authorization: Bearer $TOKEN", "Authorization: Bearer <token>",
    "headers = {\"Authorization\": f\"Bearer {token}\"}", "'Authorization': 'Bearer ' + token",
    "--token TOKEN", "  --password string   Password for the registry",
    "  --api-key <KEY>    The key of the service", "API_KEY=your_api_key_here", "api_key: \"YOUR_API_KEY\"",
    "password: \"<your password>\"", "password: ********", "secret: [REDACTED]", "password: changeme",
    "assert password == expected", "pwd=/home/me/project", "PWD=/srv/work/app",
    "postgres://user:password@localhost/db", "https://user:${PASSWORD}@example.com",
    "http://localhost:8080/@scope/package", "for key, value in items.items():",
    "sorted(rows, key=lambda row: row.id)", "KEY_ENTER = 13", "primary_key=True", "foreign_key: user_id",
    "use crate::token::{Token, TokenKind};", "import { getToken } from './auth';",
    "type Token = { kind: string; text: string };", "tokens.push(Token::new(kind, start..end));",
    "let secret: &[u8] = &bytes[..32];", "password = input(\"Enter your password: \")",
    "print(f\"password: {password}\")", "logger.info(\"token refreshed in %d ms\", elapsed)",
    "\"password\": \"Password must be at least 8 characters\"",
    "errors.password = 'Passwords do not match'", "class PasswordField(forms.CharField):",
    "password_hash = hash_password(password)", "PASS: TestLogin (0.02s)",
    "test result: ok. 12 passed; 0 failed", "git@github.com:owner/repository.git",
    "ssh-keygen -t ed25519 -f key", "grep -rn 'api_key' src/", "kubectl get secret db-password -o yaml",
];

#[rustfmt::skip]
const PROSE: [&str; 24] = [
    "Please rotate the access token every ninety days.", "The password is stored in the vault.",
    "Authentication failed: the API key was rejected (401).",
    "Ask Ana for the password of the staging database.", "The secret is to keep the dough cold.",
    "A token is a piece of a word; 1,000 tokens are about 750 words.",
    "Set the api key in the environment, not in the file.",
    "I reset the password and sent the link to the customer.",
    "The private key is generated on first start.", "Bearer authentication is described below.",
    "Use `--password-stdin` so that the password is not in the history.", "The key: keep changes small.",
    "Das Passwort steht auf dem Zettel.", "Le mot de passe est dans le coffre.", "密码在保险库里。",
    "Secret: nobody knows.", "Password: see the onboarding document.", "Token usage: 12,345 of 200,000.",
    "The auth service: what it does and why.", "We pass the token as a header; see RFC 6750.",
    "The cookie is set for 30 days.", "Enter your password:",
    "The credentials are wrong, so that the login fails.", "No secret was found in 1,204 files.",
];

const WRAPS: [&str; 7] = [
    "◆",
    "Here is what I found:\n\n```\n◆\n```\n",
    "   12\t◆\n   13\t}",
    "+◆\n- return null;",
    "$ cat file\n◆\n$ echo $?\n0",
    "// ◆",
    "{\"output\": {\"stdout\": \"◆\", \"returncode\": 0}}",
];

fn texts() -> Vec<String> {
    let mut texts = Vec::new();
    let mut seed = 0;
    let mut next = |alphabet, length| {
        seed += 1;
        random(alphabet, length, seed)
    };
    for around in AROUND_HASHES {
        for length in [7, 12, 32, 40, 64, 128] {
            texts.push(around.replace('◆', &next(HEX, length)));
        }
        for _ in 0..6 {
            let hex = next(HEX, 30);
            let (a, b, c) = (&hex[..8], &hex[8..12], &hex[12..15]);
            let uuid = format!("{a}-{b}-4{c}-a{}-{}", &hex[15..18], &hex[18..30]);
            texts.push(around.replace('◆', &uuid));
        }
    }
    for name in NAMES {
        for form in ["◆: ●", "◆=●", "\"◆\": \"●\"", "◆ = '●'"] {
            for value in [next(HEX, 40), next(HEX, 64), next("0123456789", 12)] {
                texts.push(form.replace('◆', name).replace('●', &value));
            }
        }
    }
    for length in [100, 1_000, 20_000] {
        for _ in 0..30 {
            let image = next(BASE64, length);
            texts.push(format!("data:image/png;base64,{image}=="));
            texts.push(format!(
                "{{\"type\": \"base64\", \"media_type\": \"image/png\", \"data\": \"{image}\"}}"
            ));
        }
    }
    for wrap in WRAPS {
        for text in CODE.iter().chain(&PROSE) {
            let quoted = serde_json::to_string(text).unwrap();
            let inner = if wrap.starts_with('{') { &quoted[1..quoted.len() - 1] } else { *text };
            texts.push(wrap.replace('◆', inner));
        }
    }
    // Files of this repository: code, documentation, configuration, a lock file.
    for file in [
        include_str!("../../../../Cargo.lock"),
        include_str!("../../../../docs/architecture.md"),
        include_str!("../../../embed/src/wrappers/stack.rs"),
    ] {
        let lines: Vec<&str> = file.lines().collect();
        texts.extend(lines.chunks(10).map(|lines| lines.join("\n")));
    }
    texts
}

#[test]
fn harmless_texts_are_rarely_masked() {
    let texts = texts();
    assert!(texts.len() >= 2_000, "{}", texts.len());
    let masked: Vec<String> = texts
        .iter()
        .map(|text| (text, masked(text)))
        .filter(|(text, masked)| text != &masked)
        .map(|(text, masked)| format!("{:.200}\n  -> {:.200}", text, masked))
        .collect();
    assert!(
        masked.len() * 100 < texts.len(),
        "{} of {} masked:\n{}",
        masked.len(),
        texts.len(),
        masked.join("\n")
    );
}
