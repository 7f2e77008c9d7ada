//! Similarity of two words: edit distance, and measures of at most 1 that are defined like Lucene's of the same names.

/// A measure of the similarity of two words: 1 for equal words, less the more they differ; by Damerau-Levenshtein even below 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum StringDistance {
    /// Edit distance with transpositions of neighbouring letters, relative to the shorter word.
    #[default]
    DamerauLevenshtein,
    /// Edit distance without transpositions, relative to the longer word.
    Levenshtein,
    /// Jaro-Winkler: based on letters that both words have at about the same places; a common prefix counts more.
    JaroWinkler,
    /// Edit distance of the words' letter bigrams, relative to the longer word.
    Ngram,
}

impl StringDistance {
    /// The similarity of two words.
    pub fn similarity(self, left: &[char], right: &[char]) -> f32 {
        match self {
            Self::DamerauLevenshtein => {
                1.0 - edits(left, right, true) / left.len().min(right.len()).max(1) as f32
            }
            Self::Levenshtein => 1.0 - edits(left, right, false) / left.len().max(right.len()).max(1) as f32,
            Self::JaroWinkler => jaro_winkler(left, right),
            Self::Ngram => pairs(left, right),
        }
    }
}

/// Edit distance of two texts in characters: insertions, deletions, substitutions and, with `transpositions`, swaps
/// of neighbours. `None` if it is more than `most`.
pub fn edit_distance(left: &[char], right: &str, most: usize, transpositions: bool) -> Option<usize> {
    // A byte count bounds the character count from above: most terms end here.
    if right.len() + most < left.len() {
        return None;
    }
    let right: Vec<char> = right.chars().collect();
    if left.len().abs_diff(right.len()) > most {
        return None;
    }
    let width = right.len() + 1;
    let mut before = vec![0; width];
    let mut previous: Vec<usize> = (0..width).collect();
    let mut current = vec![0; width];
    for i in 1..=left.len() {
        current[0] = i;
        let mut best = i;
        for j in 1..width {
            let differs = usize::from(left[i - 1] != right[j - 1]);
            let mut cost = (previous[j] + 1).min(current[j - 1] + 1).min(previous[j - 1] + differs);
            if transpositions && i > 1 && j > 1 && left[i - 1] == right[j - 2] && left[i - 2] == right[j - 1]
            {
                cost = cost.min(before[j - 2] + 1);
            }
            current[j] = cost;
            best = best.min(cost);
        }
        if best > most {
            return None;
        }
        std::mem::swap(&mut before, &mut previous);
        std::mem::swap(&mut previous, &mut current);
    }
    (previous[width - 1] <= most).then_some(previous[width - 1])
}

/// Edit distance of two words, without a limit; with `swaps`, a transposition of neighbours is one edit.
fn edits(left: &[char], right: &[char], swaps: bool) -> f32 {
    let right: String = right.iter().collect();
    let most = left.len().max(right.len());
    edit_distance(left, &right, most, swaps).unwrap_or(most) as f32
}

fn jaro_winkler(left: &[char], right: &[char]) -> f32 {
    /// Least Jaro similarity at which a common prefix counts.
    const THRESHOLD: f32 = 0.7;
    let (longer, shorter) = if left.len() > right.len() { (left, right) } else { (right, left) };
    let range = (longer.len() / 2).saturating_sub(1);
    let mut taken = vec![false; longer.len()];
    let mut of_shorter = Vec::new();
    for (at, letter) in shorter.iter().enumerate() {
        let near = at.saturating_sub(range)..(at + range + 1).min(longer.len());
        if let Some(place) = near.into_iter().find(|place| !taken[*place] && longer[*place] == *letter) {
            taken[place] = true;
            of_shorter.push(*letter);
        }
    }
    if of_shorter.is_empty() {
        return 0.0;
    }
    let of_longer = longer.iter().zip(&taken).filter(|(_, taken)| **taken).map(|(letter, _)| letter);
    let moved = of_shorter.iter().zip(of_longer).filter(|(a, b)| a != b).count() / 2;
    let same = of_shorter.len() as f32;
    let jaro = (same / left.len() as f32 + same / right.len() as f32 + (same - moved as f32) / same) / 3.0;
    if jaro < THRESHOLD {
        return jaro;
    }
    let beginning = left.iter().zip(right).take_while(|(a, b)| a == b).count();
    jaro + (1.0 / longer.len() as f32).min(0.1) * beginning as f32 * (1.0 - jaro)
}

/// Similarity by bigrams, from 0 to 1: the edit distance of the words' bigrams, where those that differ in one of two
/// letters are half an edit apart.
fn pairs(left: &[char], right: &[char]) -> f32 {
    let longest = left.len().max(right.len());
    if left.is_empty() || right.is_empty() {
        return if longest == 0 { 1.0 } else { 0.0 };
    }
    if left.len() < 2 || right.len() < 2 {
        return left.iter().zip(right).filter(|(a, b)| a == b).count() as f32 / longest as f32;
    }
    // The first letter makes a pair with what stands before the word.
    let pair = |word: &[char], at: usize| (at.checked_sub(1).map(|before| word[before]), word[at]);
    let mut previous: Vec<f32> = (0..=left.len()).map(|at| at as f32).collect();
    let mut current = previous.clone();
    for j in 1..=right.len() {
        current[0] = j as f32;
        let theirs = pair(right, j - 1);
        for i in 1..=left.len() {
            let ours = pair(left, i - 1);
            let differ = usize::from(ours.0 != theirs.0) + usize::from(ours.1 != theirs.1);
            let counted = if ours.0.is_none() && theirs.0.is_none() { 1 } else { 2 };
            let cost = differ as f32 / counted as f32;
            current[i] = (current[i - 1] + 1.0).min(previous[i] + 1.0).min(previous[i - 1] + cost);
        }
        std::mem::swap(&mut previous, &mut current);
    }
    1.0 - previous[left.len()] / longest as f32
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::StringDistance::{self, DamerauLevenshtein, JaroWinkler, Levenshtein, Ngram};
    use super::edit_distance;

    #[test]
    fn edits_are_counted_up_to_a_limit() {
        let distance = |a: &str, b: &str| edit_distance(&a.chars().collect::<Vec<_>>(), b, 2, true);
        assert_eq!(distance("house", "house"), Some(0));
        assert_eq!(distance("house", "hosue"), Some(1));
        assert_eq!(distance("house", "mouse"), Some(1));
        assert_eq!(distance("house", "houses"), Some(1));
        assert_eq!(distance("house", "hose"), Some(1));
        assert_eq!(distance("house", "horses"), Some(2));
        assert_eq!(distance("house", "tree"), None);
        let house: Vec<char> = "house".chars().collect();
        assert_eq!(edit_distance(&house, "hosue", 2, false), Some(2));
    }

    fn similarity(measure: StringDistance, left: &str, right: &str) -> f32 {
        let letters = |word: &str| word.chars().collect::<Vec<_>>();
        measure.similarity(&letters(left), &letters(right))
    }

    #[test]
    fn measures_agree_with_those_of_lucene() {
        // The values of Lucene's own tests.
        for (measure, left, right, expected) in [
            (JaroWinkler, "al", "al", 1.0),
            (JaroWinkler, "martha", "marhta", 0.961),
            (JaroWinkler, "jones", "johnson", 0.832),
            (JaroWinkler, "abcvwxyz", "cabvwxyz", 0.958),
            (JaroWinkler, "dwayne", "duane", 0.84),
            (JaroWinkler, "dixon", "dicksonx", 0.813),
            (JaroWinkler, "fvie", "ten", 0.0),
            (Ngram, "al", "al", 1.0),
            (Ngram, "a", "a", 1.0),
            (Ngram, "b", "a", 0.0),
            (Ngram, "martha", "marhta", 0.6666),
            (Ngram, "jones", "johnson", 0.4285),
            (Ngram, "natural", "contrary", 0.25),
            (Ngram, "abcvwxyz", "cabvwxyz", 0.625),
            (Ngram, "dixon", "dicksonx", 0.5),
            (Levenshtein, "martha", "marhta", 0.6666),
            (Levenshtein, "jones", "johnson", 0.4285),
            (Levenshtein, "abcvwxyz", "cabvwxyz", 0.75),
            (DamerauLevenshtein, "martha", "marhta", 0.8333),
            (DamerauLevenshtein, "meetpu", "meetup", 0.8333),
        ] {
            let found = similarity(measure, left, right);
            assert!((found - expected).abs() < 0.001, "{measure:?} {left} {right}: {found} for {expected}");
        }
    }

    proptest! {
        #[test]
        fn a_word_is_most_similar_to_itself(left in "[abc]{1,8}", right in "[abc]{1,8}") {
            for measure in [DamerauLevenshtein, Levenshtein, JaroWinkler, Ngram] {
                let same = similarity(measure, &left, &left);
                prop_assert!((same - 1.0).abs() < 1e-6, "{:?} {} {}", measure, left, same);
                prop_assert!(similarity(measure, &left, &right) <= 1.0 + 1e-6);
            }
        }
    }
}
