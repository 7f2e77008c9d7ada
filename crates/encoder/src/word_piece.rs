//! BERT's WordPiece for plain text, an order of magnitude faster than the general tokenizer.
//!
//! Words never reach across whitespace, so a text falls into stretches between spaces; those of printable ASCII are split
//! here, the others by the general tokenizer, one by one. A text with an added token (`[MASK]`) in it goes there whole.

use rustc_hash::FxHashMap;
use serde::Deserialize;

/// The tables of one tokenizer.
#[derive(Debug)]
pub(crate) struct WordPiece {
    /// Ids of tokens that begin a word.
    starts: FxHashMap<Box<[u8]>, u32>,
    /// Ids of tokens that go on with one, without their `##`.
    continuations: FxHashMap<Box<[u8]>, u32>,
    longest: usize,
    unknown: u32,
    max_word: usize,
    lowercase: bool,
    added: Vec<String>,
}

#[derive(Deserialize)]
struct Description {
    normalizer: Option<Normalizer>,
    pre_tokenizer: Option<Kind>,
    #[serde(default)]
    added_tokens: Vec<Added>,
    model: Model,
}

#[derive(Deserialize)]
struct Kind {
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Deserialize)]
struct Normalizer {
    #[serde(rename = "type")]
    kind: String,
    clean_text: Option<bool>,
    lowercase: Option<bool>,
}

#[derive(Deserialize)]
struct Added {
    content: String,
    #[serde(default)]
    normalized: bool,
    #[serde(default)]
    single_word: bool,
}

#[derive(Deserialize)]
struct Model {
    #[serde(rename = "type")]
    kind: Option<String>,
    unk_token: Option<String>,
    continuing_subword_prefix: Option<String>,
    max_input_chars_per_word: Option<usize>,
    vocab: FxHashMap<String, u32>,
}

impl WordPiece {
    /// Reads `tokenizer.json`; `None` if it is not BERT's tokenizer in the usual form.
    pub(crate) fn from_json(json: &[u8]) -> Option<Self> {
        let description: Description = serde_json::from_slice(json).ok()?;
        let (normalizer, model) = (description.normalizer?, description.model);
        let usual = normalizer.kind == "BertNormalizer"
            && normalizer.clean_text == Some(true)
            && description.pre_tokenizer?.kind == "BertPreTokenizer"
            && model.kind.as_deref().unwrap_or("WordPiece") == "WordPiece"
            && model.continuing_subword_prefix.as_deref() == Some("##")
            // Those are found after normalisation: not here.
            && description.added_tokens.iter().all(|token| !token.normalized && !token.single_word);
        if !usual {
            return None;
        }
        let unknown = *model.vocab.get(&model.unk_token?)?;
        let (mut starts, mut continuations) = (FxHashMap::default(), FxHashMap::default());
        for (token, id) in &model.vocab {
            starts.insert(token.as_bytes().into(), *id);
            if let Some(rest) = token.strip_prefix("##") {
                continuations.insert(rest.as_bytes().into(), *id);
            }
        }
        Some(Self {
            longest: model.vocab.keys().map(String::len).max()?,
            starts,
            continuations,
            unknown,
            max_word: model.max_input_chars_per_word?,
            lowercase: normalizer.lowercase?,
            added: description.added_tokens.into_iter().map(|token| token.content).collect(),
        })
    }

    /// The ids of a text, without special tokens; `general` does the same for what is not plain.
    ///
    /// # Errors
    /// When `general` fails.
    pub(crate) fn encode<E>(
        &self,
        text: &str,
        mut general: impl FnMut(&str) -> Result<Vec<u32>, E>,
    ) -> Result<Vec<u32>, E> {
        if self.added.iter().any(|token| text.contains(token.as_str())) {
            return general(text);
        }
        let mut ids = Vec::with_capacity(text.len() / 3);
        let mut word = Vec::with_capacity(32);
        for stretch in text.split([' ', '\t', '\n', '\r']).filter(|stretch| !stretch.is_empty()) {
            if !stretch.bytes().all(|byte| byte.is_ascii_graphic()) {
                ids.append(&mut general(stretch)?);
                continue;
            }
            let mut rest = stretch.as_bytes();
            while !rest.is_empty() {
                // A punctuation mark is a word by itself.
                let length = rest.iter().take_while(|byte| byte.is_ascii_alphanumeric()).count().max(1);
                word.clear();
                word.extend_from_slice(&rest[..length]);
                if self.lowercase {
                    word.make_ascii_lowercase();
                }
                self.pieces(&word, &mut ids);
                rest = &rest[length..];
            }
        }
        Ok(ids)
    }

    /// The longest token first, then the longest that goes on; one unknown token if that leads nowhere.
    fn pieces(&self, word: &[u8], ids: &mut Vec<u32>) {
        if word.len() > self.max_word {
            ids.push(self.unknown);
            return;
        }
        let before = ids.len();
        let mut start = 0;
        while start < word.len() {
            let table = if start == 0 { &self.starts } else { &self.continuations };
            let most = word.len().min(start + self.longest);
            let Some((end, id)) =
                (start + 1..=most).rev().find_map(|end| Some((end, *table.get(&word[start..end])?)))
            else {
                ids.truncate(before);
                ids.push(self.unknown);
                return;
            };
            ids.push(id);
            start = end;
        }
    }
}
