//! Finds the lines of a text, and the quality of a cut before each.

use std::ops::Range;

use super::super::tokens;
use crate::model::ContentType;

/// The quality of a place to cut a text, worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum CutQuality {
    /// Within a code block that must not be cut.
    Never,
    /// Within a word.
    Character,
    /// Between words.
    Word,
    /// Between sentences.
    Sentence,
    /// Between lines.
    Line,
    /// Between list items, and at blank lines in a code block that is too long for one chunk.
    Item,
    /// Between paragraphs, before and after code blocks.
    Paragraph,
    /// Before a heading.
    Heading,
    /// The end of the text.
    End,
}

/// The lines of a text.
#[derive(Debug, Default)]
pub(super) struct Lines {
    /// The start of each line that is not blank, ascending, and the quality of a cut there.
    pub starts: Vec<(usize, CutQuality)>,
    /// Code blocks that must not be cut, ascending, including the line ending after the closing fence.
    pub whole: Vec<Range<usize>>,
}

/// Scans the lines of `text` according to its content type. Code blocks of at most `target` tokens must not be cut.
pub(super) fn scan(content_type: ContentType, text: &str, target: usize) -> Lines {
    match content_type {
        ContentType::ToolOutput | ContentType::ToolCall => plain(text, CutQuality::Line, CutQuality::Line),
        ContentType::UserQuery => plain(text, CutQuality::Sentence, CutQuality::Paragraph),
        ContentType::AssistantResponse | ContentType::AssistantThinking | ContentType::System => {
            let mut lines = markdown(text);
            lines.whole.retain(|block| fits(text, block, target));
            lines
        }
    }
}

fn fits(text: &str, block: &Range<usize>, target: usize) -> bool {
    text.get(block.clone()).is_some_and(|block| tokens::count_up_to(block.trim(), target).is_some())
}

/// Text without markup: `line` is the quality of a cut between lines, `paragraph` of one after a blank line.
fn plain(text: &str, line: CutQuality, paragraph: CutQuality) -> Lines {
    let mut lines = Lines::default();
    let mut after_blank = false;
    for (start, content) in lines_of(text) {
        let blank = content.trim().is_empty();
        if !blank {
            lines.starts.push((start, if after_blank { paragraph } else { line }));
        }
        after_blank = blank;
    }
    lines
}

fn markdown(text: &str) -> Lines {
    let mut lines = Lines::default();
    let mut state = Markdown::default();
    let mut open: Option<(usize, Fence<'_>)> = None;
    for (start, line) in lines_of(text) {
        let content = line.trim();
        if content.is_empty() {
            state.after_blank = true;
            continue;
        }
        let cut = match open {
            Some((block, fence)) if fence.is_closed_by(content) => {
                lines.whole.push(block..start + line.len());
                open = None;
                state.close_block()
            }
            Some(_) => state.code_line(),
            None => {
                open = Fence::opened_by(content).map(|fence| (start, fence));
                state.text_line(content, open.is_some())
            }
        };
        lines.starts.push((start, cut));
    }
    if let Some((block, _)) = open {
        lines.whole.push(block..text.len());
    }
    lines
}

/// Properties of the lines before the next one.
#[derive(Debug, Default)]
struct Markdown {
    after_blank: bool,
    after_heading: bool,
    after_block: bool,
}

impl Markdown {
    fn text_line(&mut self, content: &str, opens_block: bool) -> CutQuality {
        let heading = is_heading(content);
        let cut = if self.after_heading {
            // A heading stays with the text below it.
            CutQuality::Line
        } else if heading {
            CutQuality::Heading
        } else if self.after_blank || self.after_block || opens_block {
            CutQuality::Paragraph
        } else if is_list_item(content) {
            CutQuality::Item
        } else {
            CutQuality::Line
        };
        *self = Self { after_heading: heading, ..Self::default() };
        cut
    }

    fn code_line(&mut self) -> CutQuality {
        let cut = if self.after_blank { CutQuality::Item } else { CutQuality::Line };
        *self = Self::default();
        cut
    }

    fn close_block(&mut self) -> CutQuality {
        *self = Self { after_block: true, ..Self::default() };
        CutQuality::Line
    }
}

/// The fence that opened a code block: three or more backticks or tildes.
#[derive(Debug, Clone, Copy)]
struct Fence<'a>(&'a str);

impl<'a> Fence<'a> {
    /// Any indentation is accepted: code blocks in lists have some.
    fn opened_by(line: &'a str) -> Option<Self> {
        let mark = line.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
        let info = line.trim_start_matches(mark);
        let fence = line.strip_suffix(info)?;
        // Three backticks with more backticks later in the line are code within a paragraph.
        (fence.len() >= 3 && !(mark == '`' && info.contains('`'))).then_some(Self(fence))
    }

    fn is_closed_by(self, line: &str) -> bool {
        line.starts_with(self.0) && line.chars().all(|c| self.0.starts_with(c))
    }
}

/// `# ` to `###### `.
fn is_heading(line: &str) -> bool {
    let rest = line.trim_start_matches('#');
    (1..=6).contains(&(line.len() - rest.len())) && (rest.is_empty() || rest.starts_with([' ', '\t']))
}

/// `- `, `* `, `+ `, `1. ` or `1) `.
fn is_list_item(line: &str) -> bool {
    let digits = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let marks: &[char] = if digits.len() == line.len() { &['-', '*', '+'] } else { &['.', ')'] };
    digits.strip_prefix(marks).is_some_and(|rest| rest.starts_with([' ', '\t']))
}

/// The lines of `text` with their offsets.
fn lines_of(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut next = 0;
    text.split_inclusive('\n').map(move |line| {
        let start = next;
        next += line.len();
        (start, line)
    })
}
