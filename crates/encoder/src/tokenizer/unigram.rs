//! SentencePiece's Unigram: a text is divided into the pieces whose scores have the highest sum.
//!
//! It finds the pieces that the library finds. The library's tree has a map for each byte of each piece, which takes 300 MB for the
//! 250,000 pieces of a multilingual model; here they are one text, searched by halves.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use tokenizers::models::TrainerWrapper;
use tokenizers::models::unigram::UnigramTrainer;
use tokenizers::{Model, Token};

/// How much lower than the lowest score of a piece that of a character is that is in no piece, as in SentencePiece.
const PENALTY: f64 = 10.0;

/// A vocabulary of pieces.
#[derive(Debug, Deserialize)]
#[serde(try_from = "Described")]
pub(super) struct Unigram {
    /// All pieces, one after another, in the order of their ids.
    text: String,
    /// The places in `text` where pieces end.
    ends: Vec<u32>,
    scores: Vec<f64>,
    /// Ids in the ascending order of their pieces. Of equal pieces only the last is in it.
    order: Vec<u32>,
    /// For each byte, the place in `order` of the first piece that begins with it or with a higher one.
    starts: Vec<usize>,
    unknown: u32,
    /// The score of a character that is in no piece.
    unknown_score: f64,
}

/// The model of a `tokenizer.json`.
#[derive(Deserialize)]
struct Described {
    unk_id: u32,
    vocab: Vec<(String, f64)>,
}

impl TryFrom<Described> for Unigram {
    type Error = &'static str;

    fn try_from(Described { unk_id: unknown, vocab }: Described) -> Result<Self, Self::Error> {
        if unknown as usize >= vocab.len() {
            return Err("its unknown piece is not in its vocabulary");
        }
        let mut text = String::with_capacity(vocab.iter().map(|(piece, _)| piece.len()).sum());
        let mut ends = Vec::with_capacity(vocab.len());
        for (piece, _) in &vocab {
            text.push_str(piece);
            ends.push(u32::try_from(text.len()).map_err(|_| "its vocabulary is too large")?);
        }
        let scores: Vec<f64> = vocab.iter().map(|(_, score)| *score).collect();
        drop(vocab);
        let unknown_score = scores.iter().copied().fold(f64::INFINITY, f64::min) - PENALTY;
        let mut made =
            Self { text, ends, scores, order: Vec::new(), starts: Vec::new(), unknown, unknown_score };
        let mut order: Vec<u32> = (0..made.ends.len() as u32).collect();
        order.sort_unstable_by_key(|id| (made.piece(*id), std::cmp::Reverse(*id)));
        order.dedup_by_key(|id| made.piece(*id));
        let first = |id: &u32| made.piece(*id).as_bytes().first().copied();
        made.starts = (0..=256)
            .map(|byte| order.partition_point(|id| first(id).map_or(-1, i32::from) < byte))
            .collect();
        made.order = order;
        Ok(made)
    }
}

/// The best way to a place in a text.
#[derive(Clone, Copy)]
struct Step {
    score: f64,
    /// Where the last piece begins; `None` if no way leads here.
    from: Option<usize>,
    id: u32,
}

impl Unigram {
    /// Whether the model of a `tokenizer.json` is one that this module computes; all others are left to the library.
    pub(super) fn is_described(json: &[u8]) -> bool {
        #[derive(Deserialize)]
        struct Kind {
            #[serde(rename = "type")]
            kind: Option<String>,
            unk_id: Option<u32>,
            #[serde(default)]
            byte_fallback: bool,
            alpha: Option<f64>,
        }
        #[derive(Deserialize)]
        struct Description {
            model: Kind,
        }
        serde_json::from_slice::<Description>(json).is_ok_and(|Description { model }| {
            model.kind.as_deref() == Some("Unigram")
                && model.unk_id.is_some()
                && !model.byte_fallback
                && model.alpha.is_none()
        })
    }

    fn piece(&self, id: u32) -> &str {
        let id = id as usize;
        let start = if id == 0 { 0 } else { self.ends[id - 1] };
        &self.text[start as usize..self.ends[id] as usize]
    }

    /// Calls `take` with the length and the id of each piece that the text begins with, the shortest first.
    fn prefixes(&self, text: &[u8], mut take: impl FnMut(usize, u32)) {
        let Some(first) = text.first() else { return };
        let mut some = &self.order[self.starts[usize::from(*first)]..self.starts[usize::from(*first) + 1]];
        for (depth, byte) in text.iter().enumerate() {
            let at = |id: &u32| self.piece(*id).as_bytes().get(depth).copied();
            let (Some(one), Some(last)) = (some.first(), some.last()) else { return };
            // Where all have this byte, as most have a mark of a space, nothing is searched.
            if (at(one), at(last)) != (Some(*byte), Some(*byte)) {
                some = &some[some.partition_point(|id| at(id) < Some(*byte))..];
                some = &some[..some.partition_point(|id| at(id) == Some(*byte))];
            }
            match some.first() {
                Some(id) if self.piece(*id).len() == depth + 1 => take(depth + 1, *id),
                _ => {}
            }
        }
    }

    /// The best pieces of a text, the last one first: where each begins and ends. Neighbouring characters that are in no piece are one.
    fn divide(&self, text: &str) -> Vec<(usize, usize)> {
        let mut steps = vec![Step { score: 0.0, from: None, id: 0 }; text.len() + 1];
        for (from, character) in text.char_indices() {
            let (before, width) = (steps[from].score, character.len_utf8());
            let mut step = |length: usize, id: u32, score: f64| {
                let (to, score) = (&mut steps[from + length], before + score);
                if to.from.is_none() || score > to.score {
                    *to = Step { score, from: Some(from), id };
                }
            };
            let mut alone = false;
            self.prefixes(&text.as_bytes()[from..], |length, id| {
                step(length, id, self.scores[id as usize]);
                alone |= length == width;
            });
            if !alone {
                step(width, self.unknown, self.unknown_score);
            }
        }
        let (mut pieces, mut end) = (Vec::new(), text.len());
        let mut is_unknown = false;
        while end > 0 {
            let Step { from: Some(from), id, .. } = steps[end] else { break };
            match pieces.last_mut() {
                Some((start, _)) if is_unknown && id == self.unknown => *start = from,
                _ => pieces.push((from, end)),
            }
            is_unknown = id == self.unknown;
            end = from;
        }
        pieces
    }
}

impl Model for Unigram {
    type Trainer = TrainerWrapper;

    fn tokenize(&self, text: &str) -> tokenizers::Result<Vec<Token>> {
        let pieces = self.divide(text).into_iter().rev();
        let token = |(start, end): (usize, usize)| {
            let value = text[start..end].to_owned();
            Token { id: self.token_to_id(&value).unwrap_or(self.unknown), value, offsets: (start, end) }
        };
        Ok(pieces.map(token).collect())
    }

    fn token_to_id(&self, token: &str) -> Option<u32> {
        let place = self.order.binary_search_by(|id| self.piece(*id).cmp(token)).ok()?;
        Some(self.order[place])
    }

    fn id_to_token(&self, id: u32) -> Option<String> {
        ((id as usize) < self.ends.len()).then(|| self.piece(id).to_owned())
    }

    fn get_vocab(&self) -> HashMap<String, u32> {
        self.order.iter().map(|id| (self.piece(*id).to_owned(), *id)).collect()
    }

    fn get_vocab_size(&self) -> usize {
        self.ends.len()
    }

    fn save(&self, _: &Path, _: Option<&str>) -> tokenizers::Result<Vec<PathBuf>> {
        Err("it is only read".into())
    }

    fn get_trainer(&self) -> TrainerWrapper {
        UnigramTrainer::default().into()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tokenizers::Model;
    use tokenizers::models::unigram::Unigram as Library;

    use super::{Described, Unigram};

    fn both(pieces: &[(String, f64)]) -> (Unigram, Library) {
        let mut vocab = vec![("<unk>".to_owned(), 0.0)];
        vocab.extend_from_slice(pieces);
        let own = Unigram::try_from(Described { unk_id: 0, vocab: vocab.clone() }).unwrap();
        (own, Library::from(vocab, Some(0), false).unwrap())
    }

    proptest! {
        /// Of vocabularies with pieces inside others, equal ones, an empty one, and equal scores.
        #[test]
        fn pieces_are_those_of_the_library(
            pieces in prop::collection::vec(("[ab\u{e9}\u{4e2d}\u{2581}]{0,4}", (-8i8..0).prop_map(f64::from)), 0..40),
            texts in prop::collection::vec("[abc\u{e9}\u{4e2d}\u{4e8c}\u{2581}]{0,20}", 1..20),
        ) {
            let (own, library) = both(&pieces);
            for text in &texts {
                prop_assert_eq!(own.tokenize(text).unwrap(), library.tokenize(text).unwrap());
            }
            for (piece, _) in &pieces {
                prop_assert_eq!(own.token_to_id(piece), library.token_to_id(piece));
            }
            let size = own.get_vocab_size();
            prop_assert_eq!(size, library.get_vocab_size());
            for id in 0..=size as u32 {
                prop_assert_eq!(own.id_to_token(id), library.id_to_token(id));
            }
            prop_assert_eq!(own.get_vocab(), library.get_vocab());
        }
    }

    #[test]
    fn only_a_plain_unigram_is_read_here() {
        let is_read = |model: &str| Unigram::is_described(format!(r#"{{"model": {model}}}"#).as_bytes());
        assert!(is_read(
            r#"{"type": "Unigram", "unk_id": 0, "byte_fallback": false, "vocab": [["a", -1.0]]}"#
        ));
        for other in [
            r#"{"type": "Unigram", "unk_id": 0, "byte_fallback": true, "vocab": []}"#,
            r#"{"type": "Unigram", "unk_id": null, "vocab": []}"#,
            r#"{"type": "Unigram", "unk_id": 0, "alpha": 0.1, "vocab": []}"#,
            r#"{"type": "BPE", "unk_token": null, "vocab": {}, "merges": []}"#,
            "null",
        ] {
            assert!(!is_read(other), "{other}");
        }
        let outside = Described { unk_id: 1, vocab: vec![("a".into(), 0.0)] };
        assert_eq!(Unigram::try_from(outside).unwrap_err(), "its unknown piece is not in its vocabulary");
    }
}
