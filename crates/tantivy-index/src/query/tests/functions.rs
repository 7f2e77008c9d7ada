//! Tests of clauses that score by a document's values, against a naive evaluator.

use proptest::prelude::*;
use serde_json::json;

use super::{Fixture, assert_close};
use sparrow_query::{
    BoostMode, DecayCurve, DecayFunction, DistanceFeatureQuery, ExistsQuery, FunctionKind,
    FunctionScoreQuery, Modifier, MultiValue, Query, QueryKind, RankFeatureQuery, RankFunction,
    ScoreFunction, ScoreMode,
};

type Doc = (Option<u8>, Vec<i8>);

#[derive(Debug, Clone)]
enum Function {
    Weight(u8),
    Field(u8, Modifier, u8),
    Decay(DecayCurve, i8, u8, u8, MultiValue),
}

fn modifier() -> impl Strategy<Value = Modifier> {
    use Modifier::{Ln1p, Ln2p, Log1p, Log2p, None, Sqrt, Square};
    proptest::sample::select(&[None, Ln1p, Ln2p, Log1p, Log2p, Sqrt, Square][..])
}

fn function() -> impl Strategy<Value = Function> {
    let curve = proptest::sample::select(&[DecayCurve::Gauss, DecayCurve::Exp, DecayCurve::Linear][..]);
    let multi =
        proptest::sample::select(&[MultiValue::Min, MultiValue::Max, MultiValue::Avg, MultiValue::Sum][..]);
    prop_oneof![
        (0u8..4).prop_map(Function::Weight),
        (1u8..4, modifier(), 0u8..3)
            .prop_map(|(factor, modifier, missing)| Function::Field(factor, modifier, missing)),
        (curve, -5i8..6, 1u8..6, 0u8..3, multi).prop_map(|(curve, origin, scale, offset, multi)| {
            Function::Decay(curve, origin, scale, offset, multi)
        }),
    ]
}

fn evaluate(function: &Function, doc: &Doc) -> f64 {
    match function {
        Function::Weight(weight) => f64::from(*weight),
        Function::Field(factor, modifier, missing) => {
            let value = f64::from(doc.0.unwrap_or(*missing)) * f64::from(*factor);
            match modifier {
                Modifier::Ln1p => (value + 1.0).ln(),
                Modifier::Ln2p => (value + 2.0).ln(),
                Modifier::Log1p => (value + 1.0).log10(),
                Modifier::Log2p => (value + 2.0).log10(),
                Modifier::Sqrt => value.sqrt(),
                Modifier::Square => value * value,
                _ => value,
            }
        }
        Function::Decay(curve, origin, scale, offset, multi) => {
            let distances: Vec<f64> = doc
                .1
                .iter()
                .map(|value| (f64::from(*value) - f64::from(*origin)).abs() - f64::from(*offset))
                .map(|distance| distance.max(0.0))
                .collect();
            let sum: f64 = distances.iter().sum();
            let distance = match multi {
                _ if distances.is_empty() => 0.0,
                MultiValue::Min => distances.iter().copied().fold(f64::INFINITY, f64::min),
                MultiValue::Max => distances.iter().copied().fold(0.0, f64::max),
                MultiValue::Avg => sum / distances.len() as f64,
                MultiValue::Sum => sum,
            };
            let scale = f64::from(*scale);
            match curve {
                DecayCurve::Gauss => 0.5_f64.powf((distance / scale).powi(2)),
                DecayCurve::Exp => 0.5_f64.powf(distance / scale),
                DecayCurve::Linear => (1.0 - 0.5 * distance / scale).max(0.0),
            }
        }
    }
}

fn kind(function: &Function) -> FunctionKind {
    match function {
        Function::Weight(_) => FunctionKind::Weight,
        Function::Field(factor, modifier, missing) => FunctionKind::FieldValueFactor {
            field: "n".into(),
            factor: f32::from(*factor),
            modifier: *modifier,
            missing: Some(f64::from(*missing)),
        },
        Function::Decay(curve, origin, scale, offset, multi) => {
            FunctionKind::Decay(Box::new(DecayFunction {
                curve: *curve,
                field: "m".into(),
                origin: Some(json!(origin)),
                scale: Some(json!(scale)),
                offset: Some(json!(offset)),
                decay: 0.5,
                multi_value: *multi,
            }))
        }
    }
}

fn has_number() -> Query {
    QueryKind::Exists(ExistsQuery { field: "n".into() }).into()
}

fn joined(mode: ScoreMode, results: &[(f64, f64)]) -> f64 {
    let values = || results.iter().map(|(result, weight)| result * weight);
    let weights: f64 = results.iter().map(|(_, weight)| weight).sum();
    match mode {
        _ if results.is_empty() => 1.0,
        ScoreMode::Multiply => values().product(),
        ScoreMode::Sum | ScoreMode::Avg if weights == 0.0 => 1.0,
        ScoreMode::Sum => values().sum(),
        ScoreMode::Avg => values().sum::<f64>() / weights,
        ScoreMode::First => values().next().unwrap(),
        ScoreMode::Max => values().fold(f64::NEG_INFINITY, f64::max),
        ScoreMode::Min => values().fold(f64::INFINITY, f64::min),
    }
}

fn fixture(docs: &[Doc]) -> Fixture {
    let mut fixture = Fixture::new(json!({"n": {"type": "integer"}, "m": {"type": "double"}}));
    let rows: Vec<_> = docs
        .iter()
        .enumerate()
        .map(|(at, (n, m))| {
            let mut source = json!({"m": m});
            if let Some(n) = n {
                source["n"] = json!(n);
            }
            (at.to_string(), source)
        })
        .collect();
    let rows: Vec<_> = rows.iter().map(|(id, source)| (id.as_str(), source.clone())).collect();
    let (first, second) = rows.split_at(rows.len() / 2);
    fixture.batch(first).batch(second);
    fixture
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn function_scores_agree_with_a_naive_evaluator(
        docs in proptest::collection::vec((proptest::option::of(0u8..9), proptest::collection::vec(-9i8..9, 0..3)), 1..12),
        searches in proptest::collection::vec(
            (
                proptest::collection::vec((function(), any::<bool>(), 1u8..4), 0..4),
                proptest::sample::select(&[ScoreMode::Multiply, ScoreMode::Sum, ScoreMode::Avg, ScoreMode::First,
                    ScoreMode::Max, ScoreMode::Min][..]),
                proptest::sample::select(&[BoostMode::Multiply, BoostMode::Replace, BoostMode::Sum, BoostMode::Avg,
                    BoostMode::Max, BoostMode::Min][..]),
                1u8..4,
                proptest::option::of(0u8..4),
                1u8..40,
            ),
            12,
        ),
    ) {
        let fixture = fixture(&docs);
        for (functions, score_mode, boost_mode, boost, least, max_boost) in searches {
            let weight = |function: &Function, weight: u8| match function {
                Function::Weight(own) => f64::from(*own),
                _ => f64::from(weight),
            };
            let query = Query::new(QueryKind::FunctionScore(FunctionScoreQuery {
                query: Box::new(Query::match_all()),
                functions: functions.iter().map(|(function, filtered, by)| ScoreFunction {
                    filter: filtered.then(has_number),
                    weight: weight(function, *by) as f32,
                    kind: kind(function),
                }).collect(),
                score_mode,
                boost_mode,
                max_boost: f32::from(max_boost),
                min_score: least.map(f32::from),
            })).with_boost(f32::from(boost));
            let mut found = fixture.hits(query.clone());
            found.sort_by_key(|(id, _)| id.parse::<usize>().unwrap());
            let mut found = found.into_iter().peekable();
            let mut matched = 0;
            for (at, doc) in docs.iter().enumerate() {
                let results: Vec<(f64, f64)> = functions
                    .iter()
                    .filter(|(_, filtered, _)| !filtered || doc.0.is_some())
                    .map(|(function, _, by)| match function {
                        Function::Weight(own) => (1.0, f64::from(*own)),
                        _ => (evaluate(function, doc), f64::from(*by)),
                    })
                    .collect();
                let own = f64::from(boost);
                let of_functions = joined(score_mode, &results).min(f64::from(max_boost));
                let expected = match boost_mode {
                    _ if functions.is_empty() => own,
                    BoostMode::Multiply => own * of_functions,
                    BoostMode::Replace => of_functions,
                    BoostMode::Sum => own + of_functions,
                    BoostMode::Avg => (own + of_functions) / 2.0,
                    BoostMode::Max => own.max(of_functions),
                    BoostMode::Min => own.min(of_functions),
                };
                let score = found.next_if(|(id, _)| *id == at.to_string()).map(|(_, score)| score);
                match score {
                    Some(score) => {
                        matched += 1;
                        prop_assert!((f64::from(score) - expected).abs() <= 1e-4 * expected.max(1.0),
                            "{at}: {score} is not {expected} {functions:?} {score_mode:?} {boost_mode:?}");
                    }
                    None => prop_assert!(least.is_some_and(|least| expected < f64::from(least) + 1e-4)),
                }
            }
            prop_assert_eq!(fixture.snapshot().count(&query).unwrap(), matched);
        }
    }

    #[test]
    fn features_score_by_their_functions(
        values in proptest::collection::vec(proptest::option::of(1u16..1000), 1..12),
        pivot in 1u16..100,
        boost in 1u8..4,
    ) {
        let mut fixture = Fixture::new(json!({
            "rank": {"type": "rank_feature"},
            "length": {"type": "rank_feature", "positive_score_impact": false},
            "topics": {"type": "rank_features"},
        }));
        let rows: Vec<_> = values.iter().enumerate().map(|(at, value)| {
            let source = match value {
                Some(value) => json!({"rank": value, "length": value, "topics": {"x": value, "y": 1}}),
                None => json!({"topics": {"y": 1}}),
            };
            (at.to_string(), source)
        }).collect();
        let rows: Vec<_> = rows.iter().map(|(id, source)| (id.as_str(), source.clone())).collect();
        let (first, second) = rows.split_at(rows.len() / 2);
        fixture.batch(first).batch(second);
        let (pivot, boost) = (f32::from(pivot), f32::from(boost));
        for field in ["rank", "topics.x", "length"] {
            for function in [
                RankFunction::Saturation { pivot: Some(pivot) },
                RankFunction::Log { scaling_factor: 2.0 },
                RankFunction::Sigmoid { pivot, exponent: 0.5 },
                RankFunction::Linear,
            ] {
                let query = Query::new(QueryKind::RankFeature(RankFeatureQuery { field: field.into(), function }));
                if field == "length" && matches!(function, RankFunction::Log { .. }) {
                    prop_assert!(fixture.error(query).reason().contains("negative score impact"));
                    continue;
                }
                let found = fixture.hits(query.with_boost(boost));
                prop_assert_eq!(found.len(), values.iter().flatten().count());
                for (id, score) in found {
                    let value = f64::from(values[id.parse::<usize>().unwrap()].unwrap());
                    let (value, pivot) = match field {
                        "length" => (1.0 / value, 1.0 / f64::from(pivot)),
                        _ => (value, f64::from(pivot)),
                    };
                    let expected = match function {
                        RankFunction::Saturation { .. } => value / (value + pivot),
                        RankFunction::Log { .. } => (2.0 + value).ln(),
                        RankFunction::Sigmoid { .. } => value.sqrt() / (value.sqrt() + pivot.sqrt()),
                        RankFunction::Linear => value,
                    } * f64::from(boost);
                    // Nine bits of a feature are kept.
                    prop_assert!((f64::from(score) - expected).abs() <= 0.005 * expected, "{field} {function:?} {id}: {score} is not {expected}");
                }
            }
        }
    }
}

#[test]
fn a_saturation_without_a_pivot_takes_the_mean() {
    let mut fixture = Fixture::new(json!({"rank": {"type": "rank_feature"}}));
    fixture.batch(&[("1", json!({"rank": 8})), ("2", json!({"rank": 8}))]);
    let query = |field: &str| {
        QueryKind::RankFeature(RankFeatureQuery {
            field: field.into(),
            function: RankFunction::Saturation { pivot: None },
        })
    };
    assert_close(fixture.hits(query("rank"))[0].1, 0.5);
    assert!(fixture.hits(query("nope")).is_empty());
    assert!(fixture.hits(query("no.pe")).is_empty());
}

#[test]
fn the_nearer_a_date_the_higher() {
    let mut fixture = Fixture::new(json!({"day": {"type": "date"}, "n": {"type": "integer"}}));
    fixture.batch(&[
        ("1", json!({"day": "2024-01-10"})),
        ("2", json!({"day": ["2024-01-01", "2024-01-09"]})),
        ("3", json!({"n": 1})),
    ]);
    let query = |field: &str, origin: &str, pivot: &str| {
        QueryKind::DistanceFeature(DistanceFeatureQuery {
            field: field.into(),
            origin: json!(origin),
            pivot: pivot.into(),
        })
    };
    let found = fixture.hits(query("day", "2024-01-10", "1d"));
    assert_eq!(found.iter().map(|(id, _)| id.as_str()).collect::<Vec<_>>(), ["1", "2"]);
    assert_close(found[0].1, 1.0);
    assert_close(found[1].1, 0.5);
    assert!(fixture.hits(query("nope", "now", "1d")).is_empty());
    assert!(fixture.error(query("n", "now", "1d")).reason().contains("Illegal data type of [integer]"));
    assert!(fixture.error(query("day", "now", "1")).reason().contains("unit is missing"));
}

#[test]
fn scores_that_cannot_be_worked_out_are_errors() {
    let mut fixture = Fixture::new(json!({"n": {"type": "integer"}, "title": {"type": "text"}}));
    fixture.batch(&[("1", json!({"n": 0})), ("2", json!({"title": "x"}))]);
    let score = |field: &str, modifier: Modifier, missing: Option<f64>| {
        QueryKind::FunctionScore(FunctionScoreQuery {
            query: Box::new(Query::match_all()),
            functions: vec![ScoreFunction {
                filter: None,
                weight: 1.0,
                kind: FunctionKind::FieldValueFactor { field: field.into(), factor: 1.0, modifier, missing },
            }],
            score_mode: ScoreMode::Multiply,
            boost_mode: BoostMode::Multiply,
            max_boost: f32::MAX,
            min_score: None,
        })
    };
    let error = |kind: QueryKind| fixture.error(kind).reason();
    assert_eq!(error(score("n", Modifier::None, None)), "Missing value for field [n]");
    assert!(error(score("n", Modifier::Log, Some(0.5))).contains("must not produce negative scores"));
    assert!(error(score("nope", Modifier::None, None)).contains("Unable to find a field mapper"));
    assert!(error(score("title", Modifier::None, None)).contains("of type [text]"));
    assert_eq!(fixture.hits(score("nope", Modifier::None, Some(2.0))).len(), 2);
}
