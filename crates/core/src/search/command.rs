//! Commands: whether a query is a command of a shell, and whether a script runs it.
//!
//! A query need not look like a command: `docker compose up` could be a question. It is one if a script runs it. So
//! there is no list of programs.

/// Words before a program that run it or introduce it.
const BEFORE_PROGRAM: [&str; 19] = [
    "!", "{", "command", "do", "elif", "else", "env", "exec", "if", "nice", "nohup", "sudo", "then", "time",
    "timeout", "until", "while", "xargs", "builtin",
];

/// A command that was typed as a query: a program with arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TypedCommand {
    words: Vec<String>,
}

impl TypedCommand {
    /// The command that `query` may be. A single word is a search for this word.
    pub(crate) fn of(query: &str) -> Option<Self> {
        let mut commands = simple_commands(query);
        let words = commands.pop().filter(|words| words.len() > 1 && commands.is_empty())?;
        Some(Self { words })
    }

    /// Whether the query has an option, which hardly any question has.
    pub(crate) fn has_option(&self) -> bool {
        self.words.iter().any(|word| is_option(word))
    }

    /// Whether the query is so short that it may be a command without an option. A longer one is a question.
    pub(crate) fn is_short(&self) -> bool {
        self.words.len() <= 3
    }

    /// Whether `script` runs the program with these arguments. It may have others, and options in another order. In
    /// quotes, in a here-document and in a comment, a command is only mentioned.
    pub(crate) fn is_run_by(&self, script: &str) -> bool {
        simple_commands(script).iter().any(|words| self.is(words))
    }

    fn is(&self, words: &[String]) -> bool {
        let (Some((program, wanted)), Some((found, given))) = (self.words.split_first(), words.split_first())
        else {
            return false;
        };
        let mut operands = given.iter().filter(|word| !is_option(word));
        file_name(found).eq_ignore_ascii_case(file_name(program))
            && wanted.iter().all(|word| {
                if is_option(word) {
                    has_option(given, word)
                } else {
                    operands.any(|given| names(given, word))
                }
            })
    }
}

fn is_option(word: &str) -> bool {
    word.strip_prefix('-').is_some_and(|rest| rest.starts_with(|c: char| c == '-' || c.is_alphanumeric()))
}

fn file_name(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

/// Whether the words have an option: `--depth` also as `--depth=1`, `--force` also as `--force-with-lease`, and `-rf` also
/// as `-fr` or `-r -f`.
fn has_option(words: &[String], option: &str) -> bool {
    let is_it = |word: &String| {
        word.strip_prefix(option).is_some_and(|rest| rest.is_empty() || rest.starts_with(['=', '-']))
    };
    let has_letter = |letter| words.iter().filter_map(|word| letters(word)).any(|all| all.contains(letter));
    words.iter().any(is_it) || letters(option).is_some_and(|all| all.chars().all(has_letter))
}

/// The letters of options that are written as one word: `rf` of `-rf`.
fn letters(word: &str) -> Option<&str> {
    word.strip_prefix('-').filter(|all| !all.starts_with('-'))
}

/// Whether an argument is `word` or has it as a part: `build/` and `./build` have `build`, `flask==3.0` has `flask`.
fn names(argument: &str, word: &str) -> bool {
    argument == word || argument.split(['/', '=', '@', ':']).any(|part| part == word)
}

/// The commands of a script, each with its program first.
fn simple_commands(script: &str) -> Vec<Vec<String>> {
    let mut reader = ScriptReader::default();
    let mut rest = script.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\'' => reader.quoted(rest.by_ref().take_while(|c| *c != '\'')),
            '"' => reader.in_double_quotes(&mut rest),
            // A line that continues.
            '\\' if rest.next_if_eq(&'\n').is_some() => reader.end_word(),
            '\\' => reader.quoted(rest.next().into_iter()),
            '#' if reader.word.is_none() => while rest.next_if(|c| *c != '\n').is_some() {},
            '\n' => {
                reader.end_command();
                reader.skip_documents(&mut rest);
            }
            ';' | '&' | '|' | '(' | ')' | '`' => reader.end_command(),
            ' ' | '\t' | '\r' => reader.end_word(),
            other => reader.push(other),
        }
    }
    reader.end_command();
    reader.commands
}

type Characters<'a> = std::iter::Peekable<std::str::Chars<'a>>;

#[derive(Default)]
struct ScriptReader {
    commands: Vec<Vec<String>>,
    words: Vec<String>,
    /// The word that is being read. It may be empty, in quotes.
    word: Option<String>,
    /// The last lines of here-documents that begin after this line.
    documents: Vec<String>,
    /// Whether the next word is the last line of a here-document.
    is_document_next: bool,
}

impl ScriptReader {
    fn push(&mut self, c: char) {
        self.word.get_or_insert_default().push(c);
    }

    fn quoted(&mut self, text: impl Iterator<Item = char>) {
        self.word.get_or_insert_default().extend(text);
    }

    /// Reads to the closing quote. A command in `$(…)` may have quotes of its own.
    fn in_double_quotes(&mut self, rest: &mut Characters<'_>) {
        let word = self.word.get_or_insert_default();
        let mut depth = 0_usize;
        while let Some(c) = rest.next() {
            match c {
                '"' if depth == 0 => return,
                '\\' => {
                    word.extend(rest.next());
                    continue;
                }
                '(' if depth > 0 || word.ends_with('$') => depth += 1,
                ')' => depth = depth.saturating_sub(1),
                _ => {}
            }
            word.push(c);
        }
    }

    fn end_word(&mut self) {
        let Some(word) = self.word.take() else { return };
        if std::mem::take(&mut self.is_document_next) {
            self.documents.push(word);
        } else if let Some(end) = word.strip_prefix("<<").filter(|end| !end.starts_with('<')) {
            match end.strip_prefix('-').unwrap_or(end) {
                "" => self.is_document_next = true,
                end => self.documents.push(end.to_owned()),
            }
        } else if !self.words.is_empty() || is_program(&word) {
            self.words.push(word);
        }
    }

    fn end_command(&mut self) {
        self.end_word();
        if !self.words.is_empty() {
            self.commands.push(std::mem::take(&mut self.words));
        }
    }

    /// Skips here-documents: they are input, for example a script that is written to a file.
    fn skip_documents(&mut self, rest: &mut Characters<'_>) {
        for last in std::mem::take(&mut self.documents) {
            while rest.peek().is_some() {
                let line: String = rest.by_ref().take_while(|c| *c != '\n').collect();
                if line.trim() == last {
                    break;
                }
            }
        }
    }
}

/// Whether the first word of a command is a program: not `sudo`, its options and numbers, or the value of a variable.
fn is_program(word: &str) -> bool {
    let is_variable = word.split_once('=').is_some_and(|(name, _)| !name.contains('/'));
    !(BEFORE_PROGRAM.contains(&word)
        || is_variable
        || word.starts_with(|c: char| matches!(c, '-' | '$' | '<' | '>') || c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(query: &str, script: &str) -> bool {
        TypedCommand::of(query).is_some_and(|command| command.is_run_by(script))
    }

    #[test]
    fn a_script_runs_the_commands_in_it() {
        for script in [
            "rm -rf build",
            "cd /tmp && rm -rf build/ dist",
            "set -e\nA=1 sudo -E /bin/rm -r -f \"./build\"",
            "if [ -d build ]; then rm -fr build; fi",
            "ls | xargs -0 rm -rf build # all",
            "echo $(rm -rf build)",
            "rm \\\n  -rf build",
            "cat <<EOF > a\nrm x\nEOF\nrm -rf build",
        ] {
            assert!(runs("rm -rf", script) && runs("rm -rf build", script), "{script}");
            assert!(!runs("rm -rf src", script) && !runs("rm -ri build", script), "{script}");
        }
    }

    #[test]
    fn a_command_that_is_mentioned_does_not_run() {
        for script in [
            "echo rm -rf build",
            "echo 'x; rm -rf build'",
            "grep -n \"rm -rf build\" src",
            "ls # rm -rf build",
            "cat > clean.sh <<'EOF'\nrm -rf build\nEOF",
            "cat <<-\"EOF\"\n\trm -rf build\n\tEOF",
            "cat << EOF\nrm -rf build",
            "git commit -m \"$(cat <<'EOF'\nSay \"no\"\nrm -rf build\nEOF\n)\"",
            "rm -rf",
            "",
        ] {
            assert!(!runs("rm -rf build", script), "{script}");
        }
    }

    #[test]
    fn arguments_may_have_others_between_them() {
        assert!(runs("git push --force", "git push origin main --force"));
        assert!(runs("git push --force", "git push --force-with-lease"));
        assert!(!runs("git push --force-with-lease", "git push --force; git push --forced"));
        assert!(runs("docker compose up", "docker compose -f dev.yml up -d"));
        assert!(!runs("docker compose up", "docker compose down; docker up"));
        assert!(runs("pip install flask", "pip install -U 'flask==3.0'"));
        assert!(!runs("pip install flask", "pip install flask-login"));
        assert!(runs("git log --format", "git log --format=%h"));
        assert!(runs("kubectl apply -f", "KUBECONFIG=a kubectl -n x apply -f b.yml"));
    }

    #[test]
    fn a_query_is_one_command_of_several_words() {
        for query in ["rm", "", "ls; rm -rf x", "\"rm\"", "sudo rm"] {
            assert_eq!(TypedCommand::of(query), None, "{query}");
        }
        let has_option = |query| TypedCommand::of(query).unwrap().has_option();
        assert!(has_option("`rm -rf`") && has_option("git push --force"));
        assert!(!has_option("docker compose up") && !has_option("a - b"));
    }
}
