//! An analysed text: its terms by position, and where synonyms of several words leave and join the text.

use crate::error::QueryError;
use sparrow_query::MAX_CLAUSES;

/// Highest number of paths through one stretch of a text with multi-word synonyms.
const MAX_PATHS: usize = 1024;

/// A term of an analysed text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryToken {
    /// Position of its first word in the text, from 0.
    pub position: usize,
    /// Number of positions that it covers: more than 1 for a term that stands for several words.
    pub length: usize,
    pub text: String,
}

/// A stretch of a text that no term reaches across.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Section {
    /// The terms at one position; any of them may match.
    Terms { at: usize, terms: Vec<String> },
    /// Alternative paths through the stretch, each a sequence of terms.
    Paths(Vec<Vec<String>>),
}

/// Splits an analysed text into sections. `tokens` ascend by position.
///
/// # Errors
/// [`QueryError::TooManyClauses`] when there are too many paths through the synonyms.
pub fn sections(tokens: Vec<QueryToken>) -> Result<Vec<Section>, QueryError> {
    let mut sections = Vec::new();
    let mut tokens = tokens.into_iter().peekable();
    while let Some(first) = tokens.next() {
        let start = first.position;
        let mut end = start + first.length.max(1);
        let mut stretch = vec![first];
        while let Some(token) = tokens.next_if(|token| token.position < end) {
            end = end.max(token.position + token.length.max(1));
            stretch.push(token);
        }
        if stretch.iter().all(|token| token.position == start) {
            let mut terms: Vec<String> = Vec::with_capacity(stretch.len());
            for token in stretch {
                if !terms.contains(&token.text) {
                    terms.push(token.text);
                }
            }
            sections.push(Section::Terms { at: start, terms });
            continue;
        }
        let mut paths = Vec::new();
        walk(&stretch, start, end, &mut Vec::new(), &mut paths)?;
        sections.push(Section::Paths(paths));
    }
    Ok(sections)
}

fn walk(
    tokens: &[QueryToken],
    from: usize,
    end: usize,
    taken: &mut Vec<String>,
    paths: &mut Vec<Vec<String>>,
) -> Result<(), QueryError> {
    // A word that was left out leaves a position without a term.
    let next = tokens.iter().filter(|token| token.position >= from).map(|token| token.position).min();
    let Some(start) = next.filter(|_| from < end) else {
        if paths.len() >= MAX_PATHS {
            return Err(QueryError::TooManyClauses { limit: MAX_CLAUSES });
        }
        if !paths.contains(taken) {
            paths.push(taken.clone());
        }
        return Ok(());
    };
    for token in tokens.iter().filter(|token| token.position == start) {
        taken.push(token.text.clone());
        walk(tokens, start + token.length.max(1), end, taken, paths)?;
        taken.pop();
    }
    Ok(())
}

/// One path through a text: for each position, the terms any of which may stand there.
pub type TextPath = Vec<(usize, Vec<String>)>;

/// All paths through a whole text, each a sequence of positions and terms.
///
/// # Errors
/// As [`sections`].
pub fn all_paths(sections: &[Section]) -> Result<Vec<TextPath>, QueryError> {
    let mut all: Vec<TextPath> = vec![Vec::new()];
    // Positions of a path are counted anew after a stretch whose ways differ in length.
    let mut shifts = vec![0_isize];
    for section in sections {
        match section {
            Section::Terms { at, terms } => {
                for (path, shift) in all.iter_mut().zip(&shifts) {
                    path.push((at.saturating_add_signed(*shift), terms.clone()));
                }
            }
            Section::Paths(ways) => {
                if all.len() * ways.len() > MAX_PATHS {
                    return Err(QueryError::TooManyClauses { limit: MAX_CLAUSES });
                }
                let (mut longer, mut moved) = (Vec::new(), Vec::new());
                let longest = ways.iter().map(Vec::len).max().unwrap_or(0) as isize;
                for (path, shift) in all.iter().zip(&shifts) {
                    for way in ways {
                        let mut next = path.clone();
                        let start = next.last().map_or(0, |(at, _)| at + 1);
                        next.extend(way.iter().enumerate().map(|(n, term)| (start + n, vec![term.clone()])));
                        longer.push(next);
                        moved.push(shift + way.len() as isize - longest);
                    }
                }
                (all, shifts) = (longer, moved);
            }
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(list: &[(usize, usize, &str)]) -> Vec<QueryToken> {
        list.iter()
            .map(|(position, length, text)| QueryToken {
                position: *position,
                length: *length,
                text: (*text).to_owned(),
            })
            .collect()
    }

    fn terms(at: usize, terms: &[&str]) -> Section {
        Section::Terms { at, terms: terms.iter().map(|term| (*term).to_owned()).collect() }
    }

    #[test]
    fn terms_of_one_position_stay_together() {
        let found = sections(tokens(&[(0, 1, "fast"), (0, 1, "quick"), (2, 1, "car"), (2, 1, "car")]));
        assert_eq!(found.unwrap(), [terms(0, &["fast", "quick"]), terms(2, &["car"])]);
    }

    #[test]
    fn synonyms_of_several_words_are_ways() {
        let text = tokens(&[
            (0, 1, "my"),
            (1, 3, "nyc"),
            (1, 1, "new"),
            (2, 1, "york"),
            (3, 1, "city"),
            (4, 1, "bus"),
        ]);
        let found = sections(text).unwrap();
        let way = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        assert_eq!(
            found,
            [
                terms(0, &["my"]),
                Section::Paths(vec![way(&["nyc"]), way(&["new", "york", "city"])]),
                terms(4, &["bus"]),
            ]
        );
        let all = all_paths(&found).unwrap();
        let shown: Vec<String> = all
            .iter()
            .map(|path| {
                path.iter().map(|(at, terms)| format!("{at}{}", terms[0])).collect::<Vec<_>>().join(" ")
            })
            .collect();
        assert_eq!(shown, ["0my 1nyc 2bus", "0my 1new 2york 3city 4bus"]);
    }

    #[test]
    fn too_many_ways_are_an_error() {
        let mut list = Vec::new();
        for position in 0..30 {
            list.push((position, 1, "a"));
            list.push((position, 2, "b"));
        }
        assert!(sections(tokens(&list)).is_err());
    }
}
