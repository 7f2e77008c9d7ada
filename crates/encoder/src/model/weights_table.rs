//! Query weights of a model that encodes documents only: one number per token.

use std::path::Path;

use rustc_hash::FxHashMap;

use crate::error::EncoderError;
use crate::small_file;
use crate::tokenizer::TextTokenizer;

/// Reads a table of token weights (`idf.json`, `query_token_weights.txt`); the result is indexed by token id, with 0
/// for absent tokens.
///
/// JSON maps tokens to numbers; the text form has a token, a tab and a number in each line.
///
/// # Errors
/// [`EncoderError::ModelNotReadable`] if it is neither.
pub(super) fn load(path: &Path, tokenizer: &TextTokenizer, terms: usize) -> Result<Vec<f32>, EncoderError> {
    let unreadable = |reason: String| EncoderError::ModelNotReadable { path: path.to_path_buf(), reason };
    let content = small_file::read(path).map_err(|error| unreadable(error.to_string()))?;
    let content = String::from_utf8(content).map_err(|error| unreadable(error.to_string()))?;
    let mut weights = vec![0f32; terms];
    let mut matched = 0usize;
    let mut put = |token: &str, weight: f32| {
        let slot = tokenizer.id(token).and_then(|id| weights.get_mut(id as usize));
        if let Some(slot) = slot.filter(|_| weight.is_finite()) {
            *slot = weight;
            matched += 1;
        }
    };
    if content.trim_start().starts_with('{') {
        let table: FxHashMap<String, f32> =
            serde_json::from_str(&content).map_err(|error| unreadable(error.to_string()))?;
        table.iter().for_each(|(token, weight)| put(token, *weight));
    } else {
        for (number, line) in content.lines().enumerate().filter(|(_, line)| !line.is_empty()) {
            let pair =
                line.rsplit_once('\t').and_then(|(token, weight)| Some((token, weight.trim().parse().ok()?)));
            let (token, weight) =
                pair.ok_or_else(|| unreadable(format!("line {} is not a token and a weight", number + 1)))?;
            put(token, weight);
        }
    }
    if matched == 0 {
        return Err(unreadable("no token of the table is in the vocabulary".into()));
    }
    Ok(weights)
}
