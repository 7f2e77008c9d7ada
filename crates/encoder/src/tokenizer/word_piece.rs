//! BERT's WordPiece for plain text, an order of magnitude faster than the general tokenizer.
//!
//! No token spans whitespace, so a text is split at it. Stretches of printable ASCII are tokenized here, the others one by one by the
//! general tokenizer. A text that contains an added token (`[MASK]`) is left to the general tokenizer as a whole.

use rustc_hash::FxHashMap;
use serde::Deserialize;

/// The vocabulary and options of one WordPiece tokenizer.
#[derive(Debug)]
pub(crate) struct WordPiece {
    /// Token ids by the bytes of tokens that can begin a word.
    starts: FxHashMap<Box<[u8]>, u32>,
    /// Token ids by the bytes of tokens that continue a word, without their `##`.
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

    /// The highest token id of the vocabulary, or `None` for an empty vocabulary.
    pub(super) fn highest_id(&self) -> Option<u32> {
        self.starts.values().max().copied()
    }

    /// Token ids of a text, without special tokens. `general` tokenizes the stretches that are not printable ASCII, or the whole text if it
    /// contains an added token.
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

    /// Appends the ids of a word's tokens: greedily the longest token that matches at each place, or one unknown token if some place has no
    /// match.
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
