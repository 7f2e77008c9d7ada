//! `calibration.json`: the map from a model's scores to a probability of relevance, fitted by `benches/calibration/`
//! or by `sparrow models calibrate`.
//!
//! It changes no vector, and is no part of the model's fingerprint: a model that gets such a file, or another one, still
//! searches the fields that it has filled.

use std::path::Path;

use serde::Deserialize;

use super::info::{Calibration, ModelKind};
use crate::error::EncoderError;
use crate::small_file;

const FILE: &str = "calibration.json";

/// The score that a calibration maps to a probability; it is scaled so that it means the same for every question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Feature {
    /// The cosine of the question's vector and the document's.
    Cosine,
    /// The dot product of the token weights of both, where those of the question are scaled to a vector of length one.
    UnitQuery,
}

/// The contents of `calibration.json`. Members that are not listed here are notes for people.
#[derive(Deserialize)]
struct Stored {
    feature: Feature,
    slope: f32,
    intercept: f32,
}

/// Reads the calibration of a model directory, if it has one.
///
/// # Errors
/// [`EncoderError::ModelNotReadable`] if the file is damaged, does not grow with the score, or is for another kind of model.
pub(super) fn load(dir: &Path, kind: ModelKind) -> Result<Option<Calibration>, EncoderError> {
    let path = dir.join(FILE);
    let unreadable = |reason: String| EncoderError::ModelNotReadable { path: path.clone(), reason };
    let bytes = match small_file::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unreadable(error.to_string())),
    };
    let stored: Stored = serde_json::from_slice(&bytes).map_err(|error| unreadable(error.to_string()))?;
    let fits = match kind {
        ModelKind::Dense { .. } => stored.feature == Feature::Cosine,
        ModelKind::SparseMlm | ModelKind::SparseDocOnly => stored.feature == Feature::UnitQuery,
        ModelKind::CrossEncoder => false,
    };
    if !fits {
        return Err(unreadable("the feature is for another kind of model".into()));
    }
    if !(stored.slope.is_finite() && stored.slope > 0.0 && stored.intercept.is_finite()) {
        return Err(unreadable("the slope must be a number above 0, and the intercept a number".into()));
    }
    Ok(Some(Calibration { slope: stored.slope, intercept: stored.intercept }))
}

#[cfg(test)]
mod tests {
    use super::{Calibration, FILE, ModelKind, load};

    #[test]
    fn a_calibration_may_be_missing_but_not_damaged() {
        let dir = tempfile::tempdir().unwrap();
        let dense = ModelKind::Dense { dims: 3 };
        assert_eq!(load(dir.path(), dense).unwrap(), None);
        let path = dir.path().join(FILE);
        let good = r#"{"feature": "cosine", "slope": 2.5, "intercept": -1, "_fitted": "by hand"}"#;
        std::fs::write(&path, good).unwrap();
        assert_eq!(load(dir.path(), dense).unwrap(), Some(Calibration { slope: 2.5, intercept: -1.0 }));
        assert!(load(dir.path(), ModelKind::SparseMlm).is_err());
        assert!(load(dir.path(), ModelKind::CrossEncoder).is_err());
        std::fs::write(&path, good.replace("cosine", "unit_query")).unwrap();
        assert!(load(dir.path(), ModelKind::SparseMlm).unwrap().is_some());
        assert!(load(dir.path(), dense).is_err());
        for bad in [
            "",
            "[]",
            r#"{"feature": "cosine", "slope": 2.5}"#,
            r#"{"feature": "cosine", "slope": 0, "intercept": -1}"#,
            r#"{"feature": "cosine", "slope": -2, "intercept": -1}"#,
            r#"{"feature": "cosine", "slope": 1e39, "intercept": -1}"#,
            r#"{"feature": "rank", "slope": 2, "intercept": -1}"#,
        ] {
            std::fs::write(&path, bad).unwrap();
            assert!(load(dir.path(), dense).is_err(), "{bad}");
        }
    }
}
