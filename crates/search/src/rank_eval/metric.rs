//! Measures of a ranked list's quality against relevance judgements, as Elasticsearch computes them.

use serde_json::{Map, Value, json};

use super::member_reader::MemberReader;
use sparrow_request::error::EngineError;
use sparrow_wire::shape::{Shape, flag, int, object, one_member};

/// Number of hits of each list that are evaluated unless the request says otherwise.
const DEFAULT_K: usize = 10;
/// Highest number of hits of a list that are evaluated: each hit is held in memory.
const MAX_K: usize = 10_000;

/// A measure of a ranked list's quality, with its parameters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Metric {
    kind: Kind,
    /// Number of hits of each list that are evaluated.
    pub k: usize,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Precision { threshold: u32, ignore_unlabeled: bool },
    Recall { threshold: u32 },
    ReciprocalRank { threshold: u32 },
    Dcg { normalize: bool, unknown: Option<u32> },
    ExpectedReciprocalRank { maximum: u32, unknown: Option<u32> },
}

/// Quality of a ranked list, and how it was computed.
#[derive(Debug, Clone, PartialEq)]
pub struct Quality {
    /// Value of the measure.
    pub score: f64,
    /// The `metric_details` object of the response.
    pub details: Value,
}

/// What the `metric` section holds.
pub fn shape() -> Shape {
    let k = || ("k", int().preset(DEFAULT_K));
    let threshold = || ("relevant_rating_threshold", int().preset(1));
    let unknown = || ("unknown_doc_rating", int());
    let ignore = ("ignore_unlabeled", flag().preset(false));
    one_member([
        ("precision", object([k(), threshold(), ignore])),
        ("recall", object([k(), threshold()])),
        ("mean_reciprocal_rank", object([k(), threshold()])),
        ("dcg", object([k(), ("normalize", flag().preset(false)), unknown()])),
        (
            "expected_reciprocal_rank",
            object([k(), ("maximum_relevance", int()), unknown()]).needs(&["maximum_relevance"]),
        ),
    ])
}

impl Metric {
    /// Reads the `metric` section: an object whose single key names the measure.
    ///
    /// # Errors
    /// Parsing exceptions that name what is wrong with the section.
    pub fn parse(value: &Value) -> Result<Self, EngineError> {
        let named = value.as_object().filter(|members| members.len() == 1);
        let Some((name, body)) = named.and_then(|members| members.iter().next()) else {
            return Err(EngineError::parse("[metric] must be an object with the name of one metric"));
        };
        let empty = Map::new();
        let Some(body) = body.as_object().or(body.is_null().then_some(&empty)) else {
            return Err(EngineError::parse(format!("[{name}] must be an object")));
        };
        let mut reader = MemberReader::new(name, body);
        let kind = match name.as_str() {
            "precision" => Kind::Precision {
                threshold: threshold(&mut reader)?,
                ignore_unlabeled: reader.boolean("ignore_unlabeled")?.unwrap_or(false),
            },
            "recall" => Kind::Recall { threshold: threshold(&mut reader)? },
            "mean_reciprocal_rank" => Kind::ReciprocalRank { threshold: threshold(&mut reader)? },
            "dcg" => Kind::Dcg {
                normalize: reader.boolean("normalize")?.unwrap_or(false),
                unknown: reader.rating("unknown_doc_rating")?,
            },
            "expected_reciprocal_rank" => {
                let maximum = reader
                    .rating("maximum_relevance")?
                    .ok_or_else(|| EngineError::illegal_argument("Required [maximum_relevance]"))?;
                let unknown = reader.rating("unknown_doc_rating")?;
                if let Some(unknown) = unknown.filter(|unknown| *unknown > maximum) {
                    return Err(EngineError::illegal_argument(format!(
                        "[expected_reciprocal_rank] [unknown_doc_rating] [{unknown}] is above [maximum_relevance] [{maximum}]"
                    )));
                }
                Kind::ExpectedReciprocalRank { maximum, unknown }
            }
            other => {
                let near = shape().near(other);
                return Err(EngineError::parse(format!("unknown evaluation metric [{other}]{near}")));
            }
        };
        let k = match reader.integer("k")? {
            None => DEFAULT_K,
            Some(k) => match usize::try_from(k) {
                Ok(k @ 1..=MAX_K) => k,
                Ok(0) | Err(_) => {
                    return Err(EngineError::illegal_argument("Window size k must be positive."));
                }
                Ok(_) => {
                    return Err(EngineError::illegal_argument(format!(
                        "Window size k must be at most [{MAX_K}]."
                    )));
                }
            },
        };
        reader.done()?;
        Ok(Self { kind, k })
    }

    /// Refuses a rating that the measure gives no meaning to: one above the highest makes somebody satisfied with a probability of more
    /// than 1, and the score of a list meaningless.
    ///
    /// # Errors
    /// A sentence that names the measure and the rating.
    pub fn check(&self, rating: u32) -> Result<(), EngineError> {
        match self.kind {
            Kind::ExpectedReciprocalRank { maximum, .. } if rating > maximum => {
                Err(EngineError::illegal_argument(format!(
                    "[expected_reciprocal_rank] takes ratings up to [maximum_relevance] [{maximum}], got [{rating}]"
                )))
            }
            _ => Ok(()),
        }
    }

    /// Judges a list. `ratings` has the rating of each hit, best first, `rated` those of all judged documents.
    pub fn quality(&self, ratings: &[Option<u32>], rated: &[u32]) -> Quality {
        match self.kind {
            Kind::Precision { threshold, ignore_unlabeled } => {
                let relevant = ratings.iter().flatten().filter(|rating| **rating >= threshold).count();
                let counted = ratings.iter().filter(|rating| rating.is_some() || !ignore_unlabeled).count();
                let details = json!({"relevant_docs_retrieved": relevant, "docs_retrieved": counted});
                Quality { score: share(relevant, counted), details: json!({"precision": details}) }
            }
            Kind::Recall { threshold } => {
                let relevant = ratings.iter().flatten().filter(|rating| **rating >= threshold).count();
                let all = rated.iter().filter(|rating| **rating >= threshold).count();
                let details = json!({"relevant_docs_retrieved": relevant, "relevant_docs": all});
                Quality { score: share(relevant, all), details: json!({"recall": details}) }
            }
            Kind::ReciprocalRank { threshold } => {
                let first =
                    ratings.iter().position(|rating| rating.is_some_and(|rating| rating >= threshold));
                let score = first.map_or(0.0, |place| 1.0 / (place as f64 + 1.0));
                let first = first.map_or(-1, |place| place as i64 + 1);
                Quality { score, details: json!({"mean_reciprocal_rank": {"first_relevant": first}}) }
            }
            Kind::Dcg { normalize, unknown } => {
                let gained = dcg(ratings.iter().map(|rating| rating.or(unknown)));
                let mut best = rated.to_vec();
                best.sort_unstable_by(|a, b| b.cmp(a));
                let ideal = match normalize {
                    true => dcg(best.into_iter().take(ratings.len()).map(Some)),
                    false => 0.0,
                };
                let mut details = json!({"dcg": gained});
                if ideal > 0.0 {
                    details["ideal_dcg"] = ideal.into();
                    details["normalized_dcg"] = (gained / ideal).into();
                }
                details["unrated_docs"] = unrated(ratings).into();
                let score = match (normalize, ideal > 0.0) {
                    (false, _) => gained,
                    (true, true) => gained / ideal,
                    (true, false) => 0.0,
                };
                Quality { score, details: json!({"dcg": details}) }
            }
            Kind::ExpectedReciprocalRank { maximum, unknown } => {
                // How likely somebody reads on to a place, and what is expected of those who stopped before.
                let (mut reads_on, mut expected) = (1.0, 0.0);
                for (rating, rank) in ratings.iter().zip(1_u32..) {
                    let Some(rating) = rating.or(unknown) else { continue };
                    let satisfied = (power(rating) - 1.0) / power(maximum);
                    expected += reads_on * satisfied / f64::from(rank);
                    reads_on *= 1.0 - satisfied;
                }
                let details = json!({"unrated_docs": unrated(ratings)});
                Quality { score: expected, details: json!({"expected_reciprocal_rank": details}) }
            }
        }
    }
}

fn threshold(reader: &mut MemberReader<'_>) -> Result<u32, EngineError> {
    match reader.integer("relevant_rating_threshold")? {
        None => Ok(1),
        Some(threshold) => u32::try_from(threshold).map_err(|_| {
            EngineError::illegal_argument("Relevant rating threshold for precision must be positive integer.")
        }),
    }
}

fn share(part: usize, whole: usize) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

fn unrated(ratings: &[Option<u32>]) -> usize {
    ratings.iter().filter(|rating| rating.is_none()).count()
}

fn power(rating: u32) -> f64 {
    f64::from(rating).exp2()
}

/// `Σ (2^rating - 1) / log2(rank + 1)`; a place without a rating adds nothing.
fn dcg(ratings: impl Iterator<Item = Option<u32>>) -> f64 {
    let gains = ratings.zip(1_u32..).filter_map(|(rating, rank)| Some((rating?, rank)));
    gains.map(|(rating, rank)| (power(rating) - 1.0) / f64::from(rank + 1).log2()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quality(metric: Value, found: &[Option<u32>], rated: &[u32]) -> Quality {
        Metric::parse(&metric).unwrap().quality(found, rated)
    }

    #[test]
    fn measures_are_those_of_the_documentation() {
        let found = [Some(1), None, Some(0), Some(3)];
        let rated = [1, 0, 3, 2];
        let of = |metric: Value| quality(metric, &found, &rated);
        let precision = of(json!({"precision": {}}));
        assert_eq!(precision.score, 0.5);
        assert_eq!(
            precision.details,
            json!({"precision": {"relevant_docs_retrieved": 2, "docs_retrieved": 4}})
        );
        assert_eq!(of(json!({"precision": {"ignore_unlabeled": true}})).score, 2.0 / 3.0);
        assert_eq!(of(json!({"precision": {"relevant_rating_threshold": 2}})).score, 0.25);
        assert_eq!(of(json!({"recall": {}})).score, 2.0 / 3.0);
        let first = of(json!({"mean_reciprocal_rank": {"relevant_rating_threshold": 2}}));
        assert_eq!(
            (first.score, first.details),
            (0.25, json!({"mean_reciprocal_rank": {"first_relevant": 4}}))
        );
        let none = of(json!({"mean_reciprocal_rank": {"relevant_rating_threshold": 4}}));
        assert_eq!(
            (none.score, none.details),
            (0.0, json!({"mean_reciprocal_rank": {"first_relevant": -1}}))
        );
    }

    /// The example values of Elasticsearch's own tests.
    #[test]
    fn gains_are_discounted_as_in_elasticsearch() {
        let found: Vec<Option<u32>> = [3, 2, 3, 0, 1, 2].map(Some).to_vec();
        let rated: Vec<u32> = found.iter().flatten().copied().collect();
        let plain = quality(json!({"dcg": {}}), &found, &rated);
        assert!((plain.score - 13.848_263_629_272_981).abs() < 1e-9, "{plain:?}");
        let normalized = quality(json!({"dcg": {"normalize": true}}), &found, &rated);
        assert!((normalized.score - 13.848_263_629_272_981 / 14.595_390_756_454_922).abs() < 1e-9);
        let mut unrated = found.clone();
        unrated[4] = None;
        let partly = quality(json!({"dcg": {}}), &unrated, &rated);
        assert!((partly.score - 13.461_411_027_9).abs() < 1e-6, "{partly:?}");
        assert_eq!(partly.details["dcg"]["unrated_docs"], 1);
    }

    #[test]
    fn expected_ranks_stop_where_somebody_is_satisfied() {
        let found: Vec<Option<u32>> = [3, 2, 0, 1].map(Some).to_vec();
        let found = quality(json!({"expected_reciprocal_rank": {"maximum_relevance": 3}}), &found, &[]);
        let expected = 0.875 + 0.125 * 0.375 / 2.0 + 0.125 * 0.625 * 0.125 / 4.0;
        assert!((found.score - expected).abs() < 1e-12, "{found:?}");
    }

    #[test]
    fn expected_ranks_take_no_rating_above_the_highest() {
        let metric = Metric::parse(&json!({"expected_reciprocal_rank": {"maximum_relevance": 3}})).unwrap();
        assert!(metric.check(3).is_ok());
        let refused = metric.check(4).unwrap_err().reason();
        assert!(refused.contains("up to [maximum_relevance] [3], got [4]"), "{refused}");
        assert!(Metric::parse(&json!({"dcg": {}})).unwrap().check(4).is_ok());
    }

    #[test]
    fn bad_metrics_are_refused() {
        for (metric, reason) in [
            (json!({"accuracy": {}}), "unknown evaluation metric [accuracy]"),
            (json!({}), "[metric] must be an object"),
            (json!({"precision": {"k": 0}}), "Window size k must be positive."),
            (json!({"precision": {"deep": 3}}), "[precision] unknown field [deep]"),
            (json!({"expected_reciprocal_rank": {}}), "Required [maximum_relevance]"),
            (
                json!({"expected_reciprocal_rank": {"maximum_relevance": 2, "unknown_doc_rating": 3}}),
                "[unknown_doc_rating] [3] is above [maximum_relevance] [2]",
            ),
            (json!({"dcg": {"normalize": 3}}), "[dcg] failed to parse field [normalize]"),
        ] {
            let error = Metric::parse(&metric).unwrap_err();
            assert!(error.reason().contains(reason), "{}", error.reason());
        }
    }
}
