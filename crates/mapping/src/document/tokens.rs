//! Reads texts, and objects of weights by token, directly from JSON: these into their packed form.
//!
//! A vector of 200 tokens as a JSON value is an ordered map of 200 strings, which takes longer to build than
//! everything else done with it.

use std::borrow::Cow;
use std::fmt;

use rustc_hash::FxHashSet;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, Visitor};
use sparrow_runtime::PackedTokens;

use super::super::values::is_weight;
use super::leaf::MAX_TERM;

/// Deserializer of an object of weights by token.
pub(super) struct Tokens {
    /// Whether a token may have dots.
    pub(super) is_dotted: bool,
}

impl<'de> DeserializeSeed<'de> for Tokens {
    type Value = PackedTokens;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<PackedTokens, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Tokens {
    type Value = PackedTokens;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object of weights")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<PackedTokens, A::Error> {
        let mut tokens = PackedTokens::with_capacity(128);
        while let Some(token) = members.next_key_seed(Text)? {
            let weight = members.next_value_seed(Weight)?;
            if token.len() > MAX_TERM || !self.is_dotted && token.contains('.') {
                return Err(A::Error::custom("a token that the field does not take"));
            }
            tokens.push(&token, weight);
        }
        if tokens.is_empty() {
            // The field has no value then, which the other reader knows.
            return Err(A::Error::custom("no tokens"));
        }
        let mut seen = FxHashSet::with_capacity_and_hasher(tokens.len(), Default::default());
        match tokens.iter().all(|(token, _)| seen.insert(token)) {
            true => Ok(tokens),
            false => Err(A::Error::custom("a token twice")),
        }
    }
}

/// Deserializer of a weight given as a JSON number.
struct Weight;

impl<'de> DeserializeSeed<'de> for Weight {
    type Value = f32;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<f32, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl Visitor<'_> for Weight {
    type Value = f32;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a weight")
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<f32, E> {
        let weight = value as f32;
        if is_weight(weight) { Ok(weight) } else { Err(E::custom("no weight")) }
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<f32, E> {
        self.visit_f64(value as f64)
    }
}

/// Deserializer of a text, borrowed from the input if it has no escapes.
pub(super) struct Text;

impl<'de> DeserializeSeed<'de> for Text {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Text {
    type Value = Cow<'de, str>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a text")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(text))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(text.to_owned()))
    }
}
