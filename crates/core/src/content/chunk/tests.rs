use proptest::prelude::*;

use super::*;

/// Small enough for short texts; without overlap, so that chunks begin where the one before ends.
const SMALL: ChunkSettings =
    ChunkSettings { threshold_tokens: 64, target_tokens: 64, overlap_tokens: 0, min_tokens: 8 };

/// Cuts `text` and checks the properties of all chunks.
fn checked<'a>(content_type: ContentType, text: &'a str, settings: &ChunkSettings) -> Vec<Chunk<'a>> {
    let chunks = chunk(content_type, text, settings);
    let characters: Vec<char> = text.chars().collect();
    let mut covered = vec![false; characters.len()];
    let token_count = tokens::count(text);
    assert!(token_count <= text.len());
    let whole = token_count <= settings.threshold_tokens;
    for (index, chunk) in chunks.iter().enumerate() {
        let span = chunk.span_start as usize..chunk.span_end as usize;
        assert_eq!(chunk.index as usize, index);
        assert_eq!(chunk.total as usize, chunks.len());
        assert_eq!(chunk.text, characters[span.clone()].iter().collect::<String>());
        assert_eq!(chunk.token_count as usize, tokens::count(chunk.text));
        assert!(whole || chunk.token_count as usize <= settings.target_tokens, "{chunk:?}");
        assert!(!chunk.text.trim().is_empty());
        covered[span].fill(true);
    }
    for pair in chunks.windows(2) {
        assert!(pair[0].span_start < pair[1].span_start && pair[0].span_end < pair[1].span_end, "{pair:?}");
    }
    assert!(characters.iter().zip(&covered).all(|(c, covered)| c.is_whitespace() || *covered), "{chunks:?}");
    assert_eq!(chunks.is_empty(), text.trim().is_empty());
    assert!(!whole || chunks.len() <= 1);
    chunks
}

fn texts<'a>(chunks: &[Chunk<'a>]) -> Vec<&'a str> {
    chunks.iter().map(|chunk| chunk.text).collect()
}

/// `count` sentences of about ten tokens.
fn sentences(count: usize) -> String {
    (0..count).map(|n| format!("This is sentence number {n} of the text. ")).collect()
}

#[test]
fn a_text_up_to_the_threshold_stays_as_it_is() {
    let text = "  two words \n";
    let chunks = checked(ContentType::UserQuery, text, &ChunkSettings::default());
    assert_eq!(texts(&chunks), [text]);
    assert_eq!((chunks[0].span_start, chunks[0].span_end, chunks[0].total), (0, 13, 1));
}

#[test]
fn blank_texts_have_no_chunks() {
    for text in ["", " ", "\n\t \u{A0}", &" \n".repeat(50_000)] {
        assert!(checked(ContentType::AssistantResponse, text, &SMALL).is_empty());
    }
}

#[test]
fn the_default_settings_are_those_of_the_schema() {
    let settings = ChunkSettings::default();
    assert_eq!((settings.threshold_tokens, settings.target_tokens), (8192, 1024));
    assert_eq!((settings.overlap_tokens, settings.min_tokens), (128, 64));
    let text = sentences(1000);
    let chunks = checked(ContentType::UserQuery, &text, &settings);
    assert!((9..=15).contains(&chunks.len()), "{}", chunks.len());
}

#[test]
fn texts_are_cut_at_the_best_places() {
    use ContentType::{AssistantResponse, AssistantThinking, ToolOutput, UserQuery};
    let abbreviations = "It reads some formats, e.g. parquet files and i.e. nothing else at all. ".repeat(20);
    let chinese = "会话存储把向量和文本放在一起。它从哪里来？没有人知道！".repeat(30);
    let output = (0..100).map(|n| format!("    {n}: some output. With a stop inside\n")).collect();
    let section =
        "## Heading\n\nA first paragraph of some words.\n\nA second paragraph with some more words.\n\n";
    let list = (0..50).map(|n| format!("{n}. first line of an item\n   second line of the item\n")).collect();
    let code = format!("```rust\n{}```\n", "let x = some_function(1, 2, 3);\n".repeat(50));
    /// A name, the content type, the text, and a property of each chunk.
    type Case = (&'static str, ContentType, String, fn(&str) -> bool);
    let cases: [Case; 7] = [
        ("between sentences", UserQuery, sentences(60), |chunk| {
            chunk.starts_with("This is") && chunk.ends_with("text.")
        }),
        ("not after abbreviations", UserQuery, abbreviations, |chunk| chunk.starts_with("It reads")),
        ("between Chinese sentences", AssistantResponse, chinese, |chunk| {
            chunk.ends_with(['。', '？', '！'])
        }),
        ("between lines of output", ToolOutput, output, |chunk| {
            chunk.starts_with(|c: char| c.is_ascii_digit()) && chunk.ends_with("inside")
        }),
        ("before headings", AssistantThinking, section.repeat(20), |chunk| chunk.ends_with("more words.")),
        ("between list items", AssistantResponse, list, |chunk| chunk.ends_with("second line of the item")),
        ("between lines of long code", AssistantResponse, code, |chunk| {
            chunk.ends_with([';', '`']) && !chunk.starts_with("some")
        }),
    ];
    for (places, content_type, text, is_cut_there) in cases {
        for chunk in checked(content_type, &text, &SMALL) {
            assert!(is_cut_there(chunk.text), "{places}: {chunk:?}");
        }
    }
}

#[test]
fn chunks_overlap_by_whole_sentences() {
    let settings = ChunkSettings { overlap_tokens: 16, ..SMALL };
    let text = sentences(60);
    let chunks = checked(ContentType::UserQuery, &text, &settings);
    for pair in chunks.windows(2) {
        let overlap = pair[0].span_end.checked_sub(pair[1].span_start).unwrap();
        let repeated: String =
            text.chars().skip(pair[1].span_start as usize).take(overlap as usize).collect();
        assert!(overlap > 0 && tokens::count(&repeated) <= settings.overlap_tokens, "{repeated:?}");
        assert!(repeated.starts_with("This is") && repeated.ends_with('.'), "{repeated:?}");
    }
}

#[test]
fn without_overlap_nothing_is_repeated() {
    let text = sentences(60);
    let chunks = checked(ContentType::UserQuery, &text, &SMALL);
    assert!(chunks.len() > 5);
    assert!(chunks.windows(2).all(|pair| pair[0].span_end <= pair[1].span_start));
}

#[test]
fn a_heading_stays_with_what_follows() {
    let text =
        format!("{}\n\n", "word ".repeat(20).trim_end()).repeat(2) + "# Heading\n\n" + &"more ".repeat(30);
    let chunks = checked(ContentType::AssistantResponse, &text, &SMALL);
    assert!(!chunks.iter().any(|chunk| chunk.text.ends_with("Heading")), "{chunks:?}");
}

#[test]
fn code_blocks_stay_whole_where_they_fit() {
    let block = format!("```rust\n{}```", "let x = 1;\n\n".repeat(9));
    assert!((50..=64).contains(&tokens::count(&block)));
    let text = format!("{}\n{block}\nand then\n~~~\n```\n~~~\n{block}\n", sentences(3)).repeat(5);
    let chunks = checked(ContentType::AssistantResponse, &text, &SMALL);
    assert_eq!(text.matches(&block).count(), 10);
    let held: usize = chunks.iter().map(|chunk| chunk.text.matches(&block).count()).sum();
    assert_eq!(held, 10);
}

#[test]
fn a_code_block_of_just_the_target_stays_whole() {
    let block = format!("```\n{}```", "a b\n".repeat(20));
    let settings = ChunkSettings { target_tokens: tokens::count(&block), ..SMALL };
    let text = format!("Before.\n\n{block}\n\nAfter.\n\n{block}");
    let chunks = checked(ContentType::AssistantResponse, &text, &settings);
    assert_eq!(chunks.iter().filter(|chunk| chunk.text == block).count(), 2, "{chunks:?}");
}

#[test]
fn a_code_block_without_end_does_no_harm() {
    let text = format!("{}\n```\n{}", sentences(10), "code line\n".repeat(200));
    checked(ContentType::AssistantResponse, &text, &SMALL);
}

#[test]
fn no_last_chunk_is_tiny() {
    let settings = ChunkSettings { min_tokens: 16, ..SMALL };
    for words in 60..200 {
        let text = "word ".repeat(words);
        let chunks = checked(ContentType::ToolOutput, &text, &settings);
        assert!(
            chunks.iter().all(|chunk| chunk.token_count >= 16 || chunks.len() == 1),
            "{words}: {chunks:?}"
        );
    }
}

#[test]
fn a_small_piece_before_a_code_block_goes_with_what_precedes() {
    let block = format!("```\n{}```", "a b\n".repeat(18));
    let text = format!("{}\n\n# Heading\n\n{block}\n\n{}", "word ".repeat(40).trim_end(), sentences(5));
    let settings = ChunkSettings { min_tokens: 16, ..SMALL };
    let chunks = checked(ContentType::AssistantResponse, &text, &settings);
    assert!(chunks.iter().all(|chunk| chunk.token_count >= 16), "{chunks:?}");
}

#[test]
fn text_without_spaces_is_cut_at_the_target() {
    let base64: String = (0..40_000_u32)
        .map(|n| {
            char::from(
                b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
                    [(n * n % 8191 % 64) as usize],
            )
        })
        .collect();
    for text in [base64, "a".repeat(100_000), "漢字".repeat(20_000), "=".repeat(100_000), "🦀".repeat(20_000)]
    {
        let chunks = checked(ContentType::ToolOutput, &text, &ChunkSettings::for_limits(512, 512));
        let total: usize = chunks.iter().map(|chunk| chunk.token_count as usize).sum();
        assert!(chunks.iter().rev().skip(2).all(|chunk| chunk.token_count > 256));
        assert!(total < tokens::count(&text) * 3 / 2 + 512);
    }
}

#[test]
fn rare_characters_are_never_cut() {
    // Three or four tokens per character, whose ends do not always coincide.
    let texts = ["𒀀𒀁𒐫", "\u{10FFFF}\u{E000}", "ꙮ\u{300}\u{301}\u{302}", "👩‍👩‍👧‍👦", "ก็็็็็", "\u{FFFD}\u{FFFE}"];
    for text in texts {
        for target in [16, 17, 31, 64] {
            checked(ContentType::UserQuery, &text.repeat(500), &ChunkSettings::for_limits(0, target));
        }
    }
}

#[test]
fn strange_settings_do_no_harm() {
    let text = sentences(50);
    for (overlap_tokens, min_tokens) in [(0, 0), (1000, 0), (0, 1000), (1000, 1000), (usize::MAX, usize::MAX)]
    {
        let settings = ChunkSettings { threshold_tokens: 0, target_tokens: 32, overlap_tokens, min_tokens };
        checked(ContentType::AssistantResponse, &text, &settings);
    }
    assert!(!chunk(ContentType::UserQuery, &text, &ChunkSettings::for_limits(0, 0)).is_empty());
    assert_eq!(chunk(ContentType::UserQuery, &text, &ChunkSettings::for_limits(0, usize::MAX)).len(), 1);
}

fn any_content_type() -> impl Strategy<Value = ContentType> {
    prop::sample::select(&ContentType::ALL[..])
}

/// Texts with all kinds of pieces that affect where a text is cut.
fn any_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => "[a-zA-Z]{1,12} ",
        2 => "[A-Z][a-z]{2,8}[.!?] ",
        2 => Just("\n".to_owned()),
        1 => Just("\n\n".to_owned()),
        1 => Just("\n```\n".to_owned()),
        1 => "\n#{1,6} [a-z]{1,9}\n",
        1 => "\n(-|[0-9][.]) [a-z ]{1,20}",
        1 => Just("<|endoftext|>".to_owned()),
        1 => "[A-Za-z0-9+/]{40,200}",
        1 => "[ \t\r\n]{1,30}",
        1 => "[漢字仮名。！、]{1,20}",
        1 => "\\PC{1,20}",
        1 => "(\u{301}|🦀|\u{200D}|😀|\u{FE0F}|\u{10FFFF}){1,10}",
        1 => "(=|-|#|`){1,100}",
    ];
    prop::collection::vec(piece, 0..120).prop_map(|pieces| pieces.concat())
}

/// Paragraphs and code blocks, and the code blocks alone.
fn any_document() -> impl Strategy<Value = (String, Vec<String>)> {
    let code = "[a-z0-9 =;#-]{0,20}(\n[a-z0-9 =;#-]{0,20}){0,8}"
        .prop_map(|code| (true, format!("```rust\n{code}\n```")));
    let prose = "[A-Z][a-z]{1,9}([ \n][a-z]{1,9}){0,30}[.]".prop_map(|prose| (false, prose));
    prop::collection::vec(prop_oneof![code, prose], 1..20).prop_map(|parts| {
        let text = parts.iter().map(|(_, part)| part.as_str()).collect::<Vec<_>>().join("\n");
        (text, parts.into_iter().filter(|(is_code, _)| *is_code).map(|(_, part)| part).collect())
    })
}

/// Found by the test below: a chunk without room for the overlap began where the next one began.
#[test]
fn a_chunk_after_one_without_overlap_begins_later() {
    let text = "\n# oaaab\n`-#`#-#-==`#-#-#-`-=-#-#-`#==--#-#-`#-`-==#-#-`-`-`=`aGcAojb JL   \t\n \r  \n \r \r \t\n\t\r\t\r\r\r\
        字漢！漢名！名仮！名！仮仮漢名仮。、。漢仮仮！仮、名名名！名！";
    let settings = ChunkSettings { threshold_tokens: 0, target_tokens: 20, overlap_tokens: 5, min_tokens: 0 };
    checked(ContentType::UserQuery, text, &settings);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn what_is_true_of_all_chunks_is_true_of_any_text(
        content_type in any_content_type(),
        text in any_text(),
        threshold in 0_usize..128,
        target in 16_usize..128,
        overlap_tokens in 0_usize..32,
        min_tokens in 0_usize..32,
    ) {
        let settings = ChunkSettings { threshold_tokens: threshold, target_tokens: target, overlap_tokens, min_tokens };
        checked(content_type, &text, &settings);
    }

    #[test]
    fn code_blocks_that_fit_are_whole_in_any_document((text, blocks) in any_document(), target in 16_usize..96) {
        let settings = ChunkSettings::for_limits(0, target);
        let chunks = checked(ContentType::AssistantResponse, &text, &settings);
        for block in blocks.iter().filter(|block| tokens::count(block) <= target) {
            prop_assert!(chunks.iter().any(|chunk| chunk.text.contains(block.as_str())), "{block:?} in {chunks:?}");
        }
    }
}
