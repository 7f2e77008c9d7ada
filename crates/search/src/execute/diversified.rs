//! Diversification: of the hits of a list, those are kept that are relevant and differ from each other (maximal marginal relevance).

use sparrow_query::{KnnBuilderQuery, QueryKind};
use sparrow_runtime::work::{self, Stopped};

use super::Run;
use super::fused::{Branch, Origin};
use crate::error::SearchError;
use sparrow_search_body::retriever::Diversify;

/// Comparisons of vectors between two looks at whether the request must stop.
const COMPARED_AT_ONCE: usize = 1024;

impl Run<'_> {
    /// Keeps some of the first hits of a list, in their order and with their scores. Hits without vectors are left out, but for the
    /// first one of a list that is compared with no query.
    pub(super) fn diversified(
        &self,
        diversify: &Diversify,
        list: &Branch,
        window: usize,
    ) -> Result<Vec<Origin>, SearchError> {
        let first = &list.hits[..list.hits.len().min(window)];
        let mut vectors = Vec::with_capacity(first.len());
        for (key, _) in first {
            let target = &self.targets[key.target()];
            work::check().map_err(|stopped| target.stopped(stopped))?;
            vectors.push(target.snapshot.dense_vectors(key.addr(), &diversify.field));
        }
        let kept = match (chosen(diversify, &vectors)?, self.targets.first()) {
            (Err(stopped), Some(target)) => return Err(target.stopped(stopped)),
            (kept, _) => kept.unwrap_or_default(),
        };
        let shown = |place: usize| {
            let (doc, score) = first[place];
            Origin { doc, window, score, shown: score }
        };
        Ok(kept.into_iter().map(shown).collect())
    }
}

/// Positions of the hits that are kept, of which these are the vectors.
///
/// # Errors
/// When no hit has a vector, or vectors have different lengths.
pub fn chosen(
    diversify: &Diversify,
    vectors: &[Vec<Vec<f32>>],
) -> Result<Result<Vec<usize>, Stopped>, SearchError> {
    if !vectors.is_empty() && vectors.iter().all(Vec::is_empty) {
        return Err(SearchError::illegal(format!(
            "Failed to retrieve vectors for field [{}]. Is it a [dense_vector] field, or a [semantic_text] field with dense vectors?",
            diversify.field
        )));
    }
    let query = match diversify.query.as_ref().map(|query| &query.kind) {
        Some(QueryKind::Knn(knn) | QueryKind::KnnBuilder(KnnBuilderQuery { knn, .. })) => {
            Some(&knn.vector[..])
        }
        _ => None,
    };
    let lengths = query.into_iter().map(<[f32]>::len).chain(vectors.iter().flatten().map(Vec::len));
    let (shortest, longest) = lengths.fold((usize::MAX, 0), |(a, b), length| (a.min(length), b.max(length)));
    if shortest < longest {
        return Err(SearchError::illegal(format!(
            "The vectors of the field [{}] and the query vector have different numbers of dimensions [{shortest}] and \
             [{longest}]",
            diversify.field
        )));
    }
    Ok(most_relevant_and_different(vectors, query, diversify.lambda, diversify.size))
}

/// Positions of the hits that maximal marginal relevance chooses by their vectors, in ascending order. Of hits with several vectors
/// the most similar ones count. `lambda` says how much the similarity to
/// `query` counts, and the rest is taken off for the largest similarity to one that is chosen already. The first choice is
/// the most similar one, or without a query the first position.
fn most_relevant_and_different(
    vectors: &[Vec<Vec<f32>>],
    query: Option<&[f32]>,
    lambda: f32,
    size: usize,
) -> Result<Vec<usize>, Stopped> {
    let relevance: Vec<f32> = vectors
        .iter()
        .map(|hit| {
            let similar = |query| hit.iter().map(|vector| similarity(vector, query)).reduce(f32::max);
            query.and_then(similar).unwrap_or(0.0)
        })
        .collect();
    let mut waiting: Vec<usize> = (0..vectors.len()).filter(|place| !vectors[*place].is_empty()).collect();
    let best = |places: &[usize], score: &dyn Fn(usize) -> f32| {
        // Of equals the first.
        places.iter().copied().reduce(|best, place| if score(place) > score(best) { place } else { best })
    };
    let first = match query {
        Some(_) => best(&waiting, &|place| relevance[place]),
        None => (!vectors.is_empty()).then_some(0),
    };
    let mut nearest = vec![f32::NEG_INFINITY; vectors.len()];
    let mut kept = Vec::with_capacity(size.min(vectors.len()));
    let mut next = first;
    while let Some(chosen) = next.filter(|_| kept.len() < size) {
        kept.push(chosen);
        waiting.retain(|place| *place != chosen);
        let mut compared = 0_usize;
        for vector in &vectors[chosen] {
            for &place in &waiting {
                for other in &vectors[place] {
                    if compared.is_multiple_of(COMPARED_AT_ONCE) {
                        work::check()?;
                    }
                    compared += 1;
                    nearest[place] = nearest[place].max(similarity(other, vector));
                }
            }
        }
        next = best(&waiting, &|place| {
            let near = if nearest[place].is_finite() { nearest[place] } else { 0.0 };
            lambda * relevance[place] - (1.0 - lambda) * near
        });
    }
    kept.sort_unstable();
    Ok(kept)
}

/// How similar two vectors of equal length are: their inner product, mapped to positive numbers as a score of `max_inner_product` is.
fn similarity(a: &[f32], b: &[f32]) -> f32 {
    // Several sums, so that the compiler may use wide registers.
    const LANES: usize = 16;
    let mut sums = [0.0_f32; LANES];
    let (a, b) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let rest: f32 = a.remainder().iter().zip(b.remainder()).map(|(a, b)| a * b).sum();
    for (a, b) in a.zip(b) {
        for (sum, (a, b)) in sums.iter_mut().zip(a.iter().zip(b)) {
            *sum += a * b;
        }
    }
    let product = rest + sums.iter().sum::<f32>();
    if product < 0.0 { 1.0 / (1.0 - product) } else { product + 1.0 }
}

#[cfg(test)]
mod tests {
    use super::most_relevant_and_different as kept;

    fn vector(angle: f32) -> Vec<f32> {
        vec![angle.cos(), angle.sin()]
    }

    fn vectors(angles: &[f32]) -> Vec<Vec<Vec<f32>>> {
        angles.iter().map(|angle| if angle.is_nan() { Vec::new() } else { vec![vector(*angle)] }).collect()
    }

    #[test]
    fn of_several_vectors_the_most_similar_ones_count() {
        // The second has one that resembles the first, and the third has none.
        let around = [vec![vector(0.0)], vec![vector(2.0), vector(0.1)], vec![vector(1.2), vector(2.2)]];
        assert_eq!(kept(&around, None, 0.0, 2), Ok(vec![0, 2]));
        assert_eq!(kept(&around, Some(&vector(2.0)), 1.0, 1), Ok(vec![1]));
    }

    #[test]
    fn what_resembles_a_chosen_one_is_left_out_as_far_as_lambda_says() {
        let around = vectors(&[0.0, 0.1, 1.2, 0.05, 2.8]);
        assert_eq!(kept(&around, None, 0.0, 3), Ok(vec![0, 2, 4]));
        assert_eq!(kept(&around, Some(&[1.0, 0.0]), 1.0, 3), Ok(vec![0, 1, 3]));
        assert_eq!(kept(&around, Some(&[1.0, 0.0]), 0.7, 3), Ok(vec![0, 1, 3]));
        assert_eq!(kept(&around, Some(&[1.0, 0.0]), 0.4, 3), Ok(vec![0, 2, 4]));
        assert_eq!(
            kept(&around, Some(&[0.0, 1.0]), 0.5, 1),
            Ok(vec![2]),
            "the most similar one is the first"
        );
    }

    #[test]
    fn hits_without_vectors_are_left_out() {
        let some = vectors(&[f32::NAN, 0.0, f32::NAN, 1.0]);
        assert_eq!(kept(&some, None, 0.5, 10), Ok(vec![0, 1, 3]));
        assert_eq!(kept(&some, Some(&[1.0, 0.0]), 0.5, 10), Ok(vec![1, 3]));
        assert_eq!(kept(&[], None, 0.5, 10), Ok(vec![]));
    }
}
