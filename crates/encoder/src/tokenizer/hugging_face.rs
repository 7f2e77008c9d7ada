//! A tokenizer of the library of Hugging Face, with our own vocabulary where that is smaller.

use tokenizers::{
    DecoderWrapper, EncodeInput, Encoding, ModelWrapper, NormalizerWrapper, PostProcessorWrapper,
    PreTokenizerWrapper, Result, Tokenizer, TokenizerImpl,
};

use super::unigram::Unigram;

/// What a `tokenizer.json` describes, without its own truncation and padding.
pub(super) enum HuggingFace {
    Any(Box<Tokenizer>),
    Unigram(Box<WithUnigram>),
}

type WithUnigram =
    TokenizerImpl<Unigram, NormalizerWrapper, PreTokenizerWrapper, PostProcessorWrapper, DecoderWrapper>;

/// Evaluates an expression with either tokenizer, whose methods have the same names.
macro_rules! either {
    ($library:expr, $tokenizer:ident => $value:expr) => {
        match $library {
            HuggingFace::Any($tokenizer) => $value,
            HuggingFace::Unigram($tokenizer) => $value,
        }
    };
}

impl HuggingFace {
    /// Reads a `tokenizer.json`.
    ///
    /// # Errors
    /// Those of the library.
    pub(super) fn from_bytes(json: &[u8]) -> Result<Self> {
        let mut opened = if Unigram::is_described(json) {
            Self::Unigram(serde_json::from_slice(json)?)
        } else {
            let mut tokenizer = Tokenizer::from_bytes(json)?;
            // Leaving out merges by chance is for training: a text would have other vectors each time.
            if let ModelWrapper::BPE(model) = tokenizer.get_model()
                && model.dropout.is_some()
            {
                let mut model = model.clone();
                model.dropout = None;
                tokenizer.with_model(model);
            }
            Self::Any(Box::new(tokenizer))
        };
        either!(&mut opened, tokenizer => {
            tokenizer.with_truncation(None)?;
            tokenizer.with_padding(None);
        });
        Ok(opened)
    }

    /// Encodes a text, or a question and a text, with the places of the tokens.
    ///
    /// # Errors
    /// Those of the library.
    pub(super) fn encode<'s>(&self, input: impl Into<EncodeInput<'s>>, special: bool) -> Result<Encoding> {
        either!(self, tokenizer => tokenizer.encode(input, special))
    }

    /// As [`HuggingFace::encode`], without the places.
    ///
    /// # Errors
    /// Those of the library.
    pub(super) fn encode_fast(&self, text: &str, special: bool) -> Result<Encoding> {
        either!(self, tokenizer => tokenizer.encode_fast(text, special))
    }

    /// Number of entries in the vocabulary, added tokens included.
    pub(super) fn vocabulary_size(&self) -> usize {
        either!(self, tokenizer => tokenizer.get_vocab_size(true))
    }

    /// The highest id of the vocabulary, without added tokens. The library copies all of it for that.
    pub(super) fn highest_of_vocabulary(&self) -> u32 {
        match self {
            Self::Any(tokenizer) => tokenizer.get_vocab(false).into_values().max().unwrap_or(0),
            // The ids of its pieces are their places from 0 on.
            Self::Unigram(tokenizer) => tokenizer.get_vocab_size(false).saturating_sub(1) as u32,
        }
    }

    /// The highest token id among the added tokens, or 0 for a tokenizer without added tokens.
    pub(super) fn highest_of_added(&self) -> u32 {
        either!(self, tokenizer => {
            tokenizer.get_added_tokens_decoder().keys().max().copied().unwrap_or(0)
        })
    }

    pub(super) fn id_to_token(&self, id: u32) -> Option<String> {
        either!(self, tokenizer => tokenizer.id_to_token(id))
    }

    pub(super) fn token_to_id(&self, token: &str) -> Option<u32> {
        either!(self, tokenizer => tokenizer.token_to_id(token))
    }
}

#[cfg(test)]
mod tests {
    use super::HuggingFace;

    #[test]
    fn no_merge_is_left_out_by_chance() {
        let json = br#"{"version": "1.0", "added_tokens": [], "model": {"type": "BPE", "dropout": 1.0,
            "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]}}"#;
        let tokenizer = HuggingFace::from_bytes(json).unwrap();
        assert_eq!(tokenizer.encode_fast("ab", false).unwrap().get_ids(), [2]);
    }
}
