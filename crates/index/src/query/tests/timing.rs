use super::super::*;
use super::Fixture;
use serde_json::json;
#[test]
#[ignore]
fn timing() {
    let mut fixture = Fixture::new(json!({"title": {"type": "text"}, "tag": {"type": "keyword"}, "n": {"type": "integer"}, "v": {"type": "sparse_vector"}}));
    let mut x = 12345u64;
    let mut rnd = move |n: u64| { x ^= x << 13; x ^= x >> 7; x ^= x << 17; x % n };
    for chunk in 0..6 {
        let rows: Vec<(String, _)> = (0..20000).map(|i| {
            let words: Vec<String> = (0..20).map(|_| { let a = rnd(300) + 1; format!("w{}", 20000 / a * rnd(3) % 9000) }).collect();
            let tokens: serde_json::Map<_, _> = (0..60).map(|_| (format!("t{}", rnd(170).pow(2)), json!(0.1 + rnd(100) as f64 / 50.0))).collect();
            ((chunk * 20000 + i).to_string(), json!({"title": words.join(" "), "tag": format!("g{}", rnd(50)), "n": rnd(1000), "v": tokens}))
        }).collect();
        let rows: Vec<(&str, _)> = rows.iter().map(|(id, s)| (id.as_str(), s.clone())).collect();
        fixture.batch(&rows);
    }
    let sparse = Query::new(QueryKind::Sparse(SparseQuery { field: "v".into(), tokens: (0..40).map(|i| (format!("t{}", (i * 4u64).pow(2)).into(), 0.2 + i as f32 / 20.0)).collect(), ..Default::default() }));
    let pruned = Query::new(QueryKind::Sparse(SparseQuery { pruning: Some(Default::default()), ..match &sparse.kind { QueryKind::Sparse(s) => s.clone(), _ => unreachable!() } }));
    let tag = Query::new(QueryKind::Term { field: "tag".into(), value: json!("g7"), case_insensitive: false });
    let range = Query::new(QueryKind::Range(RangeQuery { field: "n".into(), gte: Some(json!(100)), lt: Some(json!(200)), ..Default::default() }));
    let m = |t: &str| Query::new(QueryKind::Match(MatchQuery { field: "title".into(), text: t.into(), ..Default::default() }));
    for (name, q) in [
        ("match_all", Query::match_all()), ("match 1", m("w66")), ("match 5", m("w66 w0 w200 w133 w1000")), ("tag", tag.clone()), ("range", range.clone()),
        ("fuzzy", Query::new(QueryKind::Match(MatchQuery { field: "title".into(), text: "w1334".into(), fuzziness: Some("AUTO".into()), ..Default::default() }))),
        ("sparse", sparse.clone()), ("sparse pruned cfg", pruned),
        ("sparse + filter tag", Query::new(QueryKind::Bool(BoolQuery { must: vec![sparse.clone()], filter: vec![tag.clone()], ..Default::default() }))),
        ("sparse + match should", Query::new(QueryKind::Bool(BoolQuery { should: vec![sparse.clone(), m("w66 w0")], ..Default::default() }))),
        ("match + filters", Query::new(QueryKind::Bool(BoolQuery { must: vec![m("w66 w0 w200")], filter: vec![tag, range], ..Default::default() }))),
        ("query_string", Query::new(QueryKind::QueryString(QueryStringQuery::new("w66 AND tag:g1 w20*")))),
    ] {
        let s = fixture.snapshot();
        let mut times = vec![];
        let mut top = None;
        for _ in 0..30 { let t = std::time::Instant::now(); top = Some(s.search(&q, &SearchOptions::default()).unwrap()); times.push(t.elapsed().as_micros()); }
        times.sort();
        let top = top.unwrap();
        eprintln!("{name:25} segs {} total {:?} p50 {} us min {}", s.segments().len(), (top.total, top.relation), times[15], times[0]);
    }
}
