//! The calibration of lists that a cluster finds: how their scores become probabilities of relevance. What vectors score is known
//! here; of words, the cluster has the statistics, which it is asked for in between.

use serde::Deserialize;
use serde_json::{Value, json};
use sparrow_query::{MatchQuery, MultiMatchType, Query, QueryKind, ZeroTerms};
use sparrow_request::error::EngineError;
use sparrow_request::operation::{Lane, Operation};
use sparrow_request::request::{CancelFlag, Reply, Request};
use sparrow_request::rights::Action;
use sparrow_tantivy_index::query::unit_of_frequencies;

use super::{Clause, Index, bound, parsed};
use crate::calibrate::{self, Scores};
use crate::service::SearchService;
use sparrow_search_body::calibration::{Map, WORDS};

pub(crate) const OPERATIONS: &[Operation<SearchService>] =
    &[Operation::new("calibrate_lists", Action::Infer, Lane::Read, calibrate_lists)
        .about("How scores in indices that are kept elsewhere become probabilities of relevance.")
        .json()
        .stops()
        .unlisted()];

#[derive(Deserialize)]
struct Asked {
    /// Kinds of retrievers among the lists that are no query and no kNN search.
    #[serde(default)]
    fused: Vec<String>,
    /// Whether the search has boosts of indices.
    #[serde(default)]
    boosts: bool,
    #[serde(default)]
    indices: Vec<Index>,
    #[serde(default)]
    lists: Vec<Clause>,
    #[serde(default)]
    words: Vec<Words>,
}

/// What the cluster says of the words of a list in one index.
#[derive(Deserialize)]
struct Words {
    /// The product of the boosts around the clause.
    boost: f32,
    fields: Vec<WordsInField>,
}

#[derive(Deserialize)]
struct WordsInField {
    boost: f32,
    /// Documents that have the field.
    docs: u64,
    /// For each word of the text, the documents that have it.
    frequencies: Vec<u64>,
}

fn calibrate_lists(
    service: &SearchService,
    _: &Request,
    body: &[u8],
    cancel: &CancelFlag,
) -> Result<Reply, EngineError> {
    let asked: Asked = parsed(body)?;
    if asked.boosts {
        return Err(calibrate::beside_boosts());
    }
    if let Some(kind) = asked.fused.first() {
        return Err(calibrate::of_fused(kind));
    }
    let mappings = asked.indices.iter().map(Index::mapping).collect::<Result<Vec<_>, _>>()?;
    let mut models = Vec::new();
    let note =
        |queries: &[&mut Query]| models = queries.iter().map(|query| calibrate::model_of(query)).collect();
    let queries = bound(service, &asked.indices, &mappings, &asked.lists, note, cancel)?;
    let mut lists = Vec::with_capacity(queries.len());
    for (query, model) in queries.iter().zip(&models) {
        let each = mappings.iter().map(|mapping| {
            Ok(match calibrate::scores(&service.models, mapping, query, model.as_deref())? {
                Scores::None => json!({"kind": "none"}),
                Scores::Mapped(map) => json!({"kind": "map", "map": shown(map)}),
                Scores::Words(clause, outer) => {
                    let words = words_of(&clause).ok_or_else(calibrate::not_of_words)?;
                    json!({"kind": "words", "words": words, "boost": outer})
                }
            })
        });
        lists.push(each.collect::<Result<Vec<Value>, EngineError>>()?);
    }
    let words: Vec<Value> = asked.words.iter().map(|list| shown(of_statistics(list))).collect();
    Ok(Reply::ok(&json!({"lists": lists, "words": words})))
}

/// Of several fields, the one counts in which the words could reach most.
fn of_statistics(list: &Words) -> Map {
    let units =
        list.fields.iter().map(|field| field.boost * unit_of_frequencies(field.docs, &field.frequencies));
    Map::new(WORDS, units.fold(0.0, f32::max) * list.boost, 0.0)
}

fn shown(map: Map) -> Value {
    json!({
        "gain": map.gain, "offset": map.offset, "absent": map.absent, "probability_of_absent": map.of_absent(),
    })
}

/// The texts that a clause looks for as words, and in which fields; names may hold `*`. `None` for a clause that is more than that.
fn words_of(query: &Query) -> Option<Vec<Value>> {
    let text = |clause: &MatchQuery, fields: &[(String, f32)]| {
        let is_plain = clause.fuzziness.is_none() && clause.zero_terms_query == ZeroTerms::None;
        is_plain.then(|| {
            vec![json!({
                "fields": fields, "text": clause.text, "analyzer": clause.analyzer, "boost": query.boost,
            })]
        })
    };
    match &query.kind {
        QueryKind::Match(clause) => text(clause, &[(clause.field.clone(), 1.0)]),
        QueryKind::MultiMatch(clause) => match clause.kind {
            MultiMatchType::BestFields | MultiMatchType::MostFields => text(&clause.template, &clause.fields),
            _ => None,
        },
        QueryKind::Lenient(clause) => words_of(&clause.query).map(|words| within(words, query.boost)),
        QueryKind::DisMax(clause) => {
            let all: Option<Vec<Vec<Value>>> = clause.queries.iter().map(words_of).collect();
            all.map(|all| within(all.concat(), query.boost))
        }
        QueryKind::Bool(tree) if tree.should.is_empty() => match &tree.must[..] {
            [one] => words_of(one).map(|words| within(words, query.boost)),
            _ => None,
        },
        _ => None,
    }
}

/// Clauses that stand in another one with this boost.
fn within(mut words: Vec<Value>, boost: f32) -> Vec<Value> {
    for clause in &mut words {
        clause["boost"] = json!(clause["boost"].as_f64().unwrap_or(1.0) as f32 * boost);
    }
    words
}

#[cfg(test)]
mod tests {
    use sparrow_query::dsl::{Context, parse_query};
    use sparrow_wire::json;

    use super::{Map, WORDS, Words, WordsInField, of_statistics, words_of};

    fn words(query: &str) -> Option<serde_json::Value> {
        let (node, _) = json::read(query.as_bytes()).unwrap();
        words_of(&parse_query(&node, Context::new(10)).unwrap()).map(Into::into)
    }

    #[test]
    fn texts_are_found_below_clauses_that_only_filter_or_choose() {
        let one = words(r#"{"match": {"title": {"query": "red fox", "boost": 2}}}"#).unwrap();
        assert_eq!(one[0]["fields"], serde_json::json!([["title", 1.0]]));
        assert_eq!((one[0]["text"].as_str(), one[0]["boost"].as_f64()), (Some("red fox"), Some(2.0)));
        let two = words(
            r#"{"dis_max": {"boost": 3, "queries": [
                {"match": {"title": {"query": "fox", "boost": 2}}},
                {"bool": {"must": {"multi_match": {"query": "fox", "fields": ["a^4", "b*"]}}, "filter": {"match_all": {}}}}
            ]}}"#,
        )
        .unwrap();
        assert_eq!(two[0]["boost"].as_f64(), Some(6.0));
        assert_eq!(two[1]["fields"], serde_json::json!([["a", 4.0], ["b*", 1.0]]));
        for other in [
            r#"{"match_all": {}}"#,
            r#"{"match": {"title": {"query": "fox", "fuzziness": 1}}}"#,
            r#"{"multi_match": {"query": "fox", "type": "phrase"}}"#,
            r#"{"bool": {"should": [{"match": {"title": "fox"}}]}}"#,
        ] {
            assert_eq!(words(other), None, "{other}");
        }
    }

    #[test]
    fn the_field_in_which_words_reach_most_counts() {
        let field = |docs, frequencies: &[u64], boost| WordsInField {
            boost,
            docs,
            frequencies: frequencies.to_vec(),
        };
        let map = |fields| of_statistics(&Words { boost: 1.0, fields });
        let alone = map(vec![field(1000, &[3, 0], 1.0)]);
        assert!(alone.gain > 0.0 && alone.gain < WORDS.slope);
        // A word that every document has can reach nothing, so the other field counts.
        assert_eq!(map(vec![field(1000, &[1000], 1.0), field(1000, &[3, 0], 1.0)]), alone);
        assert_eq!(map(vec![field(1000, &[3, 0], 2.0)]).gain, alone.gain / 2.0);
        // Where no document has any of the words, no score is above that of nothing in common.
        assert_eq!(map(vec![field(1000, &[0, 0], 1.0)]), Map::new(WORDS, 0.0, 0.0));
    }
}
