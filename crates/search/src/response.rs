//! The body of a search response, written as bytes: stored sources are copied, never parsed.

use std::io::Write;
use std::time::Duration;

use sparrow_tantivy_index::StoredDoc;
use sparrow_tantivy_index::query::Explanation;

use super::error::{SearchError, Shard};
use super::execute::Outcome;
use super::explain;
use super::highlight::Highlighted;
use super::target::Hit;
use sparrow_request::error::EngineError;
use sparrow_request::request::write_json;
use sparrow_runtime::work::{self, Stopped};
use sparrow_search_body::body::SearchBody;
use sparrow_search_body::fields::StoredFields;
use sparrow_search_body::uri::Presentation;
use sparrow_wire::java_float::write_score;

/// A hit together with everything its response shows of it.
pub struct ShownHit<'a> {
    /// The document's address, score and rank.
    pub hit: Hit,
    /// Name of the index that holds the document.
    pub index: &'a str,
    /// Stored document of the hit.
    pub stored: StoredDoc,
    /// Fields with values that the index ignored (the hit's `_ignored` member).
    pub ignored: Vec<String>,
    /// Names of the named queries that match the document, with their scores.
    pub matched: Vec<(String, f32)>,
    /// The hit's `fields` member, as a JSON object.
    pub fields: Option<String>,
    /// Highlighted fields, each with its fragments.
    pub highlight: Highlighted,
    /// Where the object that the hit is lies in its document ([`sparrow_tantivy_index::Snapshot::place_of`]); empty for a document.
    pub nested: Vec<(String, usize)>,
    /// The hit's `inner_hits` member, as JSON.
    pub inner_hits: Option<Vec<u8>>,
    /// The shard that holds the document and the explanation of its score, if the request asks for them.
    pub explained: Option<(&'a Shard, Explanation)>,
}

impl ShownHit<'_> {
    /// Bytes of the parts of a written hit that may be long, without quotes and escapes.
    fn written_bytes(&self) -> usize {
        let fragments: usize =
            self.highlight.iter().flat_map(|(_, fragments)| fragments).map(String::len).sum();
        let names: usize = self.matched.iter().map(|(name, _)| name.len()).sum();
        let (fields, inner) = (self.fields.as_ref(), self.inner_hits.as_ref());
        self.stored.source.len()
            + fields.map_or(0, String::len)
            + inner.map_or(0, Vec::len)
            + fragments
            + names
    }
}

/// The scroll and point-in-time ids that a response carries.
#[derive(Debug, Clone, Copy, Default)]
pub struct OpenIds<'a> {
    /// Value of the response's `_scroll_id` member.
    pub scroll: Option<&'a str>,
    /// Value of the response's `pit_id` member.
    pub pit: Option<&'a str>,
}

/// Writes the body of a search response.
///
/// # Errors
/// When the request must stop.
pub fn write(
    body: &SearchBody,
    shown: Presentation,
    ids: OpenIds<'_>,
    targets: usize,
    outcome: &Outcome,
    hits: &[ShownHit<'_>],
    took: Duration,
) -> Result<Vec<u8>, Stopped> {
    let source_bytes: usize = hits.iter().map(|hit| hit.stored.source.len() + 160).sum();
    let mut out = Vec::new();
    work::grow(&mut out, source_bytes + 256)?;
    out.push(b'{');
    for (name, id) in [("pit_id", ids.pit), ("_scroll_id", ids.scroll)] {
        if let Some(id) = id {
            push(&mut out, format_args!("\"{name}\":\"{id}\","));
        }
    }
    push(&mut out, format_args!("\"took\":{},\"timed_out\":{},", took.as_millis(), outcome.timed_out));
    match outcome.terminated_early {
        Some(early) => push(&mut out, format_args!("\"terminated_early\":{early},")),
        None if body.size == 0 && shown.total_as_int => {
            out.extend_from_slice(b"\"terminated_early\":false,");
        }
        None => {}
    }
    write_shards(&mut out, targets, &outcome.failures);
    out.extend_from_slice(b",\"hits\":");
    write_hits(&mut out, body, shown, targets, outcome, hits)?;
    if let Some(profile) = &outcome.profile {
        push(&mut out, format_args!(",\"profile\":{}", profile.to_json()));
    }
    out.push(b'}');
    Ok(out)
}

/// Writes the `hits` object: total, highest score and the hits themselves.
///
/// # Errors
/// When the request must stop.
pub fn write_hits(
    out: &mut Vec<u8>,
    body: &SearchBody,
    shown: Presentation,
    targets: usize,
    outcome: &Outcome,
    hits: &[ShownHit<'_>],
) -> Result<(), Stopped> {
    out.push(b'{');
    if let Some((value, exact)) = outcome.total {
        if shown.total_as_int {
            push(out, format_args!("\"total\":{value},"));
        } else {
            let relation = if exact { "eq" } else { "gte" };
            push(out, format_args!("\"total\":{{\"value\":{value},\"relation\":\"{relation}\"}},"));
        }
    } else if shown.total_as_int {
        out.extend_from_slice(b"\"total\":-1,");
    }
    out.extend_from_slice(b"\"max_score\":");
    match outcome.max_score {
        // A search of no index at all has scored nothing, which Elasticsearch shows as a number.
        None if targets == 0 => out.extend_from_slice(b"0.0"),
        None => out.extend_from_slice(b"null"),
        Some(score) => write_score(out, score),
    }
    out.extend_from_slice(b",\"hits\":[");
    for (number, hit) in hits.iter().enumerate() {
        if number > 0 {
            out.push(b',');
        }
        let sort = outcome.sort.get(number).map(|sort| &**sort);
        work::check()?;
        work::grow(out, hit.written_bytes() + sort.map_or(0, str::len))?;
        write_hit(out, body, hit, sort);
    }
    out.extend_from_slice(b"]}");
    Ok(())
}

/// Adds a member to the end of a JSON object that has been written already.
///
/// # Errors
/// When the request must stop.
pub fn append(answer: &mut Vec<u8>, name: &str, value: &impl serde::Serialize) -> Result<(), EngineError> {
    answer.pop();
    answer.push(b',');
    write_string(answer, name);
    answer.push(b':');
    write_json(value, answer)?;
    answer.push(b'}');
    Ok(())
}

/// Writes the body of a count response.
pub fn write_count(
    count: u64,
    terminated_early: Option<bool>,
    targets: usize,
    failures: &[SearchError],
) -> Vec<u8> {
    let mut out = Vec::with_capacity(96);
    push(&mut out, format_args!("{{\"count\":{count},"));
    if let Some(early) = terminated_early {
        push(&mut out, format_args!("\"terminated_early\":{early},"));
    }
    write_shards(&mut out, targets, failures);
    out.push(b'}');
    out
}

fn write_shards(out: &mut Vec<u8>, targets: usize, failures: &[SearchError]) {
    push(
        out,
        format_args!(
            "\"_shards\":{{\"total\":{targets},\"successful\":{},\"skipped\":0,\"failed\":{}",
            targets - failures.len(),
            failures.len()
        ),
    );
    if !failures.is_empty() {
        let list: Vec<_> = failures.iter().filter_map(SearchError::failed_shard).collect();
        push(out, format_args!(",\"failures\":{}", serde_json::Value::Array(list)));
    }
    out.push(b'}');
}

/// Writes what is shown of a hit as members of an object that has been begun.
///
/// # Errors
/// When the request must stop.
pub fn write_members(out: &mut Vec<u8>, body: &SearchBody, shown: &ShownHit<'_>) -> Result<(), Stopped> {
    work::grow(out, shown.written_bytes() + 160)?;
    let mut hit = Vec::new();
    write_hit(&mut hit, body, shown, None);
    out.extend_from_slice(&hit[1..hit.len() - 1]);
    Ok(())
}

fn write_hit(out: &mut Vec<u8>, body: &SearchBody, shown: &ShownHit<'_>, sort: Option<&str>) {
    let ShownHit { hit, index, stored, ignored, matched, fields, highlight, nested, inner_hits, explained } =
        shown;
    let bare = body.stored_fields == Some(StoredFields::Nothing);
    out.push(b'{');
    if let Some((shard, _)) = explained {
        push(out, format_args!("\"_shard\":\"[{}][0]\",\"_node\":\"{}\",", shard.index, shard.node));
    }
    out.extend_from_slice(b"\"_index\":");
    write_string(out, index);
    if !bare {
        out.extend_from_slice(b",\"_id\":");
        write_string(out, &stored.id);
    }
    if !nested.is_empty() {
        out.extend_from_slice(b",\"_nested\":");
        write_place(out, nested);
    }
    if body.version {
        push(out, format_args!(",\"_version\":{}", stored.version));
    }
    if body.seq_no_primary_term {
        push(out, format_args!(",\"_seq_no\":{},\"_primary_term\":1", stored.seq_no));
    }
    out.extend_from_slice(b",\"_score\":");
    // A score that was not worked out is not a number, which is written as null.
    write_score(out, hit.score);
    if let Some(rank) = hit.rank {
        push(out, format_args!(",\"_rank\":{rank}"));
    }
    if let Some(routing) = stored.routing.as_ref().filter(|_| !bare) {
        out.extend_from_slice(b",\"_routing\":");
        let _ = serde_json::to_writer(&mut *out, routing);
    }
    if !ignored.is_empty() && !bare {
        out.extend_from_slice(b",\"_ignored\":");
        // Texts always serialise, and a vector takes all bytes.
        let _ = serde_json::to_writer(&mut *out, ignored);
    }
    if shows_source(body) {
        let mark = out.len();
        out.extend_from_slice(b",\"_source\":");
        let is_shown = match nested.last() {
            None => body.source.write(&stored.source, out),
            Some((path, _)) => {
                let mut around = Vec::new();
                body.source.write(&stored.source, &mut around) && write_object(&around, path, out)
            }
        };
        if !is_shown {
            out.truncate(mark);
        }
    }
    if let Some(fields) = fields {
        push(out, format_args!(",\"fields\":{fields}"));
    }
    if !highlight.is_empty() {
        write_highlight(out, highlight);
    }
    if let Some(sort) = sort {
        push(out, format_args!(",\"sort\":{sort}"));
    }
    if !matched.is_empty() {
        out.extend_from_slice(b",\"matched_queries\":");
        write_matched(out, body.named_scores, matched);
    }
    if let Some(inner_hits) = inner_hits {
        out.extend_from_slice(b",\"inner_hits\":");
        out.extend_from_slice(inner_hits);
    }
    if let Some((_, explanation)) = explained {
        out.extend_from_slice(b",\"_explanation\":");
        explain::write(explanation, out);
    }
    out.push(b'}');
}

/// Writes the path and place of an object, and inside it those of the object in it, with paths that begin where the outer one ends.
fn write_place(out: &mut Vec<u8>, places: &[(String, usize)]) {
    let mut around = "";
    for (number, (path, offset)) in places.iter().enumerate() {
        out.extend_from_slice(if number > 0 { b",\"_nested\":{\"field\":" } else { b"{\"field\":" });
        let name = path.strip_prefix(around).unwrap_or(path);
        write_string(out, name.strip_prefix('.').unwrap_or(name));
        push(out, format_args!(",\"offset\":{offset}"));
        around = path;
    }
    places.iter().for_each(|_| out.push(b'}'));
}

/// Writes the object at `path` of a source that has nothing beside it; returns whether there is a source.
fn write_object(source: &[u8], path: &str, out: &mut Vec<u8>) -> bool {
    match sparrow_mapping::objects_at(source, path).into_iter().next() {
        Some(object) => out.extend_from_slice(&source[object]),
        // The filter keeps nothing of it.
        None => out.extend_from_slice(b"{}"),
    }
    !source.is_empty()
}

fn write_highlight(out: &mut Vec<u8>, highlight: &Highlighted) {
    out.extend_from_slice(b",\"highlight\":{");
    for (number, (field, fragments)) in highlight.iter().enumerate() {
        if number > 0 {
            out.push(b',');
        }
        write_string(out, field);
        push(out, format_args!(":{}", serde_json::json!(fragments)));
    }
    out.push(b'}');
}

/// Whether hits show their sources: a request for stored fields leaves them out unless it asks for both.
fn shows_source(body: &SearchBody) -> bool {
    match &body.stored_fields {
        None => body.source_given || body.script_fields.is_empty(),
        Some(StoredFields::Nothing) => false,
        Some(StoredFields::Some(names)) => body.source_given || names.iter().any(|name| name == "_source"),
    }
}

fn write_matched(out: &mut Vec<u8>, scores: bool, matched: &[(String, f32)]) {
    out.push(if scores { b'{' } else { b'[' });
    for (number, (name, score)) in matched.iter().enumerate() {
        if number > 0 {
            out.push(b',');
        }
        write_string(out, name);
        if scores {
            out.push(b':');
            write_score(out, *score);
        }
    }
    out.push(if scores { b'}' } else { b']' });
}

fn write_string(out: &mut Vec<u8>, text: &str) {
    // A string always serialises, and a vector takes all bytes.
    let _ = serde_json::to_writer(out, text);
}

fn push(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    // Writing to a vector cannot fail.
    let _ = out.write_fmt(text);
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use sparrow_tantivy_index::{DocAddress, StoredDoc};

    use super::{OpenIds, ShownHit, write, write_count};
    use crate::execute::Outcome;
    use crate::target::Hit;
    use sparrow_mapping::SourceSelection;
    use sparrow_search_body::body::SearchBody;
    use sparrow_search_body::uri::Presentation;

    const PLAIN: Presentation =
        Presentation { total_as_int: false, all_or_nothing: false, typed_keys: false };

    fn hit(score: f32, rank: Option<u32>) -> ShownHit<'static> {
        ShownHit {
            hit: Hit { target: 0, addr: DocAddress::new(0, 0), seq_no: 7, score, rank },
            index: "books",
            stored: StoredDoc {
                id: "a\"b".into(),
                seq_no: 7,
                version: 3,
                source: b"{\"n\": 1.50,  \"t\":\"x\"}".to_vec(),
                passages: None,
                routing: None,
            },
            ignored: Vec::new(),
            matched: Vec::new(),
            highlight: Vec::new(),
            explained: None,
            fields: None,
            nested: Vec::new(),
            inner_hits: None,
        }
    }

    fn text(body: &SearchBody, shown: Presentation, outcome: &Outcome, hits: &[ShownHit<'_>]) -> String {
        let took = Duration::from_millis(12);
        let bytes = write(body, shown, OpenIds::default(), 1, outcome, hits, took).expect("no limit");
        serde_json::from_slice::<serde_json::Value>(&bytes).expect("valid JSON");
        String::from_utf8(bytes).expect("UTF-8")
    }

    #[test]
    fn a_hit_is_written_as_documented_with_its_source_untouched() {
        let outcome = Outcome { total: Some((1, true)), max_score: Some(0.5), ..Outcome::default() };
        assert_eq!(
            text(&SearchBody::default(), PLAIN, &outcome, &[hit(0.5, None)]),
            r#"{"took":12,"timed_out":false,"_shards":{"total":1,"successful":1,"skipped":0,"failed":0},"hits":{"total":{"value":1,"relation":"eq"},"max_score":0.5,"hits":[{"_index":"books","_id":"a\"b","_score":0.5,"_source":{"n": 1.50,  "t":"x"}}]}}"#
        );
    }

    #[test]
    fn options_add_and_remove_members() {
        let outcome = Outcome { total: Some((10_000, false)), ..Outcome::default() };
        let body = SearchBody {
            version: true,
            seq_no_primary_term: true,
            source: SourceSelection::Nothing,
            ..SearchBody::default()
        };
        let mut named = hit(1e-4, Some(2));
        named.matched.push(("first".into(), 0.5));
        assert!(text(&body, PLAIN, &outcome, &[named]).ends_with(
            r#""hits":{"total":{"value":10000,"relation":"gte"},"max_score":null,"hits":[{"_index":"books","_id":"a\"b","_version":3,"_seq_no":7,"_primary_term":1,"_score":1.0E-4,"_rank":2,"matched_queries":["first"]}]}}"#
        ));
        let sorted = Outcome { sort: vec!["[7]".into()], terminated_early: Some(true), ..Outcome::default() };
        let mut hit = hit(f32::NAN, None);
        hit.fields = Some(r#"{"n":[1]}"#.into());
        hit.inner_hits = Some(b"{}".to_vec());
        let text = text(&SearchBody::default(), PLAIN, &sorted, &[hit]);
        assert!(text.starts_with(r#"{"took":12,"timed_out":false,"terminated_early":true,"#), "{text}");
        assert!(text.contains(r#""_score":null"#), "{text}");
        assert!(text.contains(r#","fields":{"n":[1]},"sort":[7],"inner_hits":{}}"#), "{text}");
    }

    #[test]
    fn a_score_that_boosts_made_too_large_is_the_largest_float() {
        let outcome = Outcome { max_score: Some(f32::INFINITY), ..Outcome::default() };
        let text = text(&SearchBody::default(), PLAIN, &outcome, &[hit(f32::INFINITY, None)]);
        assert!(text.contains(r#""max_score":3.4028235E38"#), "{text}");
        assert!(text.contains(r#""_score":3.4028235E38"#), "{text}");
    }

    #[test]
    fn totals_can_be_absent_or_numbers() {
        let uncounted = Outcome::default();
        let body = SearchBody { size: 0, ..SearchBody::default() };
        assert!(text(&body, PLAIN, &uncounted, &[]).ends_with(r#""hits":{"max_score":null,"hits":[]}}"#));
        let counted = Outcome { total: Some((5, true)), ..Outcome::default() };
        let as_int = Presentation { total_as_int: true, all_or_nothing: false, typed_keys: false };
        assert_eq!(
            text(&body, as_int, &counted, &[]),
            r#"{"took":12,"timed_out":false,"terminated_early":false,"_shards":{"total":1,"successful":1,"skipped":0,"failed":0},"hits":{"total":5,"max_score":null,"hits":[]}}"#
        );
    }

    #[test]
    fn a_count_is_short() {
        assert_eq!(
            String::from_utf8(write_count(5, None, 1, &[])).expect("UTF-8"),
            r#"{"count":5,"_shards":{"total":1,"successful":1,"skipped":0,"failed":0}}"#
        );
    }
}
