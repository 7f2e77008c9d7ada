//! A question and a text as one sequence, for models that read both together: `[CLS] question [SEP] text [SEP]`, or what
//! `tokenizer.json` puts around them.

use super::hugging_face::HuggingFace;

/// Special tokens around a question and a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Template {
    prefix: Vec<u32>,
    middle: Vec<u32>,
    suffix: Vec<u32>,
    /// Number of special tokens between question and text that are still of the first token type; `None` if all tokens are of that type.
    first_type: Option<usize>,
}

impl Template {
    /// Finds the special tokens that the tokenizer puts around pairs of at most `limit` tokens.
    ///
    /// # Errors
    /// A message if the file's template is not a question and then a text, or leaves no room for them.
    pub(super) fn find(tokenizer: &HuggingFace, limit: usize) -> Result<Self, String> {
        let template = template(tokenizer)?;
        if template.specials() + 2 > limit {
            return Err(format!("special tokens leave no room for a pair in {limit} tokens"));
        }
        Ok(template)
    }

    /// The ids of the special tokens.
    pub(super) fn ids(&self) -> impl Iterator<Item = &u32> {
        self.prefix.iter().chain(&self.middle).chain(&self.suffix)
    }

    /// Number of special tokens around a question and a text.
    pub(super) fn specials(&self) -> usize {
        self.prefix.len() + self.middle.len() + self.suffix.len()
    }

    /// Joins the tokens of a question and of a text to one sequence, in which at most `room` tokens are theirs. Gives the sequence, the number
    /// of tokens cut off, and the position at which the tokens of the second type begin. If both together are too long, the longer one is cut
    /// until it is as long as the other, and then both, like the strategy `longest_first` of Hugging Face's tokenizers.
    pub(super) fn join(&self, question: &Question, text: &[u32], room: usize) -> (Vec<u32>, usize, usize) {
        let (first, second) = lengths(question.ids.len(), text.len(), room);
        let truncated = question.ids.len() - first + text.len() - second;
        let mut ids = Vec::with_capacity(self.specials() + first + second);
        ids.extend_from_slice(&self.prefix);
        ids.extend_from_slice(&question.ids[..first]);
        let types = self.first_type.map(|specials| ids.len() + specials);
        ids.extend_from_slice(&self.middle);
        ids.extend_from_slice(&text[..second]);
        ids.extend_from_slice(&self.suffix);
        let types = types.unwrap_or(ids.len());
        (ids, truncated, types)
    }
}

/// The tokens of a question, which are found once for all of its texts.
#[derive(Debug, Clone)]
pub(crate) struct Question {
    pub(super) ids: Vec<u32>,
}

/// The numbers of tokens that are kept of a question and of a text, so that their sum is at most `room`.
fn lengths(question: usize, text: usize, room: usize) -> (usize, usize) {
    let (shorter, longer) = (question.min(text), question.max(text));
    if shorter + longer <= room {
        return (question, text);
    }
    // The shorter one stays whole where it takes no more than half.
    let (shorter, longer) =
        if shorter <= room / 2 { (shorter, room - shorter) } else { (room / 2, room - room / 2) };
    if question <= text { (shorter, longer) } else { (longer, shorter) }
}

/// Finds the special tokens that the tokenizer puts around two texts, and the types of the tokens.
fn template(tokenizer: &HuggingFace) -> Result<Template, String> {
    const FOREIGN: &str = "its template of pairs is not a question and then a text";
    let encoding = tokenizer.encode(("a", "a"), true).map_err(|error| error.to_string())?;
    let (ids, types) = (encoding.get_ids(), encoding.get_type_ids());
    let of = encoding.get_sequence_ids();
    let range = |sequence: usize| {
        let first = of.iter().position(|part| *part == Some(sequence))?;
        let end = of.iter().rposition(|part| *part == Some(sequence))? + 1;
        of[first..end].iter().all(|part| *part == Some(sequence)).then_some(first..end)
    };
    let (Some(first), Some(second)) = (range(0), range(1)) else { return Err(FOREIGN.into()) };
    if first.end > second.start || types.len() != ids.len() {
        return Err(FOREIGN.into());
    }
    let typed = types.iter().position(|kind| *kind != 0);
    if let Some(typed) = typed
        && !((first.end..=second.start).contains(&typed) && types[typed..].iter().all(|kind| *kind == 1))
    {
        return Err("the types of its tokens are not 0 for a question and 1 for a text".into());
    }
    Ok(Template {
        prefix: ids[..first.start].to_vec(),
        middle: ids[first.end..second.start].to_vec(),
        suffix: ids[second.end..].to_vec(),
        first_type: typed.map(|typed| typed - first.end),
    })
}

#[cfg(test)]
mod tests {
    use super::lengths;

    /// Shortens the longer of question and text by one token, the text if they are equally long, until their sum is at most `room`; the
    /// smaller of the two lengths that remain.
    fn one_by_one(mut question: usize, mut text: usize, room: usize) -> usize {
        while question + text > room {
            if question > text { question -= 1 } else { text -= 1 }
        }
        question.min(text)
    }

    #[test]
    fn the_longer_one_is_cut_first() {
        assert_eq!(lengths(3, 4, 10), (3, 4));
        assert_eq!(lengths(3, 40, 10), (3, 7));
        assert_eq!(lengths(40, 3, 10), (7, 3));
        assert_eq!(lengths(40, 50, 11), (5, 6));
        assert_eq!(lengths(50, 40, 11), (6, 5));
        assert_eq!(lengths(0, 50, 11), (0, 11));
        for (question, text, room) in
            (0..20).flat_map(|q| (0..20).flat_map(move |t| (2..20).map(move |r| (q, t, r))))
        {
            let (first, second) = lengths(question, text, room);
            assert!(
                first <= question && second <= text && first + second <= room,
                "{question} {text} {room}"
            );
            assert_eq!(first + second, (question + text).min(room));
            assert_eq!(first.min(second), one_by_one(question, text, room));
        }
    }
}
