//! One test for each way in which a tantivy segment plugin, a lazy directory or an extended schema has been
//! seen to lose or break something.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::common::{Model, books, check, copy_dir, document, mapping, options, put};
use serde_json::{Value, json};
use sparrow_mapping::ParsedDocument;
use sparrow_tantivy_index::{Format, IndexError, IndexOptions, SparrowIndex, WriteDocument};
use tantivy::Term;
use tantivy::collector::TopDocs;
use tantivy::query::{Query, TermQuery};
use tantivy::schema::IndexRecordOption;

fn source(n: u64) -> Value {
    json!({
        "title": format!("book number {n}"), "tag": "t", "n": n,
        "v": {"common": 1.0, format!("t{n}"): 2.0}, "d": [n as f32, 1.0, 0.5]
    })
}

fn fill(index: &SparrowIndex, model: &mut Model, range: std::ops::Range<u64>) {
    for n in range {
        put(index, &n.to_string(), n, &source(n));
        model.docs.insert(n.to_string(), (n, source(n)));
    }
}

/// BM25 scores of all documents that hold a word in a text field.
fn scores(index: &SparrowIndex, field: &str, word: &str) -> Vec<f32> {
    let snapshot = index.searcher();
    let field = snapshot.schema().text(field).expect("mapped");
    let query: Box<dyn Query> =
        Box::new(TermQuery::new(Term::from_field_text(field, word), IndexRecordOption::WithFreqs));
    let hits =
        snapshot.searcher().search(&query, &TopDocs::with_limit(100).order_by_score()).expect("search");
    hits.into_iter().map(|(score, _)| score).collect()
}

#[test]
fn new_text_fields_merge_with_old_segments() {
    let dir = tempfile::tempdir().unwrap();
    let index = SparrowIndex::create(dir.path(), &books(), &options(1)).unwrap();
    let mut model = Model::default();
    fill(&index, &mut model, 0..20);
    index.flush(Some(19)).unwrap();
    let wider = books()
        .merge_update(&json!({"properties": {"late": {"type": "text"}, "w": {"type": "sparse_vector"}}}))
        .unwrap();
    index.update_mapping(&wider).unwrap();
    assert!(scores(&index, "late", "x").is_empty(), "old segments have no hits");
    for (n, text) in [(20, "x"), (21, "x y z x y z a b c d")] {
        let mut source = source(n);
        source["late"] = text.into();
        source["w"] = json!({ "new": 1.5 });
        put(&index, &n.to_string(), n, &source);
        model.docs.insert(n.to_string(), (n, source));
    }
    index.refresh().unwrap();
    assert_eq!(index.searcher().segments().len(), 2);
    let before = scores(&index, "late", "x");
    assert_eq!(before.len(), 2);
    // Without field norms in the old segment this merge fails.
    index.merge_all().unwrap();
    assert_eq!(index.searcher().segments().len(), 1);
    assert_eq!(scores(&index, "late", "x"), before, "lengths survive the merge");
    check(&index, &model);
    // The wider schema is durable with the next flush.
    index.flush(Some(21)).unwrap();
    drop(index);
    let (index, covered) = SparrowIndex::open(dir.path(), &wider, &options(1)).unwrap();
    assert_eq!(covered, Some(21));
    assert_eq!(scores(&index, "late", "x"), before);
    check(&index, &model);
}

#[test]
fn a_wider_mapping_survives_a_crash_before_the_flush() {
    let dir = tempfile::tempdir().unwrap();
    let index = SparrowIndex::create(dir.path(), &books(), &options(1)).unwrap();
    let mut model = Model::default();
    fill(&index, &mut model, 0..10);
    index.flush(Some(9)).unwrap();
    let flushed = model.clone();
    let wider = books().merge_update(&json!({"properties": {"b": {"type": "text"}}})).unwrap();
    index.update_mapping(&wider).unwrap();
    let widest = wider.merge_update(&json!({"properties": {"a": {"type": "text"}}})).unwrap();
    index.update_mapping(&widest).unwrap();
    fill(&index, &mut model, 10..15);
    index.refresh().unwrap();
    let copy = tempfile::tempdir().unwrap();
    copy_dir(dir.path(), copy.path());
    // The engine's stored mapping is newer than the commit: open widens again, in another order.
    let (index, covered) = SparrowIndex::open(copy.path(), &widest, &options(1)).unwrap();
    assert_eq!(covered, Some(9));
    check(&index, &flushed);
    put(&index, "new", 100, &json!({"a": "x", "b": "y"}));
    index.merge_all().unwrap();
    assert_eq!(scores(&index, "a", "x").len(), 1);
    assert_eq!(scores(&index, "b", "y").len(), 1);
}

#[test]
fn an_old_searcher_reads_on_after_its_files_are_gone() {
    let dir = tempfile::tempdir().unwrap();
    let index = SparrowIndex::create(dir.path(), &books(), &options(1)).unwrap();
    let mut model = Model::default();
    for start in 0..4 {
        fill(&index, &mut model, start * 5..start * 5 + 5);
        index.refresh().unwrap();
    }
    let old = index.searcher();
    let segments = old.segments().len();
    assert!(segments > 1);
    index.flush(Some(19)).unwrap();
    index.merge_all().unwrap();
    index.flush(Some(19)).unwrap();
    let containers = std::fs::read_dir(dir.path())
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().path().extension().is_some_and(|ext| ext == "spw"))
        .count();
    assert_eq!(containers, 1, "the files of merged segments are gone after a flush");
    for id in model.docs.keys() {
        let meta = old.lookup(id).unwrap().unwrap();
        assert_eq!(old.fetch(meta.addr).unwrap().id, *id);
        assert_eq!(old.sparse_tokens(meta.addr, "v").unwrap().len(), 2);
    }
    check(&index, &model);
}

#[test]
fn the_payload_survives_refreshes_merges_and_wider_schemas() {
    let dir = tempfile::tempdir().unwrap();
    let index = SparrowIndex::create(dir.path(), &books(), &options(1)).unwrap();
    let mut model = Model::default();
    fill(&index, &mut model, 0..5);
    index.flush(Some(4)).unwrap();
    fill(&index, &mut model, 5..8);
    index.refresh().unwrap();
    index.merge_all().unwrap();
    let wider = books().merge_update(&json!({"properties": {"late": {"type": "text"}}})).unwrap();
    index.update_mapping(&wider).unwrap();
    // A flush that covers nothing new keeps the number, and makes the rest durable.
    index.flush(None).unwrap();
    drop(index);
    let (index, covered) = SparrowIndex::open(dir.path(), &wider, &options(1)).unwrap();
    assert_eq!(covered, Some(4));
    check(&index, &model);
    assert_eq!(SparrowIndex::detect_format(dir.path()).unwrap(), Format::V3);
}

#[test]
fn an_error_in_the_plugin_writer_rolls_back_and_says_from_where() {
    let dir = tempfile::tempdir().unwrap();
    let index = SparrowIndex::create(dir.path(), &books(), &options(1)).unwrap();
    let mut model = Model::default();
    fill(&index, &mut model, 0..5);
    index.flush(Some(4)).unwrap();
    fill(&index, &mut model.clone(), 5..8);
    // Wrong dimensions, past the check that parsing does.
    let bad = WriteDocument {
        id: "bad".to_owned(),
        seq_no: 8,
        version: 1,
        parsed: ParsedDocument { dense: vec![("d".to_owned(), vec![1.0])], ..ParsedDocument::default() },
        source: b"{}".to_vec(),
        replaces: true,
    };
    index.add(document(&books(), "first", 7, &source(7), true)).unwrap();
    let lost = match index.add(bad) {
        Err(error) => error,
        Ok(()) => index.refresh().unwrap_err(),
    };
    assert!(matches!(lost, IndexError::RolledBack { replay_after: Some(4), .. }), "{lost}");
    index.refresh().unwrap();
    check(&index, &model);
    // The engine replays; the index works as before, deletes included.
    fill(&index, &mut model, 5..8);
    fill(&index, &mut model, 2..3);
    index.refresh().unwrap();
    check(&index, &model);
    index.flush(Some(8)).unwrap();
    drop(index);
    let (index, _) = SparrowIndex::open(dir.path(), &books(), &options(1)).unwrap();
    check(&index, &model);
}

#[test]
fn rollback_forgets_and_stamps_may_repeat() {
    let dir = tempfile::tempdir().unwrap();
    let index = SparrowIndex::create(dir.path(), &books(), &options(1)).unwrap();
    let mut model = Model::default();
    fill(&index, &mut model, 0..5);
    index.refresh().unwrap();
    for _ in 0..3 {
        let mut lost = model.clone();
        fill(&index, &mut lost, 3..9);
        index.rollback().unwrap();
        index.refresh().unwrap();
        check(&index, &model);
        index.delete("1").unwrap();
        put(&index, "1", 50, &source(1));
        model.docs.insert("1".to_owned(), (50, source(1)));
        index.refresh().unwrap();
        check(&index, &model);
    }
}

#[test]
fn writes_reads_flushes_and_merges_run_side_by_side() {
    let dir = tempfile::tempdir().unwrap();
    let index = SparrowIndex::create(dir.path(), &books(), &options(2)).unwrap();
    let stop = AtomicBool::new(false);
    let mut model = Model::default();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                index.flush(None).unwrap();
            }
        });
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                let snapshot = index.searcher();
                for (_, addr) in snapshot.scan_matching(None, None, 20) {
                    assert!(!snapshot.fetch(addr).unwrap().id.is_empty());
                    assert!(snapshot.sparse_tokens(addr, "v").is_some());
                }
            }
        });
        // Small refreshes, so that the merge policy has work all the time.
        for start in 0..150 {
            fill(&index, &mut model, start * 3..start * 3 + 6);
            index.refresh().unwrap();
        }
        stop.store(true, Ordering::Relaxed);
    });
    index.refresh().unwrap();
    // Ids are written twice: the later write of each counts, and both have the same number here.
    check(&index, &model);
    let copy = tempfile::tempdir().unwrap();
    index.flush(Some(1000)).unwrap();
    copy_dir(dir.path(), copy.path());
    let (copied, covered) = SparrowIndex::open(copy.path(), &books(), &options(1)).unwrap();
    assert_eq!(covered, Some(1000));
    check(&copied, &model);
}

#[test]
fn a_damaged_container_is_a_loud_error() {
    let dir = tempfile::tempdir().unwrap();
    let index = SparrowIndex::create(dir.path(), &books(), &options(1)).unwrap();
    fill(&index, &mut Model::default(), 0..5);
    index.flush(Some(4)).unwrap();
    drop(index);
    let container = std::fs::read_dir(dir.path())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.extension().is_some_and(|ext| ext == "spw"))
        .unwrap();
    let good = std::fs::read(&container).unwrap();
    // Inside the container's directory, before tantivy's own footer.
    let magic = good.windows(8).rposition(|window| window == b"SPRWSEG1").unwrap();
    for at in [magic, magic - 20, magic - 60] {
        let mut bad = good.clone();
        bad[at] ^= 0xFF;
        std::fs::write(&container, bad).unwrap();
        let opened = SparrowIndex::open(dir.path(), &books(), &options(1));
        assert!(matches!(opened, Err(IndexError::Corrupt { .. })), "byte {at}");
    }
    std::fs::write(&container, good).unwrap();
    assert!(SparrowIndex::open(dir.path(), &books(), &options(1)).is_ok());
}

#[test]
fn a_failed_flush_poisons_but_reads_and_writes_go_on() {
    let dir = tempfile::tempdir().unwrap();
    let index = SparrowIndex::create(dir.path(), &books(), &options(1)).unwrap();
    let mut model = Model::default();
    fill(&index, &mut model, 0..5);
    index.flush(Some(4)).unwrap();
    let flushed = model.clone();
    let known: Vec<_> = std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    fill(&index, &mut model, 5..9);
    index.refresh().unwrap();
    // A file that waits for its fsync is gone: the fsync fails.
    let unsynced = std::fs::read_dir(dir.path())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| !known.contains(path) && path.extension().is_some_and(|ext| ext == "store"))
        .unwrap();
    std::fs::remove_file(unsynced).unwrap();
    assert!(matches!(index.flush(Some(8)), Err(IndexError::Io { .. })));
    assert!(matches!(index.flush(Some(8)), Err(IndexError::Poisoned { .. })));
    fill(&index, &mut model, 9..12);
    index.refresh().unwrap();
    check(&index, &model);
    drop(index);
    // The durable commit is untouched, and what the failed flush left behind is swept away.
    let (index, covered) = SparrowIndex::open(dir.path(), &books(), &options(1)).unwrap();
    assert_eq!(covered, Some(4));
    check(&index, &flushed);
    assert!(std::fs::read_dir(dir.path()).unwrap().count() <= known.len() + 1);
}

#[test]
fn creating_twice_is_refused_and_opening_nothing_too() {
    let dir = tempfile::tempdir().unwrap();
    assert!(SparrowIndex::open(dir.path(), &books(), &options(1)).is_err());
    let index = SparrowIndex::create(dir.path(), &books(), &options(1)).unwrap();
    drop(index);
    assert!(SparrowIndex::create(dir.path(), &books(), &options(1)).is_err());
}

#[test]
fn an_old_format_is_rewritten_while_it_is_used() {
    let dir = tempfile::tempdir().unwrap();
    let old_dir = dir.path().join("old");
    let new_dir = dir.path().join("new");
    let old_options = IndexOptions { sparse_format: Format::V1, ..options(1) };
    let excluding = sparrow_mapping::Mapping::parse(&json!({
        "_source": {"excludes": ["v", "title"]},
        "properties": {"title": {"type": "text"}, "v": {"type": "sparse_vector"}, "n": {"type": "long"}}
    }))
    .unwrap();
    let index = SparrowIndex::create(&old_dir, &excluding, &old_options).unwrap();
    for n in 0..300u64 {
        let source =
            json!({"title": format!("book {n}"), "n": n, "v": {"common": 1.25, format!("t{}", n % 7): 0.3}});
        put(&index, &n.to_string(), n, &source);
        if n % 100 == 99 {
            index.refresh().unwrap();
        }
    }
    index.delete("5").unwrap();
    index.flush(Some(300)).unwrap();
    assert_eq!(SparrowIndex::detect_format(&old_dir).unwrap(), Format::V1);

    let cancel = AtomicBool::new(true);
    let cancelled = index.rewrite(&new_dir, Format::V3, &mut |_| {}, &cancel);
    assert!(matches!(cancelled, Err(IndexError::Cancelled)));

    let mut seen = Vec::new();
    let stats = index
        .rewrite(
            &new_dir,
            Format::V3,
            &mut |progress| {
                // Used meanwhile: writes, a refresh, a merge and a flush that removes merged files.
                put(&index, "later", 1000 + progress.done, &json!({"n": 1}));
                let wider =
                    index.mapping().merge_update(&json!({"properties": {"late": {"type": "text"}}})).unwrap();
                index.update_mapping(&wider).unwrap();
                index.refresh().unwrap();
                index.merge_all().unwrap();
                index.flush(Some(300)).unwrap();
                seen.push((progress.done, progress.total));
            },
            &AtomicBool::new(false),
        )
        .unwrap();
    assert_eq!((stats.docs, stats.covered_seq_no), (299, Some(300)));
    assert_eq!((seen.first(), seen.last()), (Some(&(0, 299)), Some(&(299, 299))));

    assert_eq!(SparrowIndex::detect_format(&new_dir).unwrap(), Format::V3);
    let (new, covered) = SparrowIndex::open(&new_dir, &excluding, &options(1)).unwrap();
    assert_eq!(covered, Some(300));
    assert_eq!(new.format(), Format::V3);
    let (before, after) = (index.searcher(), new.searcher());
    assert_eq!(after.num_docs(), 299);
    assert!(
        after.segments().iter().all(|segment| segment.plugins().formats().all(|format| format == Format::V3))
    );
    for n in 0..300u64 {
        let id = n.to_string();
        let (old, new) = (before.lookup(&id).unwrap(), after.lookup(&id).unwrap());
        assert_eq!(old.is_some(), new.is_some(), "{id}");
        let (Some(old), Some(new)) = (old, new) else { continue };
        assert_eq!(before.fetch(old.addr).unwrap(), after.fetch(new.addr).unwrap());
        assert_eq!(before.sparse_tokens(old.addr, "v"), after.sparse_tokens(new.addr, "v"));
    }
    // Texts that `_source` does not have are there too.
    assert_eq!(scores(&new, "title", "book").len(), 100);
    put(&new, "new", 2000, &json!({"title": "book", "v": {"common": 1.0}}));
    new.merge_all().unwrap();
    assert_eq!(new.searcher().num_docs(), 300);
}

#[test]
fn a_thousand_text_fields_come_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let index = SparrowIndex::create(dir.path(), &mapping(json!({})), &options(1)).unwrap();
    let fields: serde_json::Map<String, Value> =
        (0..1000).map(|n| (format!("f{n}"), json!({"type": "text"}))).collect();
    let wide = mapping(Value::Object(fields.clone()));
    index.update_mapping(&wide).unwrap();
    let values: serde_json::Map<String, Value> =
        fields.keys().map(|name| (name.clone(), json!("some text"))).collect();
    for n in 0..20 {
        put(&index, &n.to_string(), n, &Value::Object(values.clone()));
    }
    index.refresh().unwrap();
    assert_eq!(scores(&index, "f999", "text").len(), 20);
}

/// Overwrites a document and commits whenever a merge writes: the segment with the document before is then empty.
struct Overwrites {
    index: SparrowIndex,
    /// Number of writes, and of those after which it stops.
    writes: (AtomicU64, u64),
}

impl sparrow_file_system::Observer for Overwrites {
    fn before(&self, call: &sparrow_file_system::Call<'_>) -> sparrow_file_system::Verdict {
        let merges = std::thread::current().name().is_some_and(|name| name.starts_with("merge_thread"));
        if merges && call.kind == sparrow_file_system::Kind::Write {
            let write = self.writes.0.fetch_add(1, Ordering::SeqCst);
            if write < self.writes.1 {
                put(&self.index, "changed", 100 + write, &source(write));
                self.index.refresh().expect("refresh");
            }
        }
        sparrow_file_system::Verdict::Allow
    }
}

/// tantivy removes an empty segment at a commit, and a merge that reads it then fails when it ends.
#[test]
fn a_forced_merge_ends_while_documents_are_overwritten() {
    let dir = tempfile::tempdir().unwrap();
    let index = SparrowIndex::create(dir.path(), &books(), &options(1)).unwrap();
    let mut model = Model::default();
    for half in [0..10, 10..20] {
        fill(&index, &mut model, half);
        index.refresh().unwrap();
    }
    put(&index, "changed", 20, &source(20));
    index.refresh().unwrap();
    assert_eq!(index.searcher().segments().len(), 3);
    let writer = Arc::new(Overwrites { index, writes: (AtomicU64::new(0), 1000) });
    let guard = sparrow_file_system::observe(dir.path(), writer.clone());
    let index = &writer.index;
    index.merge_all().unwrap();
    drop(guard);
    let last = writer.writes.0.load(Ordering::SeqCst) - 1;
    assert!(last < 999, "it ended only when nobody wrote any more");
    model.docs.insert("changed".to_owned(), (100 + last, source(last)));
    check(index, &model);
    let mut segments = index.searcher().segment_docs();
    segments.sort_unstable();
    assert_eq!(segments, [(1, 0), (20, 0)], "all but what is overwritten is merged");
    // Any segment may be missing at the first end, one of a client's at the second.
    assert_eq!(index.merge_stats().total, 3);
    // Once nobody writes any more, nothing is left out.
    index.merge_all().unwrap();
    assert_eq!(index.searcher().segments().len(), 1);
    check(index, &model);
}

/// Background merges are waiting and running when somebody asks for a forced one, twice at the same time.
#[test]
fn a_forced_merge_of_an_index_at_rest_leaves_one_segment() {
    let dir = tempfile::tempdir().unwrap();
    let index = SparrowIndex::create(dir.path(), &books(), &options(1)).unwrap();
    let mut model = Model::default();
    let mut n = 0;
    for round in 0..20 {
        for _ in 0..10 + round {
            // Larger ones are another level of the policy.
            for _ in 0..if n % 3 == 0 { 40 } else { 2 } {
                fill(&index, &mut model, n..n + 1);
                n += 1;
            }
            index.refresh().unwrap();
        }
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| index.merge_all().unwrap());
            }
        });
        assert_eq!(index.searcher().segment_docs(), [(n, 0)], "round {round}");
    }
    check(&index, &model);
}
