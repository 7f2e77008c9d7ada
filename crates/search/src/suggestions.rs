//! Suggestions: the part of an answer that the suggesters of a search make.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde_json::{Value, json};
use sparrow_request::error::EngineError;
use sparrow_request::request::write_json;
use sparrow_runtime::work;
use sparrow_suggest::{Completed, CompletionSuggester, Kind, Suggester, TermSuggester, complete};
use sparrow_tantivy_index::query::SuggestedWord;

use super::deadline::Deadline;
use super::error::SearchError;
use super::execute::Outcome;
use super::hits::{Read, Reader};
use super::response;
use super::target::{Hit, Target};
use sparrow_search_body::body::SearchBody;
use sparrow_search_body::uri::Presentation;

/// Whether a search asks for suggestions and for nothing else. As in Elasticsearch, it has no hits then.
pub fn stands_alone(body: &SearchBody) -> bool {
    let searches = body.query.is_some()
        || !body.knn.is_empty()
        || !body.sub_searches.is_empty()
        || body.fusion.is_some()
        || body.aggs.is_some()
        || body.scroll.is_some();
    body.suggest.is_some() && !searches
}

/// Runs the suggesters of a search on every index, and adds the member `suggest` to its answer.
///
/// # Errors
/// When no index has a field, or an index cannot make suggestions.
pub fn append(
    answer: &mut Vec<u8>,
    targets: &[Target],
    body: &SearchBody,
    suggesters: &[Suggester],
    shown: Presentation,
    reader: &mut Reader<'_>,
    deadline: &Deadline,
) -> Result<(), EngineError> {
    let mut out = b",\"suggest\":{".to_vec();
    for (number, Suggester { name, kind }) in suggesters.iter().enumerate() {
        if number > 0 {
            out.push(b',');
        }
        match shown.typed_keys {
            true => write_json(&format!("{}#{name}", kind.name()), &mut out)?,
            false => write_json(name, &mut out)?,
        }
        out.push(b':');
        match kind {
            Kind::Term(suggester) => {
                write_json(&terms(targets, suggester, deadline.flag())?, &mut out)?;
            }
            Kind::Completion(suggester) => {
                completions(&mut out, targets, body, suggester, reader, deadline.flag())?;
            }
        }
    }
    out.extend_from_slice(b"}}");
    answer.pop();
    answer.extend_from_slice(&out);
    Ok(())
}

/// Runs a suggester on every index, and writes its part of the answer: hits with the text that each was found by.
///
/// # Errors
/// When no index has the field, or an index cannot make suggestions.
fn completions(
    out: &mut Vec<u8>,
    targets: &[Target],
    body: &SearchBody,
    suggester: &CompletionSuggester,
    reader: &mut Reader<'_>,
    cancel: &Arc<AtomicBool>,
) -> Result<(), EngineError> {
    let CompletionSuggester { request, shown } = suggester;
    let mut mapped = targets.is_empty();
    let mut found: Vec<(usize, Completed)> = Vec::new();
    for (number, target) in targets.iter().enumerate() {
        let completed = complete(&target.snapshot, request, cancel)
            .map_err(|source| SearchError::Query { shard: target.shard.clone(), source })?;
        mapped |= completed.is_some();
        found.extend(completed.into_iter().flatten().map(|one| (number, one)));
    }
    if !mapped {
        return Err(SearchError::illegal(format!("no mapping found for field [{}]", request.field)).into());
    }
    // What one index found is in this order already.
    found.sort_by(|(_, a), (_, b)| b.score.total_cmp(&a.score).then_with(|| a.text.cmp(&b.text)));
    if request.skip_duplicates {
        let mut seen = HashSet::new();
        found.retain(|(_, one)| seen.insert(one.text.clone()));
    }
    found.truncate(request.size);
    let hit = |(target, one): &(usize, Completed)| Hit {
        target: *target,
        addr: one.doc.addr,
        seq_no: one.doc.seq_no,
        score: one.score,
        rank: None,
    };
    let outcome = Outcome { hits: found.iter().map(hit).collect(), ..Outcome::default() };
    // Of the documents of options, a search shows what it shows of the documents of hits, but nothing about its own query.
    let body = SearchBody {
        source: body.source.clone(),
        source_given: body.source_given,
        excludes_vectors: body.excludes_vectors,
        stored_fields: body.stored_fields.clone(),
        fields: body.fields.clone(),
        docvalue_fields: body.docvalue_fields.clone(),
        script_fields: body.script_fields.clone(),
        version: body.version,
        seq_no_primary_term: body.seq_no_primary_term,
        ..SearchBody::default()
    };
    let Read { hits, .. } = reader.read(targets, &body, &outcome, None)?;
    out.extend_from_slice(b"[{\"text\":");
    write_json(shown, out)?;
    // Offsets count UTF-16 units, as Java's do.
    let length = shown.encode_utf16().count();
    out.extend_from_slice(format!(",\"offset\":0,\"length\":{length},\"options\":[").as_bytes());
    for (number, (hit, (_, one))) in hits.iter().zip(&found).enumerate() {
        work::check()?;
        if number > 0 {
            out.push(b',');
        }
        out.extend_from_slice(b"{\"text\":");
        write_json(&one.text, out)?;
        out.push(b',');
        response::write_members(out, &body, hit)?;
        out.push(b'}');
    }
    out.extend_from_slice(b"]}]");
    Ok(())
}

/// Runs a suggester on every index, and makes its part of the answer.
///
/// # Errors
/// When no index has the field, or an index cannot make suggestions.
fn terms(
    targets: &[Target],
    suggester: &TermSuggester,
    cancel: &Arc<AtomicBool>,
) -> Result<Value, SearchError> {
    let TermSuggester { request, size } = suggester;
    let mut words: Vec<SuggestedWord> = Vec::new();
    let mut mapped = targets.is_empty();
    for target in targets {
        let suggested = target
            .snapshot
            .suggest_terms(request, cancel)
            .map_err(|source| SearchError::Query { shard: target.shard.clone(), source })?;
        mapped |= suggested.is_some();
        suggested.into_iter().flatten().for_each(|word| merge(&mut words, word));
    }
    if !mapped {
        return Err(SearchError::illegal(format!("no mapping found for field [{}]", request.field)));
    }
    // The words of an index whose analyzer is another one stand among the rest.
    words.sort_by_key(|word| (word.range.start, word.range.end));
    let entries = words.into_iter().map(|mut word| {
        request.sort(&mut word.options);
        word.options.truncate(*size);
        entry(&request.text, &word)
    });
    Ok(entries.collect())
}

/// Merges an index's suggestions for a word into those of the other indices; document frequencies add up.
fn merge(words: &mut Vec<SuggestedWord>, word: SuggestedWord) {
    let same = |other: &&mut SuggestedWord| other.range == word.range && other.word == word.word;
    let Some(merged) = words.iter_mut().find(same) else {
        words.push(word);
        return;
    };
    for option in word.options {
        match merged.options.iter_mut().find(|other| other.term == option.term) {
            Some(other) => {
                other.score = other.score.max(option.score);
                other.doc_freq += option.doc_freq;
            }
            None => merged.options.push(option),
        }
    }
}

fn entry(text: &str, word: &SuggestedWord) -> Value {
    // Offsets count UTF-16 units, as Java's do.
    let units = |part: Option<&str>| part.map_or(0, |part| part.encode_utf16().count());
    let options: Vec<Value> = word
        .options
        .iter()
        .map(|option| json!({"text": option.term, "score": option.score, "freq": option.doc_freq}))
        .collect();
    json!({
        "text": word.word,
        "offset": units(text.get(..word.range.start)),
        "length": units(text.get(word.range.clone())),
        "options": options,
    })
}
