//! Fusion of ranked lists, for searches over a cluster: their lists come from elsewhere.

use napi::bindgen_prelude::{Float32Array, Uint32Array};
use napi::{Error, Result};
use napi_derive::napi;
use sparrow_engine::calibration::{Calibrated, Map, fuse_calibrated as fuse_as_probabilities};
use sparrow_engine::fusion::{Fused, Method, Normalizer, Ranked, Ties, fuse};

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
    Ok(listed(&fuse(method, Ties::Rank, &ranked)))
}

fn listed(fused: &[Fused<u32>]) -> FusedList {
    let documents: Vec<u32> = fused.iter().map(|hit| hit.doc).collect();
    let scores: Vec<f32> = fused.iter().map(|hit| hit.score).collect();
    FusedList { documents: documents.into(), scores: scores.into() }
}

/// How the scores of a list in one index become probabilities: the logistic function of `gain · score + offset`.
#[napi(object, object_to_js = false)]
pub struct CalibrationMap {
    /// Factor of a score.
    pub gain: f64,
    /// Log-odds of the score 0.
    pub offset: f64,
    /// Log-odds that a document which is not in the list is relevant.
    pub absent: f64,
}

/// One of the lists of a calibrated fusion, best first.
#[napi(object, object_to_js = false)]
pub struct CalibratedList {
    /// Numbers of the documents, without repeats.
    pub documents: Uint32Array,
    /// The score of each document.
    pub scores: Float32Array,
    /// Weight of the list in the fused scores.
    pub weight: f64,
    /// The map of the list's scores in each index; absent where the list finds nothing there.
    pub maps: Vec<Option<CalibrationMap>>,
}

/// Fuses lists into probabilities of relevance, as searches with the normalizer `calibrated` do. `indices` has the number of the index of
/// each document.
#[napi(catch_unwind)]
pub fn fuse_calibrated(indices: Uint32Array, lists: Vec<CalibratedList>) -> FusedList {
    let hits: Vec<Vec<(u32, f32)>> = lists
        .iter()
        .map(|list| list.documents.iter().copied().zip(list.scores.iter().copied()).collect())
        .collect();
    let maps: Vec<Vec<Option<Map>>> = lists
        .iter()
        .map(|list| {
            let given = |map: &Option<CalibrationMap>| {
                map.as_ref().map(|map| Map {
                    gain: map.gain as f32,
                    offset: map.offset as f32,
                    absent: map.absent as f32,
                })
            };
            list.maps.iter().map(given).collect()
        })
        .collect();
    let calibrated: Vec<Calibrated<'_, u32>> = lists
        .iter()
        .zip(hits.iter().zip(&maps))
        .map(|(list, (hits, maps))| Calibrated { hits, weight: list.weight as f32, maps })
        .collect();
    let index = |doc: &u32| indices.get(*doc as usize).map_or(0, |index| *index as usize);
    listed(&fuse_as_probabilities(Ties::Rank, &calibrated, index))
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
