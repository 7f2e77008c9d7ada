//! Which words of a text a sparse token comes from.
//!
//! A weight of the SPLADE head is a maximum over the tokens of a text. The token with the maximum is where
//! the weight comes from, and the word around that token is what a reader can be shown.

use std::ops::Range;

use crate::error::EncoderError;
use crate::forward::Forward;
use crate::model::Model;

/// A token of a sparse vector, with its weight and the word that it comes from.
#[derive(Debug, Clone, PartialEq)]
pub struct Attribution {
    /// The token in the form in which documents hold it (a '.' is written `__`).
    pub token: Box<str>,
    /// Weight of the token in the encoded vector.
    pub weight: f32,
    /// Byte range of the word in the text; `None` where the weight comes from a special token, which stands
    /// for the text as a whole.
    pub word: Option<Range<usize>>,
}

/// Encodes a text and finds the word that each token comes from; `None` if the model does not compute a
/// vector for each token of the text.
///
/// # Errors
/// [`EncoderError::Runtime`] if the tokenizer or the runtime fails.
pub(crate) fn attribute(
    model: &Model,
    forward: &mut Forward,
    text: &str,
) -> Result<Option<Vec<Attribution>>, EncoderError> {
    let tokens = model.tokenizer.encode(text)?;
    let Some(placed) = forward.run_placed(&tokens.ids)? else { return Ok(None) };
    let places = model.tokenizer.places(text, &tokens)?;
    let attributions = placed.into_iter().filter_map(|(term, weight, at)| {
        let word = places.get(at as usize).cloned().flatten().map(|place| word_around(text, place));
        Some(Attribution { token: model.vocabulary.token(term)?.into(), weight, word })
    });
    Ok(Some(attributions.collect()))
}

/// The word around a byte range of a text: the range extended over adjacent letters, digits and apostrophes.
fn word_around(text: &str, place: Range<usize>) -> Range<usize> {
    let is_word = |character: char| character.is_alphanumeric() || character == '\'';
    if !text[place.clone()].chars().any(char::is_alphanumeric) {
        return place;
    }
    let before: usize =
        text[..place.start].chars().rev().take_while(|c| is_word(*c)).map(char::len_utf8).sum();
    let after: usize = text[place.end..].chars().take_while(|c| is_word(*c)).map(char::len_utf8).sum();
    place.start - before..place.end + after
}

#[cfg(test)]
mod tests {
    use super::word_around;

    #[test]
    fn words_are_whole() {
        let text = "An Überflieger's day, 東京 x1y";
        let word = |part: &str| {
            let start = text.find(part).unwrap();
            &text[word_around(text, start..start + part.len())]
        };
        assert_eq!(word("flieg"), "Überflieger's");
        assert_eq!(word("day"), "day");
        assert_eq!(word(","), ",");
        assert_eq!(word("1"), "x1y");
        assert_eq!(word("京"), "東京");
    }
}
