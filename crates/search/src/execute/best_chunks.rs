//! Parts of a text that are likely to answer a question: what a model reads of a text that is too long for it.

use std::collections::{HashMap, HashSet};

use sparrow_catalog::chunks_while;
use sparrow_runtime::work::{self, Stopped};
use unicode_segmentation::UnicodeSegmentation;

use sparrow_search_body::retriever::ChunkRescorer;

/// BM25's usual parameters.
const K1: f32 = 1.2;
const B: f32 = 0.75;
/// Words of a question that count.
const MOST_WORDS: usize = 1000;
/// Parts of a text that are read between two looks at whether the request must stop.
const PARTS_AT_ONCE: usize = 64;

/// The parts of a text that its words say are nearest to a question, best first. Where no part has a word of the question, the first
/// ones. A part counts rare words of this text more, as each text is searched by itself.
///
/// # Errors
/// When the request must stop.
pub(super) fn best_chunks<'t>(
    text: &'t str,
    question: &str,
    wanted: &ChunkRescorer,
) -> Result<Vec<&'t str>, Stopped> {
    work::check()?;
    // A part may begin with the punctuation that ends the sentence before it.
    let is_end = |letter: char| letter.is_whitespace() || ".,;:!?)]}…".contains(letter);
    let part = |range: std::ops::Range<usize>| text[range].trim_start_matches(is_end).trim_end();
    let ranges = chunks_while(text, &wanted.chunking, &mut work::check)?;
    let parts: Vec<&str> = ranges.into_iter().map(part).collect();
    if parts.len() <= wanted.size {
        return Ok(parts);
    }
    let asked: HashSet<String> = words(question).take(MOST_WORDS).collect();
    let mut counted: Vec<(HashMap<String, f32>, f32)> = Vec::with_capacity(parts.len());
    let mut having: HashMap<&str, f32> = HashMap::new();
    for (at, part) in parts.iter().enumerate() {
        if at % PARTS_AT_ONCE == 0 {
            work::check()?;
        }
        let (mut counts, mut length) = (HashMap::new(), 0.0);
        for word in words(part) {
            length += 1.0;
            if asked.contains(&word) {
                *counts.entry(word).or_insert(0.0) += 1.0;
            }
        }
        for word in counts.keys() {
            if let Some(word) = asked.get(word) {
                *having.entry(word).or_insert(0.0) += 1.0;
            }
        }
        counted.push((counts, length));
    }
    let number = parts.len() as f32;
    let average = counted.iter().map(|(_, length)| length).sum::<f32>() / number;
    let idf: HashMap<&str, f32> = having
        .into_iter()
        .map(|(word, having)| (word, (1.0 + (number - having + 0.5) / (having + 0.5)).ln()))
        .collect();
    let score = |(counts, length): &(HashMap<String, f32>, f32)| -> f32 {
        let of_word = |(word, count): (&String, &f32)| {
            idf.get(word.as_str()).unwrap_or(&0.0) * count * (K1 + 1.0)
                / (count + K1 * (1.0 - B + B * length / average))
        };
        counts.iter().map(of_word).sum()
    };
    let mut ranked: Vec<(f32, &str)> = counted.iter().map(score).zip(parts).collect();
    // A stable sort: of equals, the first of the text.
    ranked.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    ranked.truncate(wanted.size);
    Ok(ranked.into_iter().map(|(_, part)| part).collect())
}

fn words(text: &str) -> impl Iterator<Item = String> + '_ {
    text.unicode_words().map(str::to_lowercase)
}

#[cfg(test)]
mod tests {
    use sparrow_mapping::Chunking;

    use super::best_chunks;
    use sparrow_search_body::retriever::ChunkRescorer;

    #[test]
    fn parts_with_rare_words_of_the_question_come_first() {
        let text = "The owl hunts at night. The fox hunts by day. The owls and foxes sleep. The hare eats green grass.";
        let chunking = Chunking::Sentence { max_chunk_size: 20, sentence_overlap: 0 };
        let best = |question: &str, size: usize, chunking: Chunking| {
            best_chunks(text, question, &ChunkRescorer { size, chunking }).unwrap()
        };
        assert_eq!(
            best("What does the hare eat?", 1, Chunking::Word { max_chunk_size: 5, overlap: 0 }),
            ["The hare eats green grass."]
        );
        assert_eq!(best("a fox", 2, chunking.clone()).len(), 1, "one part holds all of it");
        let by_words = Chunking::Word { max_chunk_size: 5, overlap: 0 };
        assert_eq!(best("FOX by day", 1, by_words.clone()), ["The fox hunts by day"]);
        assert_eq!(best("whale", 2, by_words), ["The owl hunts at night", "The fox hunts by day"]);
        assert_eq!(best_chunks(" ", "a", &ChunkRescorer { size: 1, chunking }), Ok(Vec::new()));
    }
}
