//! Converts texts to the ids of their first tokens, and token ids to readable tokens.

use std::ops::Range;
use std::panic::catch_unwind;
use std::path::Path;

use crate::error::EncoderError;
use crate::small_file;

mod description;
mod expansion;
mod hugging_face;
mod pairs;
mod parts;
#[cfg(test)]
mod parts_tests;
mod unigram;
mod word_piece;

use description::Description;
use hugging_face::HuggingFace;
pub(crate) use pairs::Question;
use pairs::Template;
use word_piece::WordPiece;

/// Length in bytes up to which texts are tokenized whole, so that their truncated tokens are counted exactly.
const WHOLE_BYTES: usize = 16 * 1024;
/// Approximate length in bytes of the pieces in which longer texts are tokenized, until there are enough
/// tokens.
const PIECE_BYTES: usize = 8 * 1024;
/// Highest length of a piece in bytes, at which it ends even inside a word: this bounds memory for texts
/// without whitespace.
const MAX_PIECE_BYTES: usize = 1024 * 1024;
/// Longest prefix of a text, in bytes, that is given to a tokenizer which cannot work in pieces.
const MAX_PREFIX_BYTES: usize = 4 * 1024 * 1024;
/// Longest piece of a Unigram vocabulary that is accepted, in bytes. The library keeps a tree of pieces with
/// one level per byte and frees it recursively, so that a piece of 40,000 bytes ends the process. Published
/// vocabularies have pieces of up to a few dozen bytes.
const MAX_UNIGRAM_PIECE: usize = 4096;
/// Length above which runs of ASCII letters and digits are cut in very long texts: WordPiece makes a single
/// unknown token of the run in either case.
const LONG_RUN: usize = 256;

/// The tokens of one text, special tokens included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tokens {
    pub(crate) ids: Vec<u32>,
    /// Number of tokens cut off; a lower bound for texts above [`WHOLE_BYTES`].
    pub(crate) truncated: u32,
}

/// A `tokenizer.json` whose own truncation and padding are switched off: both are done here.
pub(crate) struct TextTokenizer {
    inner: HuggingFace,
    prefix: Vec<u32>,
    suffix: Vec<u32>,
    /// Highest number of tokens of a text, special tokens included.
    limit: usize,
    /// Whether the text may be split at whitespace without changing its tokens, and long words become one
    /// unknown token.
    word_piece: bool,
    /// The fast tokenizer for plain text, if this tokenizer has one.
    plain: Option<WordPiece>,
    /// The special tokens around a question and a text, for models that read both together.
    pairs: Option<Template>,
}

impl std::fmt::Debug for TextTokenizer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TextTokenizer")
            .field("limit", &self.limit)
            .field("word_piece", &self.word_piece)
            .finish_non_exhaustive()
    }
}

impl TextTokenizer {
    /// Loads a `tokenizer.json`.
    ///
    /// # Errors
    /// [`EncoderError::ModelNotReadable`] if the file is not a tokenizer, or if its special tokens leave no
    /// room for text below `limit`.
    pub(crate) fn load(path: &Path, limit: usize) -> Result<Self, EncoderError> {
        let unreadable = |reason: String| EncoderError::ModelNotReadable { path: path.to_path_buf(), reason };
        let bytes = small_file::read(path).map_err(|error| unreadable(error.to_string()))?;
        if longest_piece(&bytes) > MAX_UNIGRAM_PIECE {
            return Err(unreadable(format!(
                "a piece of its vocabulary is longer than {MAX_UNIGRAM_PIECE} bytes"
            )));
        }
        // Before the library puts anything together.
        let description = Description::read(&bytes).map_err(unreadable)?;
        if let Some(problem) =
            expansion::problem(&description, limit).or_else(|| parts::problem(&description))
        {
            return Err(unreadable(problem));
        }
        // The library panics over some files that are JSON and no tokenizer, over others with the first text: found by
        // `tests/fuzz.rs`.
        let opened = catch_unwind(|| {
            let inner = HuggingFace::from_bytes(&bytes).map_err(|error| error.to_string())?;
            let special = special_tokens(&inner)?;
            Ok((inner, special))
        });
        let broken = || Err("it is not as a tokenizer has to be".to_owned());
        let (inner, (prefix, suffix)) = opened.unwrap_or_else(|_| broken()).map_err(unreadable)?;
        if prefix.len() + suffix.len() >= limit {
            return Err(unreadable(format!("special tokens leave no room in {limit} tokens")));
        }
        let word_piece = is_word_piece(&bytes);
        let plain = WordPiece::from_json(&bytes);
        Ok(Self { inner, prefix, suffix, limit, word_piece, plain, pairs: None })
    }

    /// The first tokens of a text. An empty text gives the special tokens alone.
    ///
    /// The tokens are those of the whole text, whatever its length, with two exceptions: WordPiece text with a stretch of
    /// more than a megabyte without whitespace and of few tokens, and, for other tokenizers, text whose first four
    /// megabytes hold fewer tokens than the limit.
    ///
    /// # Errors
    /// [`EncoderError::Runtime`] if the tokenizer fails.
    pub(crate) fn encode(&self, text: &str) -> Result<Tokens, EncoderError> {
        self.encode_while(text, &|| Ok(()))
    }

    /// The first tokens of a text, for a caller that may stop waiting: `goes_on` is called before each piece
    /// of a long text, since a piece of a megabyte without whitespace takes a tenth of a second.
    ///
    /// # Errors
    /// As [`TextTokenizer::encode`], and those of `goes_on`.
    pub(crate) fn encode_while(
        &self,
        text: &str,
        goes_on: &dyn Fn() -> Result<(), EncoderError>,
    ) -> Result<Tokens, EncoderError> {
        let room = self.limit - self.prefix.len() - self.suffix.len();
        let mut content = self.first_tokens(text, room, goes_on)?;
        let truncated = content.len().saturating_sub(room);
        content.truncate(room);
        let mut ids = Vec::with_capacity(self.prefix.len() + content.len() + self.suffix.len());
        ids.extend_from_slice(&self.prefix);
        ids.append(&mut content);
        ids.extend_from_slice(&self.suffix);
        Ok(Tokens { ids, truncated: u32::try_from(truncated).unwrap_or(u32::MAX) })
    }

    /// The tokens of a text without special tokens: all of them, or more than `room`.
    fn first_tokens(
        &self,
        text: &str,
        room: usize,
        goes_on: &dyn Fn() -> Result<(), EncoderError>,
    ) -> Result<Vec<u32>, EncoderError> {
        if text.len() <= WHOLE_BYTES {
            self.tokenize(text)
        } else if self.word_piece {
            self.tokenize_pieces(text, room, goes_on)
        } else {
            self.tokenize_prefix(text, room)
        }
    }

    /// Byte range in the text of each token of [`TextTokenizer::encode`]; `None` for special tokens, and for
    /// those of a huge text that are beyond the part looked at.
    ///
    /// # Errors
    /// [`EncoderError::Runtime`] if the tokenizer fails.
    pub(crate) fn places(
        &self,
        text: &str,
        tokens: &Tokens,
    ) -> Result<Vec<Option<Range<usize>>>, EncoderError> {
        let mut end = text.len().min(WHOLE_BYTES);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let encoding = self
            .inner
            .encode(&text[..end], false)
            .map_err(|error| EncoderError::Runtime { phase: "tokenize", reason: error.to_string() })?;
        let mut places = vec![None; tokens.ids.len()];
        let content = self.prefix.len()..tokens.ids.len() - self.suffix.len();
        let encoded = encoding.get_ids().iter().zip(encoding.get_offsets());
        for (at, (id, (start, stop))) in content.zip(encoded) {
            // A cut through a word changes the tokens there, and all behind may be shifted.
            if tokens.ids[at] != *id {
                break;
            }
            places[at] = (start < stop && text.is_char_boundary(*start) && text.is_char_boundary(*stop))
                .then_some(*start..*stop);
        }
        Ok(places)
    }

    /// The tokens of a text without special tokens; used to weigh query tokens by a table.
    pub(crate) fn content<'a>(&self, tokens: &'a Tokens) -> &'a [u32] {
        &tokens.ids[self.prefix.len()..tokens.ids.len() - self.suffix.len()]
    }

    /// The highest id of a token: of the vocabulary, of added tokens, and of those around texts and pairs.
    pub(crate) fn highest_id(&self) -> u32 {
        let around = self.prefix.iter().chain(&self.suffix);
        let around = around.chain(self.pairs.iter().flat_map(Template::ids)).copied();
        let words = self.plain.as_ref().and_then(WordPiece::highest_id);
        let words = words.unwrap_or_else(|| self.inner.highest_of_vocabulary());
        around.fold(words.max(self.inner.highest_of_added()), u32::max)
    }

    /// Number of entries in the vocabulary, added tokens included.
    pub(crate) fn vocabulary_size(&self) -> usize {
        self.inner.vocabulary_size()
    }

    /// Readable tokens by id, for `size` ids; `None` for an id without a token. A '.' is written `__`, since
    /// a dot separates fields in a document.
    pub(crate) fn vocabulary(&self, size: usize) -> Vec<Option<Box<str>>> {
        (0..size)
            .map(|id| {
                let token = self.inner.id_to_token(u32::try_from(id).ok()?)?;
                Some(token.replace('.', "__").into_boxed_str())
            })
            .collect()
    }

    /// The id of a token, in the model's own spelling.
    pub(crate) fn id(&self, token: &str) -> Option<u32> {
        self.inner.token_to_id(token)
    }

    fn tokenize(&self, text: &str) -> Result<Vec<u32>, EncoderError> {
        match &self.plain {
            Some(plain) => plain.encode(text, |stretch| self.tokenize_any(stretch)),
            None => self.tokenize_any(text),
        }
    }

    fn tokenize_any(&self, text: &str) -> Result<Vec<u32>, EncoderError> {
        let encoding = self
            .inner
            .encode_fast(text, false)
            .map_err(|error| EncoderError::Runtime { phase: "tokenize", reason: error.to_string() })?;
        Ok(encoding.get_ids().to_vec())
    }

    fn tokenize_pieces(
        &self,
        text: &str,
        room: usize,
        goes_on: &dyn Fn() -> Result<(), EncoderError>,
    ) -> Result<Vec<u32>, EncoderError> {
        let mut rest = text;
        let mut ids = Vec::new();
        while !rest.is_empty() && ids.len() <= room {
            goes_on()?;
            let (piece, after) = next_piece(rest);
            ids.append(&mut self.tokenize(&piece)?);
            rest = after;
        }
        Ok(ids)
    }

    fn tokenize_prefix(&self, text: &str, room: usize) -> Result<Vec<u32>, EncoderError> {
        let mut length = WHOLE_BYTES;
        loop {
            let mut end = length.min(MAX_PREFIX_BYTES).min(text.len());
            while !text.is_char_boundary(end) {
                end -= 1;
            }
            let ids = self.tokenize(&text[..end])?;
            // A cut changes tokens beside it only: four times enough leaves those far behind.
            if end == text.len() || end >= MAX_PREFIX_BYTES - 4 || ids.len() >= 4 * room {
                return Ok(ids);
            }
            length *= 4;
        }
    }
}

impl TextTokenizer {
    /// Finds the special tokens that the tokenizer puts around pairs; [`TextTokenizer::question`] and [`TextTokenizer::pair`] need it.
    ///
    /// # Errors
    /// [`EncoderError::ModelNotReadable`] if the file's template is not a question and then a text, or leaves no room for them.
    pub(crate) fn find_pairs(&mut self, path: &Path) -> Result<(), EncoderError> {
        let unreadable = |reason: String| EncoderError::ModelNotReadable { path: path.to_path_buf(), reason };
        self.pairs = Some(Template::find(&self.inner, self.limit).map_err(unreadable)?);
        Ok(())
    }

    /// Encodes a question, up to the most tokens that a sequence can take.
    ///
    /// # Errors
    /// As [`TextTokenizer::encode_while`].
    pub(crate) fn question(
        &self,
        text: &str,
        goes_on: &dyn Fn() -> Result<(), EncoderError>,
    ) -> Result<Question, EncoderError> {
        let room = self.room_of_pair()?.1;
        let mut ids = self.first_tokens(text, room, goes_on)?;
        // A pair never has more tokens of the question than its room, even if the text is empty.
        ids.truncate(room);
        Ok(Question { ids })
    }

    /// Encodes a question and a text as one sequence, as [`Template::join`] does; also where its tokens of the second type begin.
    ///
    /// # Errors
    /// As [`TextTokenizer::encode_while`].
    pub(crate) fn pair(
        &self,
        question: &Question,
        text: &str,
        goes_on: &dyn Fn() -> Result<(), EncoderError>,
    ) -> Result<(Tokens, usize), EncoderError> {
        let (template, room) = self.room_of_pair()?;
        let text = self.first_tokens(text, room, goes_on)?;
        let (ids, truncated, types) = template.join(question, &text, room);
        Ok((Tokens { ids, truncated: u32::try_from(truncated).unwrap_or(u32::MAX) }, types))
    }

    fn room_of_pair(&self) -> Result<(&Template, usize), EncoderError> {
        let missing =
            || EncoderError::Runtime { phase: "tokenize", reason: "the model reads no pairs".into() };
        let template = self.pairs.as_ref().ok_or_else(missing)?;
        Ok((template, self.limit - template.specials()))
    }
}

/// Splits off a piece of text up to a whitespace and shortens it: runs of ASCII whitespace become one space,
/// long runs of ASCII letters and digits are cut. Neither changes the tokens that WordPiece makes of it.
/// Returns the piece and the rest of the text.
fn next_piece(text: &str) -> (String, &str) {
    let mut piece = String::with_capacity(PIECE_BYTES + LONG_RUN);
    let mut run = 0;
    let mut after_space = false;
    for (at, char) in text.char_indices() {
        let space = char.is_whitespace();
        if (space && piece.len() >= PIECE_BYTES) || piece.len() >= MAX_PIECE_BYTES {
            return (piece, &text[at..]);
        }
        run = if char.is_ascii_alphanumeric() { run + 1 } else { 0 };
        let ascii_space = char.is_ascii_whitespace();
        if !(run > LONG_RUN || (ascii_space && after_space)) {
            piece.push(if ascii_space { ' ' } else { char });
        }
        after_space = ascii_space;
    }
    (piece, "")
}

/// Length in bytes of the longest piece of a Unigram vocabulary; 0 for other vocabularies.
fn longest_piece(json: &[u8]) -> usize {
    #[derive(serde::Deserialize)]
    struct Unigram<'a> {
        #[serde(borrow)]
        vocab: Vec<(std::borrow::Cow<'a, str>, f64)>,
    }
    #[derive(serde::Deserialize)]
    struct Description<'a> {
        #[serde(borrow)]
        model: Unigram<'a>,
    }
    let pieces = serde_json::from_slice::<Description<'_>>(json).map(|description| description.model.vocab);
    pieces.unwrap_or_default().iter().map(|(piece, _)| piece.len()).max().unwrap_or(0)
}

/// Whether `tokenizer.json` describes BERT's WordPiece, whose words never reach across whitespace.
fn is_word_piece(json: &[u8]) -> bool {
    #[derive(serde::Deserialize)]
    struct Kind {
        #[serde(rename = "type")]
        kind: Option<String>,
        max_input_chars_per_word: Option<usize>,
    }
    #[derive(serde::Deserialize)]
    struct Description {
        pre_tokenizer: Option<Kind>,
        model: Kind,
    }
    let Ok(description) = serde_json::from_slice::<Description>(json) else { return false };
    let splits =
        description.pre_tokenizer.and_then(|kind| kind.kind).is_some_and(|kind| kind == "BertPreTokenizer");
    let model = description.model;
    let word_piece = model.kind.as_deref().unwrap_or("WordPiece") == "WordPiece"
        && model.max_input_chars_per_word.is_some();
    splits && word_piece && model.max_input_chars_per_word.is_some_and(|chars| chars < LONG_RUN)
}

/// Finds the tokens that the tokenizer puts before and after a text, by encoding a text with and without
/// them.
fn special_tokens(tokenizer: &HuggingFace) -> Result<(Vec<u32>, Vec<u32>), String> {
    let encode = |special| tokenizer.encode_fast("a", special).map_err(|error| error.to_string());
    let (bare, full) = (encode(false)?, encode(true)?);
    let (bare, full) = (bare.get_ids(), full.get_ids());
    if bare.is_empty() {
        return Err("tokenizer makes nothing of the letter a".into());
    }
    let start = full
        .windows(bare.len())
        .position(|window| window == bare)
        .ok_or("tokenizer changes a text when it adds special tokens")?;
    Ok((full[..start].to_vec(), full[start + bare.len()..].to_vec()))
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::prelude::BASE64_STANDARD;
    use std::cell::Cell;
    use std::path::Path;

    use proptest::prelude::*;

    use crate::error::EncoderError;

    use super::{LONG_RUN, MAX_PIECE_BYTES, PIECE_BYTES, TextTokenizer, Tokens};

    /// A test tokenizer: WordPiece with a small vocabulary and BERT's template.
    pub(super) const TOKENIZER: &str = r###"{
        "version": "1.0", "truncation": {"direction":"Right","max_length":4,"strategy":"LongestFirst","stride":0},
        "padding": {"strategy":{"Fixed":8},"direction":"Right","pad_to_multiple_of":null,"pad_id":0,"pad_type_id":0,"pad_token":"[PAD]"},
        "added_tokens": [
            {"id":2,"content":"[CLS]","single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":true},
            {"id":3,"content":"[SEP]","single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":true}],
        "normalizer": {"type":"BertNormalizer","clean_text":true,"handle_chinese_chars":true,"strip_accents":null,"lowercase":true},
        "pre_tokenizer": {"type":"BertPreTokenizer"},
        "post_processor": {"type":"TemplateProcessing",
            "single":[{"SpecialToken":{"id":"[CLS]","type_id":0}},{"Sequence":{"id":"A","type_id":0}},{"SpecialToken":{"id":"[SEP]","type_id":0}}],
            "pair":[{"Sequence":{"id":"A","type_id":0}},{"Sequence":{"id":"B","type_id":1}}],
            "special_tokens":{"[CLS]":{"id":"[CLS]","ids":[2],"tokens":["[CLS]"]},"[SEP]":{"id":"[SEP]","ids":[3],"tokens":["[SEP]"]}}},
        "decoder": {"type":"WordPiece","prefix":"##","cleanup":true},
        "model": {"type":"WordPiece","unk_token":"[UNK]","continuing_subword_prefix":"##","max_input_chars_per_word":100,
            "vocab":{"[PAD]":0,"[UNK]":1,"[CLS]":2,"[SEP]":3,"a":4,"b":5,"##b":6,".":7,"c.d":8,"é":9,"中":10}}
    }"###;

    #[test]
    fn a_vocabulary_of_endless_pieces_is_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let load = |length: usize| {
            let pieces = serde_json::json!([["<unk>", 0.0], ["a".repeat(length), -1.0]]);
            let model = serde_json::json!({ "type": "Unigram", "unk_id": 0, "vocab": pieces });
            std::fs::write(file.path(), serde_json::json!({ "version": "1.0", "model": model }).to_string())
                .unwrap();
            TextTokenizer::load(file.path(), 16)
        };
        load(4096).unwrap();
        let refused = load(100_000).unwrap_err();
        assert!(refused.to_string().contains("longer than 4096 bytes"), "{refused}");
    }

    /// A few bytes of a file that become many with the first text.
    #[test]
    fn a_tokenizer_that_makes_much_of_little_is_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let load = |change: &dyn Fn(&mut serde_json::Value)| {
            let mut tokenizer = serde_json::from_str(TOKENIZER).unwrap();
            change(&mut tokenizer);
            std::fs::write(file.path(), tokenizer.to_string()).unwrap();
            TextTokenizer::load(file.path(), 512)
        };
        let refused = |change: &dyn Fn(&mut serde_json::Value), words: &str| {
            let error = load(change).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        };
        let json = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        let long = "x".repeat(1_000_000);
        let replace = |pattern: &str, content: &str, times: usize| {
            let one = serde_json::json!({"type": "Replace", "pattern": json(pattern), "content": content});
            serde_json::json!({"type": "Sequence", "normalizers": vec![one; times]})
        };
        refused(
            &|it| it["normalizer"] = replace(r#"{"String":"a"}"#, &long, 1),
            "inserts a text of 1000000 bytes",
        );
        refused(
            &|it| it["normalizer"] = json(&format!(r#"{{"type":"Prepend","prepend":"{long}"}}"#)),
            "inserts",
        );
        refused(&|it| it["normalizer"] = replace(r#"{"String":"a"}"#, "aaaa", 30), "more than 256 times");
        refused(&|it| it["normalizer"] = replace(r#"{"Regex":""}"#, "aaaa", 4), "more than 256 times");
        // A table without a trie that has one text.
        let charsmap = BASE64_STANDARD.encode([&[0; 4], &[b'a'; 257][..]].concat());
        let precompiled = serde_json::json!({"type": "Precompiled", "precompiled_charsmap": charsmap});
        refused(&|it| it["normalizer"] = precompiled.clone(), "more than 256 times");
        refused(&|it| it["model"]["continuing_subword_prefix"] = long.clone().into(), "inserts");
        let piece = |kind: &str, id: &str| serde_json::json!({kind: {"id": id, "type_id": 0}});
        for template in ["single", "pair"] {
            let texts = vec![piece("Sequence", "A"); 100_000];
            refused(&|it| it["post_processor"][template] = texts.clone().into(), "in 10000");
            let specials = vec![piece("SpecialToken", "[CLS]"); 1000];
            refused(
                &|it| {
                    it["post_processor"][template] = specials.clone().into();
                    it["post_processor"]["special_tokens"]["[CLS]"]["ids"] = vec![2; 10_000].into();
                },
                "leave no room",
            );
        }
        refused(
            &|it| it["post_processor"]["special_tokens"]["[CLS]"]["tokens"] = vec![long.clone()].into(),
            "inserts",
        );
        // What published tokenizers have.
        load(&|it| it["normalizer"] = replace(r#"{"String":" "}"#, "\u{2581}", 1)).unwrap();
        load(&|it| it["normalizer"] = replace(r#"{"Regex":" {2,}"}"#, "\u{2581}", 2)).unwrap();
        load(&|it| it["normalizer"] = replace(r#"{"String":"``"}"#, "\"", 100)).unwrap();
    }

    fn tokenizer(limit: usize) -> TextTokenizer {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), TOKENIZER).unwrap();
        TextTokenizer::load(file.path(), limit).unwrap()
    }

    proptest! {
        /// The fast tokenizer gives the same tokens as the general one, for any text.
        #[test]
        fn plain_text_is_tokenized_as_by_the_library(
            text in r"([ a-cA-C.,'\-\t\n\r\[\]#]|\PC|\[SEP\]|[\x00-\x20\x7f]|é|中|\u{301}|\u{a0}|\u{3000}|ab){0,40}",
        ) {
            let tokenizer = tokenizer(512);
            prop_assert!(tokenizer.plain.is_some());
            prop_assert_eq!(tokenizer.tokenize(&text).unwrap(), tokenizer.tokenize_any(&text).unwrap());
        }
    }

    /// The fast tokenizer gives the same tokens with a real vocabulary, whose words have several pieces.
    #[test]
    fn real_words_are_tokenized_as_by_the_library() {
        let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packages/model-splade-tiny");
        let tokenizer = TextTokenizer::load(&package.join("tokenizer.json"), 512).unwrap();
        let licence = std::fs::read_to_string(package.join("LICENSE")).unwrap();
        let strange = "Unbelievableness antidisestablishmentarianism x1y2z3 naïve 東京 co-operate don't U.S.A. \
            $3.50 50% #1 e=mc^2 \u{200b}zero\u{ad}width Straße ΟΔΟΣ ﬁne I\u{307}stanbul";
        for text in licence.lines().chain([strange, &"q".repeat(101), &"long".repeat(25)]) {
            assert_eq!(tokenizer.tokenize(text).unwrap(), tokenizer.tokenize_any(text).unwrap(), "{text}");
        }
    }

    #[track_caller]
    fn check(text: &str, limit: usize, ids: &[u32], truncated: u32) {
        assert_eq!(tokenizer(limit).encode(text).unwrap(), Tokens { ids: ids.to_vec(), truncated });
    }

    #[test]
    fn short_texts() {
        check("", 8, &[2, 3], 0);
        check("a b ab", 8, &[2, 4, 5, 4, 6, 3], 0);
        check("A. zzz", 8, &[2, 4, 7, 1, 3], 0);
        check("[SEP] a", 8, &[2, 3, 4, 3], 0);
    }

    #[test]
    fn truncated_tokens_are_counted() {
        check("a b a b a", 5, &[2, 4, 5, 4, 3], 2);
        check("a b a", 5, &[2, 4, 5, 4, 3], 0);
    }

    #[test]
    fn readable_tokens() {
        let vocabulary = tokenizer(8).vocabulary(12);
        assert_eq!(vocabulary[7].as_deref(), Some("__"));
        assert_eq!(vocabulary[8].as_deref(), Some("c__d"));
        assert_eq!(vocabulary[6].as_deref(), Some("##b"));
        assert_eq!(vocabulary[11], None);
    }

    /// Tokenizing in pieces gives the same tokens as tokenizing the whole text.
    #[test]
    fn huge_texts_equal_whole_texts() {
        let tokenizer = tokenizer(512);
        let word = "z".repeat(3 * PIECE_BYTES);
        let texts = [
            "ab b. ".repeat(20_000),
            format!("a{}b", " \n\t".repeat(50_000)),
            format!("a {word} b {word} a"),
            "中".repeat(30_000),
            format!("{} b", "\u{0}".repeat(40_000)),
            format!("{}a", "\u{3000}".repeat(30_000)),
            ".".repeat(100_000),
        ];
        for text in texts {
            let whole = tokenizer.tokenize_any(&text).unwrap();
            let pieces = tokenizer.encode(&text).unwrap();
            let kept = whole.len().min(510);
            assert_eq!(tokenizer.content(&pieces), &whole[..kept], "{:.20}…", text);
            assert!(pieces.truncated as usize <= whole.len() - kept);
            assert_eq!(pieces.truncated > 0, whole.len() > kept);
            assert_eq!(tokenizer.content(&Tokens { ids: pieces.ids.clone(), truncated: 0 }).len(), kept);
        }
    }

    /// A text of few tokens and without whitespace is read to its end, unless its caller stops waiting.
    #[test]
    fn long_texts_end_between_pieces_when_nobody_waits() {
        let tokenizer = tokenizer(512);
        let text = "é".repeat(3 * MAX_PIECE_BYTES);
        let asked = Cell::new(0);
        let goes_on = || {
            asked.set(asked.get() + 1);
            if asked.get() > 2 { Err(EncoderError::Cancelled) } else { Ok(()) }
        };
        assert!(matches!(tokenizer.encode_while(&text, &goes_on), Err(EncoderError::Cancelled)));
        assert_eq!(asked.get(), 3);
        assert!(tokenizer.encode(&text).is_ok());
    }

    #[test]
    fn of_ten_megabytes_no_more_is_read_than_its_first_tokens_take() {
        let tokenizer = tokenizer(512);
        for (text, most) in
            [("ab ".repeat(3_500_000), 1), ("a".repeat(10_000_000), 1), (" ".repeat(10_000_000), 1)]
        {
            let pieces = Cell::new(0);
            let count = || {
                pieces.set(pieces.get() + 1);
                Ok(())
            };
            assert!(tokenizer.encode_while(&text, &count).unwrap().ids.len() <= 512);
            assert!(pieces.get() <= most, "{} of {:.3}", pieces.get(), text);
        }
    }

    #[test]
    fn pieces_cover_the_text_and_are_bounded() {
        let text = format!("{} {}", "é".repeat(MAX_PIECE_BYTES), "ab ".repeat(PIECE_BYTES));
        let (mut rest, mut letters) = (text.as_str(), 0);
        while !rest.is_empty() {
            let (piece, after) = super::next_piece(rest);
            assert!(piece.len() <= MAX_PIECE_BYTES + 4);
            assert!(after.len() < rest.len());
            letters += piece.chars().filter(|char| !char.is_whitespace()).count();
            rest = after;
        }
        assert_eq!(letters, MAX_PIECE_BYTES + 2 * PIECE_BYTES);
        assert_eq!(super::next_piece(&"z".repeat(LONG_RUN * 3)).0.len(), LONG_RUN);
    }
}
