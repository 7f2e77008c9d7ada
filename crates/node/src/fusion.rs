//! Fusion of ranked lists, for searches over a cluster: their lists come from elsewhere.

use napi::bindgen_prelude::{Float32Array, Uint32Array};
use napi::{Error, Result};
use napi_derive::napi;
use sparrow_engine::fusion::{Method, Normalizer, Ranked, Ties, fuse};

/// One of the lists to fuse, best first.
#[napi(object, object_to_js = false)]
pub struct RankedList {
    /// Numbers of the documents, without repeats.
    pub documents: Uint32Array,
    /// The score of each document.
    pub scores: Float32Array,
    /// Factor of the list's contribution to the fused scores.
    pub weight: f64,
    /// How `linear` normalizes the scores: `none`, `minmax`, `l2_norm`, `zscore` or `rarity`.
    pub normalizer: String,
}

/// Documents with their fused scores, best first. Equal scores are ordered by the first list that holds either document.
#[napi(object, object_from_js = false)]
pub struct FusedList {
    /// Numbers of the documents.
    pub documents: Uint32Array,
    /// The fused score of each document.
    pub scores: Float32Array,
}

/// Fuses lists as searches do: by reciprocal ranks with the given constant, or without one by the sum of normalized scores.
#[napi(catch_unwind)]
pub fn fuse_lists(rank_constant: Option<u32>, lists: Vec<RankedList>) -> Result<FusedList> {
    let method = rank_constant.map_or(Method::Linear, |rank_constant| Method::Rrf { rank_constant });
    let hits: Vec<Vec<(u32, f32)>> = lists
        .iter()
        .map(|list| list.documents.iter().copied().zip(list.scores.iter().copied()).collect())
        .collect();
    let ranked = lists
        .iter()
        .zip(&hits)
        .map(|(list, hits)| {
            let normalizer = Normalizer::named(&list.normalizer)
                .ok_or_else(|| Error::from_reason(format!("unknown normalizer [{}]", list.normalizer)))?;
            Ok(Ranked { hits, weight: list.weight as f32, normalizer })
        })
        .collect::<Result<Vec<_>>>()?;
    let fused = fuse(method, Ties::Rank, &ranked);
    let documents: Vec<u32> = fused.iter().map(|hit| hit.doc).collect();
    let scores: Vec<f32> = fused.iter().map(|hit| hit.score).collect();
    Ok(FusedList { documents: documents.into(), scores: scores.into() })
}

/// The lists of a short form, or the error that a search with it answers.
#[napi(object, object_from_js = false)]
pub struct ShortFormLists {
    /// HTTP status: 200, or that of the error.
    pub status: u16,
    /// JSON.
    pub body: String,
}

/// The lists that the short form of a fusion stands for, as JSON: `given` holds the retriever, and the indices that are searched.
#[napi(catch_unwind)]
pub fn expand_short_form(given: String) -> ShortFormLists {
    let (status, body) =
        sparrow_engine::expand_short_form(&given).map_or_else(|error| error, |lists| (200, lists));
    ShortFormLists { status, body }
}
