//! Random writes, updates, deletes, refreshes, merges, wider mappings, flushes, crashes and reopens,
//! compared with a model. The seed is printed when a run fails.

use std::path::Path;
use std::time::Duration;

use crate::common::{Model, books, check, copy_dir, options, put};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};
use sparrow_mapping::Mapping;
use sparrow_tantivy_index::SparrowIndex;

struct Run {
    rng: StdRng,
    index: SparrowIndex,
    mapping: Mapping,
    threads: usize,
    seq_no: u64,
    /// Documents of the index after all writes; the states at the last refresh and the last flush follow.
    now: Model,
    flushed: (Model, Option<u64>),
    extra_fields: usize,
}

impl Run {
    fn source(&mut self) -> Value {
        let rng = &mut self.rng;
        let mut source =
            json!({ "n": rng.random_range(0..100), "tag": format!("t{}", rng.random_range(0..5)) });
        if rng.random_bool(0.7) {
            let words: Vec<String> =
                (0..rng.random_range(1..8)).map(|_| format!("w{}", rng.random_range(0..20))).collect();
            source["title"] = words.join(" ").into();
        }
        if rng.random_bool(0.8) {
            let mut tokens = serde_json::Map::new();
            for _ in 0..rng.random_range(1..20) {
                tokens.insert(format!("k{}", rng.random_range(0..60)), json!(rng.random_range(0.01..3.0f32)));
            }
            source["v"] = Value::Object(tokens);
        }
        if rng.random_bool(0.5) {
            source["d"] = json!([rng.random_range(0..9), rng.random_range(0..9), 1]);
        }
        if self.mapping.field("w").is_some() && rng.random_bool(0.5) {
            source["w"] = json!({ "only": rng.random_range(0.5..1.5f32) });
        }
        for field in 0..self.extra_fields {
            if rng.random_bool(0.3) {
                source[format!("extra{field}")] = format!("some words w{}", rng.random_range(0..20)).into();
            }
        }
        source
    }

    fn step(&mut self, dir: &Path) {
        match self.rng.random_range(0..1000) {
            0..700 => {
                let id = format!("id{}", self.rng.random_range(0..400));
                let source = self.source();
                put(&self.index, &id, self.seq_no, &source);
                self.now.docs.insert(id, (self.seq_no, source));
                self.seq_no += 1;
            }
            700..850 => {
                let id = format!("id{}", self.rng.random_range(0..400));
                self.index.delete(&id).expect("delete");
                self.now.docs.remove(&id);
                self.seq_no += 1;
            }
            850..950 => {
                self.index.refresh().expect("refresh");
                if self.rng.random_bool(0.3) {
                    // Nothing is written for a while: the next write makes a new indexer.
                    self.index.rest(Duration::ZERO).expect("rest");
                }
                check(&self.index, &self.now);
            }
            950..970 => self.flush(),
            970..978 => self.index.merge_all().expect("merge"),
            978..986 if self.extra_fields < 6 => self.widen(),
            986..992 => self.reopen(dir),
            _ => self.crash(dir),
        }
    }

    fn flush(&mut self) {
        let covered = self.seq_no.checked_sub(1);
        self.index.flush(covered).expect("flush");
        self.flushed = (self.now.clone(), covered);
    }

    fn widen(&mut self) {
        let mut properties = serde_json::Map::new();
        properties.insert(format!("extra{}", self.extra_fields), json!({"type": "text"}));
        if self.extra_fields == 2 {
            properties.insert("w".to_owned(), json!({"type": "rank_features"}));
        }
        self.extra_fields += 1;
        self.mapping = self.mapping.merge_update(&json!({ "properties": properties })).expect("merge");
        self.index.update_mapping(&self.mapping).expect("update mapping");
    }

    /// Closes the index after a flush, and opens it again.
    fn reopen(&mut self, dir: &Path) {
        self.flush();
        // The old writer holds a lock until it is dropped.
        let placeholder = tempfile::tempdir().expect("temporary directory");
        let empty = SparrowIndex::create(placeholder.path(), &self.mapping, &options(1)).expect("create");
        drop(std::mem::replace(&mut self.index, empty));
        let (index, covered) = SparrowIndex::open(dir, &self.mapping, &options(self.threads)).expect("open");
        assert_eq!(covered, self.flushed.1);
        self.index = index;
        check(&self.index, &self.now);
    }

    /// Opens a copy of the directory in its current state, which must be that of the last flush, whatever has
    /// happened since.
    fn crash(&mut self, dir: &Path) {
        let copy = tempfile::tempdir().expect("temporary directory");
        copy_dir(dir, copy.path());
        let (index, covered) =
            SparrowIndex::open(copy.path(), &self.mapping, &options(1)).expect("open a copy");
        assert_eq!(covered, self.flushed.1);
        check(&index, &self.flushed.0);
        // The copy is a full index: it takes writes and merges.
        put(&index, "after the crash", 1_000_000, &json!({"title": "x", "v": {"k1": 1.0}}));
        index.merge_all().expect("merge after a crash");
        let mut model = self.flushed.0.clone();
        model.docs.insert("after the crash".to_owned(), (1_000_000, json!({"title": "x", "v": {"k1": 1.0}})));
        check(&index, &model);
    }
}

fn run(seed: u64, threads: usize, steps: usize) {
    let dir = tempfile::tempdir().expect("temporary directory");
    let mapping = books();
    let index = SparrowIndex::create(dir.path(), &mapping, &options(threads)).expect("create");
    let mut run = Run {
        rng: StdRng::seed_from_u64(seed),
        index,
        mapping,
        threads,
        seq_no: 0,
        now: Model::default(),
        flushed: (Model::default(), None),
        extra_fields: 0,
    };
    for step in 0..steps {
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run.step(dir.path())));
        assert!(outcome.is_ok(), "seed {seed}, {threads} threads, step {step}");
    }
    run.index.refresh().expect("refresh");
    check(&run.index, &run.now);
    run.index.merge_all().expect("merge");
    check(&run.index, &run.now);
    assert_eq!(run.index.searcher().segments().len(), 1);
}

#[test]
fn one_thread() {
    run(1, 1, 1500);
}

#[test]
fn four_threads() {
    run(2, 4, 1500);
}

#[test]
fn many_seeds() {
    for seed in 10..14 {
        run(seed, 2, 400);
    }
}
