//! Scores every matching document, term by term: the reference, and the way for format 1 and for
//! queries that bounds cannot handle (weights that are negative or beyond any scale).

use std::ops::Deref;

use sparrow_runtime::Executor;

use super::collect::Collector;
use super::{TopK, TopKRequest};
use crate::reader::PostingsReader;

pub(crate) fn top_k<B>(reader: &PostingsReader<B>, request: &TopKRequest<'_>) -> TopK
where
    B: Deref<Target = [u8]> + Clone + Send + Sync,
{
    let num_docs = reader.num_docs();
    let mut scores = vec![0_f32; num_docs as usize];
    let mut matches = vec![0_u64; num_docs.div_ceil(64) as usize];
    for (term, weight) in request.query {
        if request.is_cancelled() {
            return TopK::default();
        }
        let postings = reader.postings(*term);
        postings.mark_range(0, num_docs, &mut matches);
        postings.for_range(0, num_docs, |doc, position| {
            if let Some(score) = scores.get_mut(doc as usize) {
                *score += weight * postings.weight_at(position);
            }
        });
    }
    let minimum = request.min_score.unwrap_or(f32::NEG_INFINITY);
    let mut collector = Collector::new(request.k, request.floor());
    let mut matched = 0;
    for (word, bits) in matches.iter().enumerate() {
        let mut bits = bits & request.allowed_word(word);
        while bits != 0 {
            let doc = word as u32 * 64 + bits.trailing_zeros();
            bits &= bits - 1;
            let Some(score) = scores.get(doc as usize) else { break };
            if *score >= minimum {
                matched += 1;
                collector.push(doc, *score);
            }
        }
    }
    TopK {
        hits: collector.into_hits(request),
        matched: if request.count_limit == 0 { 0 } else { matched },
        executors: Executor::SparseExhaustive.into(),
    }
}
