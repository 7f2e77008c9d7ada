//! Tests of clauses on every field type, and of Lucene's query syntax.

use serde_json::{Value, json};

use super::Fixture;
use crate::query::SearchOptions;
use sparrow_query::{
    ExistsQuery, IdsQuery, MatchQuery, MultiMatchQuery, MultiMatchType, Operator, PrefixQuery, Query,
    QueryKind, QueryStringQuery, RangeQuery, RegexpQuery, Rewrite, TermQuery, TermsQuery, WildcardQuery,
    ZeroTerms,
};

fn shop() -> Fixture {
    let mut fixture = Fixture::new(json!({
        "title": {"type": "text", "fields": {"raw": {"type": "keyword"}}},
        "body": {"type": "text", "analyzer": "english"},
        "tag": {"type": "keyword"},
        "price": {"type": "double"},
        "weight": {"type": "float"},
        "count": {"type": "integer"},
        "serial": {"type": "unsigned_long"},
        "sold": {"type": "boolean"},
        "when": {"type": "date"},
        "day": {"type": "date", "format": "dd/MM/yyyy"},
        "maker": {"properties": {"name": {"type": "keyword"}, "year": {"type": "short"}}},
        "v": {"type": "sparse_vector"},
    }));
    fixture.batch(&[
        (
            "1",
            json!({"title": "Red wine", "body": "The foxes are running", "tag": ["a", "b"],
                "price": 9.5, "weight": 0.1, "count": 3, "sold": true, "when": "2024-01-05T10:00:00Z",
                "maker": {"name": "Ann", "year": 1999}}),
        ),
        (
            "2",
            json!({"title": "White wine", "body": "A fox runs", "tag": "b", "price": 12, "weight": 2,
                "count": -7, "sold": false, "when": "2024-02-01", "day": "03/02/2024"}),
        ),
    ]);
    fixture.batch(&[
        (
            "3",
            json!({"title": "Red-hot chili", "tag": "C", "price": 0, "count": [1, 100],
                "serial": 18_446_744_073_709_551_615u64, "when": 1_706_745_600_000u64,
                "v": {"x": 1.0}}),
        ),
        ("4", json!({"title": "wines", "body": "of the and", "serial": 5})),
    ]);
    fixture
}

fn term(field: &str, value: Value) -> Query {
    Query::new(QueryKind::Term(TermQuery { field: field.into(), value, case_insensitive: false }))
}

fn range(field: &str, bounds: Value) -> Query {
    let bound = |name: &str| bounds.get(name).cloned();
    Query::new(QueryKind::Range(RangeQuery {
        field: field.into(),
        gt: bound("gt"),
        gte: bound("gte"),
        lt: bound("lt"),
        lte: bound("lte"),
        format: bounds.get("format").and_then(Value::as_str).map(str::to_owned),
        time_zone: bounds.get("time_zone").and_then(Value::as_str).map(str::to_owned),
        ..RangeQuery::default()
    }))
}

#[test]
fn exact_values() {
    let fixture = shop();
    for (field, value, expected) in [
        ("tag", json!("b"), "1 2"),
        ("tag", json!("c"), ""),
        ("title.raw", json!("Red wine"), "1"),
        ("title", json!("wine"), "1 2"),
        ("title", json!("Wine"), ""),
        ("price", json!(12), "2"),
        ("price", json!("9.5"), "1"),
        ("price", json!(0), "3"),
        ("weight", json!(0.1), "1"),
        ("count", json!(100), "3"),
        ("count", json!("-7"), "2"),
        ("count", json!(3.0), "1"),
        ("count", json!(3.5), ""),
        ("count", json!(99_999_999_999u64), ""),
        ("serial", json!(18_446_744_073_709_551_615u64), "3"),
        ("serial", json!(5), "4"),
        ("sold", json!(true), "1"),
        ("sold", json!("false"), "2"),
        ("when", json!("2024-01-05"), "1"),
        ("when", json!("2024-02-01"), "2 3"),
        ("when", json!(1_706_745_600_000u64), "2 3"),
        ("day", json!("03/02/2024"), "2"),
        ("maker.name", json!("Ann"), "1"),
        ("maker.year", json!(1999), "1"),
        ("maker", json!("Ann"), ""),
        ("v", json!("x"), "3"),
        ("unmapped", json!("x"), ""),
        ("_id", json!("3"), "3"),
    ] {
        assert_eq!(fixture.ids(term(field, value.clone())), expected, "{field} {value}");
        let values = vec![value.clone(), json!("0")];
        if fixture.snapshot().mapping().field(field).is_some_and(|kind| kind.name() == "keyword") {
            let terms = QueryKind::Terms(TermsQuery { field: field.into(), values: values.into() });
            assert_eq!(fixture.ids(terms), expected, "{field} {value}");
        }
    }
    let sensitive =
        QueryKind::Term(TermQuery { field: "tag".into(), value: json!("c"), case_insensitive: true });
    assert_eq!(fixture.ids(sensitive), "3");
    let many = QueryKind::Terms(TermsQuery {
        field: "count".into(),
        values: vec![json!(1), json!(3), json!(8)].into(),
    });
    assert_eq!(fixture.ids(many), "1 3");
    assert_eq!(fixture.ids(QueryKind::Terms(TermsQuery { field: "tag".into(), values: vec![].into() })), "");
    let ids = QueryKind::Ids(IdsQuery { values: vec!["4".into(), "2".into(), "nope".into()] });
    assert_eq!(fixture.ids(ids.clone()), "2 4");
    assert!(fixture.hits(ids).iter().all(|(_, score)| *score == 1.0));
}

#[test]
fn ranges() {
    let fixture = shop();
    for (field, bounds, expected) in [
        ("price", json!({"gte": 9.5}), "1 2"),
        ("price", json!({"gt": 9.5}), "2"),
        ("price", json!({"lt": "9.5"}), "3"),
        ("price", json!({}), "1 2 3"),
        ("weight", json!({"gt": 0.1}), "2"),
        ("weight", json!({"lte": 0.1}), "1"),
        ("count", json!({"gte": 1, "lt": 3}), "3"),
        ("count", json!({"gt": 2.5}), "1 3"),
        ("count", json!({"lt": -6.5}), "2"),
        ("count", json!({"gte": 2, "lte": 99}), "1"),
        ("count", json!({"gte": 1e30}), ""),
        ("count", json!({"gte": -1e30}), "1 2 3"),
        ("count", json!({"gte": 5, "lte": 4}), ""),
        ("serial", json!({"gt": 5}), "3"),
        ("serial", json!({"gte": -3, "lte": 5}), "4"),
        ("sold", json!({"gte": true}), "1"),
        ("sold", json!({"lt": true}), "2"),
        ("when", json!({"gte": "2024-01-05", "lte": "2024-01-05"}), "1"),
        ("when", json!({"gt": "2024-01-05"}), "2 3"),
        ("when", json!({"lt": "2024-01-05||+1d/d"}), "1"),
        ("when", json!({"lte": "now"}), "1 2 3"),
        ("when", json!({"gte": "now-1d/d"}), ""),
        ("when", json!({"gte": "05.01.2024", "lt": "06.01.2024", "format": "dd.MM.yyyy"}), "1"),
        ("when", json!({"gte": "2024-02-01T01:00", "time_zone": "+01:00"}), "2 3"),
        ("when", json!({"gte": "2024-02-01T01:00"}), ""),
        ("tag", json!({"gte": "a", "lt": "b"}), "1"),
        ("tag", json!({"gt": "a"}), "1 2"),
        ("tag", json!({"lte": "Z"}), "3"),
        ("title", json!({"gt": "wine"}), "4"),
        ("unmapped", json!({"gt": "wine"}), ""),
    ] {
        assert_eq!(fixture.ids(range(field, bounds.clone())), expected, "{field} {bounds}");
    }
}

#[test]
fn wrong_values_are_refused_as_elasticsearch_does() {
    let fixture = shop();
    for (query, kind, reason, cause) in [
        (
            term("count", json!("abc")),
            "query_shard_exception",
            "failed to create query: For input string: \"abc\"",
            "number_format_exception",
        ),
        (
            range("price", json!({"gte": "abc"})),
            "query_shard_exception",
            "failed to create query: For input string: \"abc\"",
            "number_format_exception",
        ),
        (
            term("sold", json!("abc")),
            "query_shard_exception",
            "failed to create query: Can't parse boolean value [abc], expected [true] or [false]",
            "illegal_argument_exception",
        ),
        (
            range("when", json!({"gte": "abc"})),
            "parse_exception",
            "failed to parse date field [abc] with format [strict_date_optional_time||epoch_millis]: \
             [failed to parse date field [abc] with format \
             [strict_date_optional_time||epoch_millis]]",
            "illegal_argument_exception",
        ),
        (
            Query::new(QueryKind::Prefix(PrefixQuery {
                field: "count".into(),
                value: "1".into(),
                case_insensitive: false,
                rewrite: Rewrite::Constant,
            })),
            "query_shard_exception",
            "failed to create query: Can only use prefix queries on keyword, text and wildcard fields - not on \
             [count] which is of type [integer]",
            "illegal_argument_exception",
        ),
    ] {
        let error = fixture.error(query);
        assert_eq!(error.es_type(), kind);
        assert_eq!(error.reason(), reason);
        assert_eq!(error.caused_by().map(|cause| cause.0), Some(cause));
        assert_eq!(error.status(), 400);
    }
}

#[test]
fn exists_and_patterns() {
    let fixture = shop();
    let exists = |field: &str| fixture.ids(QueryKind::Exists(ExistsQuery { field: field.into() }));
    assert_eq!(exists("price"), "1 2 3");
    assert_eq!(exists("maker"), "1");
    assert_eq!(exists("mak*"), "1");
    assert_eq!(exists("v"), "3");
    assert_eq!(exists("nope"), "");
    assert_eq!(exists("_id"), "1 2 3 4");
    let prefix = |field: &str, value: &str| {
        fixture.ids(QueryKind::Prefix(PrefixQuery {
            field: field.into(),
            value: value.into(),
            case_insensitive: false,
            rewrite: Rewrite::Constant,
        }))
    };
    assert_eq!(prefix("title", "wine"), "1 2 4");
    assert_eq!(prefix("title.raw", "Red"), "1 3");
    assert_eq!(prefix("tag", ""), "1 2 3");
    let wildcard = |field: &str, value: &str, case_insensitive: bool| {
        let (field, value) = (field.into(), value.into());
        fixture.ids(QueryKind::Wildcard(WildcardQuery {
            field,
            value,
            case_insensitive,
            rewrite: Rewrite::Constant,
        }))
    };
    assert_eq!(wildcard("title.raw", "*wine", false), "1 2");
    assert_eq!(wildcard("title.raw", "red*", false), "");
    assert_eq!(wildcard("title.raw", "red*", true), "1 3");
    let regexp = |value: &str| QueryKind::Regexp(RegexpQuery::new("title", value));
    assert_eq!(fixture.ids(regexp("wine|chil.")), "1 2 3");
    assert!(fixture.error(regexp("(")).reason().starts_with("failed to create query: "));
}

#[test]
fn texts_are_analysed_like_their_field() {
    let fixture = shop();
    let matching = |query: MatchQuery| fixture.ids(QueryKind::Match(query));
    let plain = |field: &str, text: &str| MatchQuery {
        field: field.into(),
        text: text.into(),
        ..MatchQuery::default()
    };
    assert_eq!(matching(plain("title", "RED wines")), "1 3 4");
    assert_eq!(matching(plain("body", "the fox ran running")), "1 2");
    assert_eq!(matching(plain("body", "the of")), "");
    let everything = MatchQuery { zero_terms_query: ZeroTerms::All, ..plain("body", "the of") };
    assert_eq!(matching(everything), "1 2 3 4");
    let all = MatchQuery { operator: Operator::And, ..plain("title", "red wine") };
    assert_eq!(matching(all), "1");
    for (spec, expected) in [("2", "1"), ("1", "1 2 3"), ("-1", "1 2 3"), ("100%", "1"), ("3", "")] {
        let minimum_should_match = Some(spec.to_owned());
        let query = MatchQuery { minimum_should_match, ..plain("title", "red wine") };
        assert_eq!(matching(query), expected, "{spec}");
    }
    let fuzzy = MatchQuery { fuzziness: Some("AUTO".into()), ..plain("title", "wihte") };
    assert_eq!(matching(fuzzy), "2");
    let lenient = MatchQuery { lenient: true, ..plain("count", "abc") };
    assert_eq!(matching(lenient), "");
    let error = fixture.error(QueryKind::Match(plain("count", "abc")));
    assert_eq!(error.reason(), "failed to create query: For input string: \"abc\"");
    assert_eq!(matching(plain("count", "100")), "3");
    assert_eq!(matching(plain("tag", "b")), "1 2");
    assert_eq!(matching(plain("unmapped", "b")), "");
    let english = MatchQuery { analyzer: Some("english".into()), ..plain("title", "wines") };
    assert_eq!(matching(english), "1 2");
    let unknown = MatchQuery { analyzer: Some("klingon".into()), ..plain("title", "wines") };
    let error = fixture.error(QueryKind::Match(unknown));
    assert_eq!(error.reason(), "[match] analyzer [klingon] not found");
}

#[test]
fn several_fields() {
    let fixture = shop();
    let multi = |kind: MultiMatchType, tie_breaker: Option<f32>| {
        fixture.hits(QueryKind::MultiMatch(MultiMatchQuery {
            fields: vec![("title".into(), 2.0), ("body".into(), 1.0), ("count".into(), 1.0)],
            kind,
            tie_breaker,
            template: MatchQuery { text: "red fox".into(), lenient: true, ..MatchQuery::default() },
            slop: 0,
            words_only: false,
        }))
    };
    let best = multi(MultiMatchType::BestFields, None);
    let sum = multi(MultiMatchType::MostFields, None);
    let find = |hits: &[(String, f32)], id: &str| hits.iter().find(|hit| hit.0 == id).map(|hit| hit.1);
    // Document 1 has "red" in the title and "foxes" in the body.
    let body = find(&best, "2").unwrap();
    let (one_best, one_sum) = (find(&best, "1").unwrap(), find(&sum, "1").unwrap());
    assert!(one_best > body && one_sum > one_best + 0.1, "{one_best} {one_sum} {body}");
    assert!(find(&sum, "4").is_none());
    let share = find(&multi(MultiMatchType::BestFields, Some(0.5)), "1").unwrap();
    assert!((share - (one_best + one_sum) / 2.0).abs() < 1e-5);
}

#[test]
fn lucene_syntax() {
    let fixture = shop();
    for (text, expected) in [
        ("title:wine", "1 2"),
        ("title:(red wine)", "1 2 3"),
        ("title:(red AND wine)", "1"),
        ("title:(+wine -red)", "2"),
        ("title:wine AND NOT tag:a", "2"),
        ("title:wine && !tag:a", "2"),
        ("NOT tag:b", "3 4"),
        ("title:\"red wine\"", "1"),
        ("title:\"wine red\"", ""),
        ("title:\"wine red\"~2", "1"),
        ("title:wi*", "1 2 4"),
        ("title:WI*", "1 2 4"),
        ("title:w?ne", "1 2"),
        ("title:*ot", "3"),
        ("title:whyte~1", "2"),
        ("title:wihte~", "2"),
        ("title:/win(e|es)/", "1 2 4"),
        ("count:[1 TO 3]", "1 3"),
        ("count:[1 TO 3}", "3"),
        ("count:{1 TO *]", "1 3"),
        ("count:>=3", "1 3"),
        ("count:<0", "2"),
        ("when:[2024-01-01 TO 2024-01-31]", "1"),
        ("when:2024-01-05", "1"),
        ("tag:[a TO b}", "1"),
        ("_exists_:maker.name", "1"),
        ("_exists_:mak*", "1"),
        ("_exists_:m?ker.n*", "1"),
        ("_exists_:makes*", ""),
        ("sold:*", "1 2"),
        ("*:*", "1 2 3 4"),
        ("*", "1 2 3 4"),
        ("", ""),
        ("fox", "1 2"),
        ("Ann", "1"),
        ("100", "3"),
        ("maker.name:Ann OR tag:C", "1 3"),
        ("title:red^5 tag:b", "1 2 3"),
        ("title.raw:Red\\ wine", "1"),
        ("tit*:chili", "3"),
        ("body:(the AND fox)", "1 2"),
        ("unmapped:x", ""),
        ("(title:red OR title:white) AND (tag:b OR tag:C)", "1 2 3"),
        ("count:abc", "failed to create query: For input string: \"abc\""),
        ("title:(wine", "Failed to parse query [title:(wine]"),
        ("AND wine", "Failed to parse query [AND wine]"),
    ] {
        assert_eq!(fixture.lucene(text), expected, "{text}");
    }
}

#[test]
fn lucene_options() {
    let fixture = shop();
    let query = |text: &str| QueryStringQuery::new(text);
    let title = |text: &str| QueryStringQuery { default_field: Some("title".into()), ..query(text) };
    assert_eq!(fixture.lucene_with(title("red wine")), "1 2 3");
    let all = QueryStringQuery { default_operator: Operator::And, ..title("red wine") };
    assert_eq!(fixture.lucene_with(all), "1");
    let minimum = QueryStringQuery { minimum_should_match: Some("2".into()), ..title("red wine hot") };
    assert_eq!(fixture.lucene_with(minimum), "1 3");
    assert_eq!(fixture.lucene_with(title("red-hot")), "1 3");
    let lenient = QueryStringQuery { lenient: true, ..query("count:abc OR tag:a") };
    assert_eq!(fixture.lucene_with(lenient), "1");
    let escaped = QueryStringQuery { escape: true, ..title("red (wine") };
    assert_eq!(fixture.lucene_with(escaped), "1 2 3");
    let leading = QueryStringQuery { allow_leading_wildcard: false, ..title("*ine") };
    assert_eq!(fixture.lucene_with(leading), "Failed to parse query [*ine]");

    let fields = |operator: Operator| QueryStringQuery {
        fields: vec![("title^3".into(), 1.0), ("body".into(), 1.0)],
        default_operator: operator,
        ..query("red fox")
    };
    assert_eq!(fixture.lucene_with(fields(Operator::Or)), "1 2 3");
    assert_eq!(fixture.lucene_with(fields(Operator::And)), "", "no single field has both");
    let score = |boost: f32| {
        let fields = vec![("title".to_owned(), boost), ("body".to_owned(), 1.0)];
        let query = QueryStringQuery { fields, ..query("chili") };
        fixture.hits(QueryKind::QueryString(query))[0].1
    };
    assert!((score(3.0) / score(1.0) - 3.0).abs() < 1e-5);
}

#[test]
fn post_filters_and_scans() {
    let mut fixture = shop();
    fixture.delete("1");
    let options =
        SearchOptions { size: 10, post_filter: Some(term("tag", json!("b"))), ..SearchOptions::default() };
    let top = fixture.top(&Query::match_all(), &options);
    assert_eq!(top.total, 1);
    assert_eq!(fixture.named(&top), [("2".to_owned(), 1.0)]);

    let snapshot = fixture.snapshot();
    let name = |rows: Vec<(u64, tantivy::DocAddress)>| -> Vec<String> {
        rows.iter().map(|(_, addr)| snapshot.fetch(*addr).unwrap().id).collect()
    };
    let query = range("price", json!({"gte": 0}));
    assert_eq!(name(snapshot.scan(&query, None, 1).unwrap()), ["2"]);
    assert_eq!(name(snapshot.scan(&query, Some(1), 5).unwrap()), ["3"]);
    assert_eq!(name(snapshot.scan(&Query::match_all(), None, 5).unwrap()), ["2", "3", "4"]);
}

#[test]
fn too_many_clauses_are_refused() {
    let fixture = shop();
    let text = "x ".repeat(20_000);
    let error =
        fixture.error(QueryKind::Match(MatchQuery { field: "title".into(), text, ..MatchQuery::default() }));
    assert_eq!(error.es_type(), "too_many_nested_clauses");
    // Each of the words stands for all that are near it.
    let mut fixture = Fixture::new(json!({"title": {"type": "text"}}));
    let near: Vec<String> =
        ('a'..='z').flat_map(|end| [format!("word{end}"), format!("wor{end}x")]).collect();
    fixture.batch(&[("1", json!({"title": near.join(" ")}))]);
    let fuzzy = |words: usize| MatchQuery {
        field: "title".into(),
        text: "worda ".repeat(words),
        fuzziness: Some("2".into()),
        ..MatchQuery::default()
    };
    assert_eq!(fixture.top(&QueryKind::Match(fuzzy(300)).into(), &SearchOptions::default()).total, 1);
    assert_eq!(fixture.error(QueryKind::Match(fuzzy(400))).es_type(), "too_many_nested_clauses");
    let values = (0..70_000).map(Value::from).collect();
    let error = fixture.error(QueryKind::Terms(TermsQuery { field: "tag".into(), values }));
    assert!(error.reason().contains("allowed maximum of [65536]"));
}
