//! A damaged byte on the disk is detected or does no harm: it never leads to a wrong answer.
//!
//! A data directory with several indices is copied, one of its files is damaged (a bit flipped, a byte replaced, the file cut off),
//! and the copy is opened. Then either the damage is named, by an index that answers 503 or by an engine that does not open, or
//! everything answers as it did before. `SPARROW_CORRUPTION_ROUNDS` and `SPARROW_CORRUPTION_SEED` set the number of rounds and the
//! random seed. Files that change while a process has them mapped are not covered: their checksums are not verified again.

#![allow(clippy::print_stderr, reason = "the closing count")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc;
use std::time::Duration;

use crate::common::{Node, by_tier, copy_tree, options};
use serde_json::{Value, json};
use sparrow_engine::Engine;
use sparrow_file_system::power::Random;

const INDICES: [&str; 3] = ["books", "vectors", "small"];
const LONGEST_ROUND: Duration = Duration::from_secs(120);

fn bulk(node: &Node, index: &str, documents: impl Iterator<Item = (String, Value)>) {
    let lines: String =
        documents.map(|(id, document)| format!("{{\"index\":{{\"_id\":\"{id}\"}}}}\n{document}\n")).collect();
    let answer = node.ok("bulk", &format!("index={index}"), "", &lines);
    assert_eq!(answer["errors"], json!(false), "{answer}");
}

/// A data directory as a crash leaves it: segments of several commits, deletions, and writes that only the log has.
fn build() -> tempfile::TempDir {
    let node = Node::start();
    let words = ["house", "tree", "river", "stone", "light", "bird", "road", "winter"];
    let text = |n: usize| format!("{} {} {}", words[n % 8], words[n / 3 % 8], words[n * n % 8]);
    node.ok(
        "create_index",
        "index=books",
        "",
        r#"{"mappings":{"properties":{"title":{"type":"text"},"tag":{"type":"keyword"},"pages":{"type":"integer"},"price":{"type":"double"},"day":{"type":"date"}}},"aliases":{"library":{}}}"#,
    );
    let book = |n: usize| {
        json!({"title": text(n), "tag": words[n % 5], "pages": n * 7, "price": n as f64 / 3.0,
            "day": format!("2024-0{}-1{}", n % 9 + 1, n % 10)})
    };
    for part in 0..3 {
        bulk(&node, "books", (part * 40..part * 40 + 40).map(|n| (n.to_string(), book(n))));
        node.ok("flush", "index=books", "", "");
    }
    for n in [3, 50, 51, 99] {
        node.ok("delete_doc", &format!("index=books&id={n}"), "", "");
    }
    node.ok("flush", "index=books", "", "");
    bulk(&node, "books", (110..125).map(|n| (n.to_string(), book(n + 1))));
    node.ok("delete_doc", "index=books&id=7", "", "");
    // The last write of a log is the one that no later one vouches for.
    node.ok("index_doc", "index=books&id=last", "", &book(300).to_string());

    node.ok(
        "create_index",
        "index=vectors",
        "",
        r#"{"mappings":{"properties":{"s":{"type":"sparse_vector"},"d":{"type":"dense_vector","dims":4,"similarity":"cosine"}}}}"#,
    );
    let vector = |n: usize| {
        let x = n as f64;
        json!({"s": {words[n % 8]: 0.5 + x / 10.0, words[(n / 8) % 8]: 1.25},
            "d": [x.sin() + 2.0, x.cos(), (x * 2.0).sin(), 0.5]})
    };
    bulk(&node, "vectors", (0..300).map(|n| (n.to_string(), vector(n))));
    node.ok("flush", "index=vectors", "", "");
    bulk(&node, "vectors", (300..700).map(|n| (n.to_string(), vector(n))));
    node.ok("flush", "index=vectors", "", "");
    node.ok("force_merge", "index=vectors", "max_num_segments=1", "");
    node.ok("flush", "index=vectors", "", "");
    bulk(&node, "vectors", (700..710).map(|n| (n.to_string(), vector(n))));

    node.ok("create_index", "index=small", "", "{}");
    bulk(&node, "small", (0..5).map(|n| (n.to_string(), json!({"any": text(n), "n": n}))));
    node.ok("flush", "index=small", "", "");
    // A text field that the flushed segments lack: their field norms are replaced.
    bulk(&node, "small", (5..8).map(|n| (n.to_string(), json!({"other": text(n)}))));

    node.ok("put_pipeline", "pipeline=p", "", r#"{"processors":[{"set":{"field":"a","value":1}}]}"#);
    let template = r#"{"index_patterns":["t-*"],"template":{"settings":{"number_of_shards":1}}}"#;
    node.ok("put_index_template", "name=t", "", template);
    let copy = node.copy_data();
    node.engine.close();
    copy
}

/// What an index answers to a set of requests, without the times that they took.
fn answers(node: &Node, index: &str) -> Result<String, (u16, String)> {
    let requests = [
        (
            "search",
            r#"{"size":2000,"sort":["_doc"],"query":{"match_all":{}},"seq_no_primary_term":true,"version":true}"#,
        ),
        ("search", r#"{"size":50,"query":{"match":{"title":"river stone"}}}"#),
        ("search", r#"{"size":50,"query":{"multi_match":{"query":"tree light","fields":["any","other"]}}}"#),
        ("search", r#"{"size":50,"query":{"match_phrase":{"title":"house tree"}}}"#),
        ("search", r#"{"size":50,"query":{"term":{"tag":"stone"}},"sort":[{"pages":"desc"}]}"#),
        (
            "search",
            r#"{"size":50,"query":{"range":{"price":{"gte":3.5,"lt":20}}},"sort":[{"day":"asc"},{"pages":"asc"}]}"#,
        ),
        (
            "search",
            r#"{"size":0,"aggs":{"t":{"terms":{"field":"tag"},"aggs":{"p":{"stats":{"field":"pages"}}}},"d":{"date_histogram":{"field":"day","calendar_interval":"month"}}}}"#,
        ),
        (
            "search",
            r#"{"size":100,"query":{"sparse_vector":{"field":"s","query_vector":{"bird":1.5,"road":0.25}}}}"#,
        ),
        (
            "search",
            r#"{"size":20,"knn":{"field":"d","query_vector":[2,0.5,0.1,0.5],"k":20,"num_candidates":60}}"#,
        ),
        ("search", r#"{"size":0,"query":{"exists":{"field":"other"}}}"#),
        ("count", ""),
        ("get_mapping", ""),
        ("get_settings", ""),
    ];
    let mut all = String::new();
    for (op, body) in requests {
        let (status, mut value) = node.call(op, &format!("index={index}"), "", body);
        if status == 503 || status == 404 {
            return Err((status, value["error"]["reason"].as_str().unwrap_or_default().to_owned()));
        }
        if let Some(object) = value.as_object_mut() {
            object.remove("took");
        }
        all.push_str(&format!("{op} {body} {status} {value}\n"));
    }
    for n in ["0", "7", "50", "119", "last"] {
        let (status, value) = node.call("get_doc", &format!("index={index}&id={n}"), "", "");
        all.push_str(&format!("get {n} {status} {value}\n"));
    }
    Ok(all)
}

/// Pipelines, index templates and aliases of a node, as the API shows them.
fn rest(node: &Node) -> String {
    ["get_pipeline", "get_index_template", "get_alias"]
        .map(|op| node.call(op, "", "", "").1.to_string())
        .join("\n")
}

/// Relative paths of all non-empty files, grouped by kind: the file extension, or the whole of a short name.
fn kinds(data: &Path) -> BTreeMap<String, Vec<PathBuf>> {
    fn walk(folder: &Path, root: &Path, kinds: &mut BTreeMap<String, Vec<PathBuf>>) {
        for entry in fs::read_dir(folder).expect("a folder").flatten() {
            let path = entry.path();
            if path.is_dir() {
                walk(&path, root, kinds);
            } else if entry.metadata().expect("a file").len() > 0 {
                let name = entry.file_name().to_string_lossy().into_owned();
                let kind = match name.rsplit_once('.') {
                    Some((_, end)) if name.len() > 20 || end == "log" => end.to_owned(),
                    _ => name,
                };
                let relative = path.strip_prefix(root).expect("below it").to_path_buf();
                kinds.entry(kind).or_default().push(relative);
            }
        }
    }
    let mut kinds = BTreeMap::new();
    walk(data, data, &mut kinds);
    for files in kinds.values_mut() {
        files.sort();
    }
    kinds
}

/// Damages a file and says how.
fn damage(path: &Path, random: &mut Random) -> String {
    let mut bytes = fs::read(path).expect("a file");
    let at = random.below(bytes.len());
    match random.below(8) {
        0 => {
            bytes.truncate(at);
            fs::write(path, &bytes).expect("written");
            format!("cut at {at}")
        }
        1 | 2 => {
            let other = bytes[at].wrapping_add(1 + random.below(255) as u8);
            bytes[at] = other;
            fs::write(path, &bytes).expect("written");
            format!("byte {at} is {other}")
        }
        _ => {
            let bit = random.below(8);
            bytes[at] ^= 1 << bit;
            fs::write(path, &bytes).expect("written");
            format!("bit {bit} of byte {at}")
        }
    }
}

#[derive(Debug, PartialEq, Eq, Clone, Copy)]
enum Outcome {
    Detected,
    Harmless,
}

struct Undamaged {
    data: PathBuf,
    kinds: Vec<(String, Vec<PathBuf>)>,
    answers: BTreeMap<&'static str, String>,
    rest: String,
    /// Name of each index → its uuid, which is also the name of its folder.
    uuids: BTreeMap<&'static str, String>,
}

impl Undamaged {
    fn of(data: &Path) -> Self {
        let copy = tempfile::tempdir().expect("a folder");
        copy_tree(data, copy.path());
        let node = Node::open(copy, |_| {});
        let answers = INDICES.map(|index| (index, answers(&node, index).expect("an answer")));
        let uuid = |index: &str| {
            let answer = node.ok("get_settings", &format!("index={index}"), "", "");
            answer[index]["settings"]["index"]["uuid"].as_str().expect("a uuid").to_owned()
        };
        let uuids = INDICES.map(|index| (index, uuid(index)));
        let rest = rest(&node);
        node.engine.close();
        Self {
            data: data.to_path_buf(),
            kinds: kinds(data).into_iter().collect(),
            answers: BTreeMap::from(answers),
            rest,
            uuids: BTreeMap::from(uuids),
        }
    }

    /// Damages one file at random and judges the result. Gives the kind of the file, and what is wrong if the engine neither
    /// detects the damage nor answers as before.
    fn round(&self, seed: u64) -> (String, Result<Outcome, String>) {
        let mut random = Random(seed);
        let (kind, files) = &self.kinds[random.below(self.kinds.len())];
        let file = &files[random.below(files.len())];
        let copy = tempfile::tempdir().expect("a folder");
        copy_tree(&self.data, copy.path());
        let how = damage(&copy.path().join(file), &mut random);
        let what = format!("{} ({how})", file.display());
        let result = self.judge(copy, file);
        (kind.clone(), result.map_err(|wrong| format!("{what}: {wrong}")))
    }

    fn judge(&self, copy: tempfile::TempDir, file: &Path) -> Result<Outcome, String> {
        let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
        let named = |reason: &str| reason.contains(&name);
        let engine = match Engine::open(options(copy.path())) {
            Ok(engine) => engine,
            Err(error) if file.starts_with("indices") => {
                return Err(format!("one index keeps the others from being served: {error}"));
            }
            Err(error) if named(&error.to_string()) => return Ok(Outcome::Detected),
            Err(error) => return Err(format!("does not open, and names no file: {error}")),
        };
        let node = Node::new(engine, copy);
        let result = self.compare(&node, file, named);
        node.engine.close();
        result
    }

    fn compare(&self, node: &Node, file: &Path, named: impl Fn(&str) -> bool) -> Result<Outcome, String> {
        let mut outcome = Outcome::Harmless;
        for (index, expected) in &self.answers {
            let uuid = &self.uuids[index];
            let own = file.to_string_lossy().contains(uuid.as_str());
            match answers(node, index) {
                Ok(found) if found == *expected => {}
                Ok(found) => {
                    let line =
                        found.lines().zip(expected.lines()).find(|(found, expected)| found != expected);
                    return Err(format!("index [{index}] answers wrongly: {line:?}"));
                }
                Err((_, reason)) if !own => {
                    return Err(format!("index [{index}] is affected: {reason}"));
                }
                Err((503, reason)) if named(&reason) => outcome = Outcome::Detected,
                // Its name is in the damaged store, and lost: the uuid stands for it.
                Err((404, _)) if file.starts_with("store") => match answers(node, uuid) {
                    Err((503, reason)) if named(&reason) => outcome = Outcome::Detected,
                    other => return Err(format!("index [{index}] is not there, nor its uuid: {other:?}")),
                },
                Err((status, reason)) => {
                    return Err(format!("index [{index}] answers {status}, and names no file: {reason}"));
                }
            }
        }
        let found = rest(node);
        if found != self.rest && outcome == Outcome::Harmless {
            return Err(format!("the rest answers wrongly: {found} instead of {}", self.rest));
        }
        Ok(outcome)
    }
}

fn setting(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

#[test]
fn damaged_bytes_are_named_and_nothing_is_answered_wrongly() {
    let _alone = crate::PROCESS.lock();
    let rounds = setting("SPARROW_CORRUPTION_ROUNDS", by_tier(60, 250));
    let seed = setting("SPARROW_CORRUPTION_SEED", 1);
    static PANICS: AtomicUsize = AtomicUsize::new(0);
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        PANICS.fetch_add(1, Relaxed);
        before(info);
    }));
    let folder = build();
    let undamaged = Undamaged::of(folder.path());
    for kind in
        ["store", "fast", "spw", "fieldnorm", "del", "idx", "pos", "term", "meta.json", "log", "durable"]
    {
        assert!(undamaged.kinds.iter().any(|(known, _)| known == kind), "no file of kind {kind}");
    }
    let next = AtomicU64::new(0);
    let (send, results) = mpsc::channel();
    let mut counts: BTreeMap<String, [usize; 3]> = BTreeMap::new();
    let mut wrong = Vec::new();
    let mut hangs = 0;
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from).min(8) {
            let (send, next, undamaged) = (send.clone(), &next, &undamaged);
            scope.spawn(move || {
                loop {
                    let round = next.fetch_add(1, Relaxed);
                    if round >= rounds {
                        break;
                    }
                    let seed = seed.wrapping_mul(1_000_003).wrapping_add(round);
                    if send.send(undamaged.round(seed)).is_err() {
                        break;
                    }
                }
            });
        }
        drop(send);
        loop {
            match results.recv_timeout(LONGEST_ROUND) {
                Ok((kind, result)) => {
                    let count = counts.entry(kind).or_default();
                    match result {
                        Ok(Outcome::Detected) => count[0] += 1,
                        Ok(Outcome::Harmless) => count[1] += 1,
                        Err(text) => {
                            count[2] += 1;
                            wrong.push(text);
                        }
                    }
                }
                Err(mpsc::RecvTimeoutError::Timeout) => {
                    hangs += 1;
                    next.store(rounds, Relaxed);
                    // The thread that hangs would keep the scope, and with it the test, from ending.
                    wrong.push("a round does not end".to_owned());
                    eprintln!("{wrong:#?}");
                    std::process::exit(1);
                }
                Err(mpsc::RecvTimeoutError::Disconnected) => break,
            }
        }
    });
    let sum = |column: usize| counts.values().map(|count| count[column]).sum::<usize>();
    for (kind, [detected, harmless, wrong]) in &counts {
        eprintln!("corruption of {kind}: detected={detected} harmless={harmless} wrong={wrong}");
    }
    // `npm run test:corruption` reads these lines.
    eprintln!(
        "corruption: seed={seed} damaged={rounds} detected={} harmless={} wrong={} panics={} hangs={hangs}",
        sum(0),
        sum(1),
        sum(2),
        PANICS.load(Relaxed),
    );
    assert!(wrong.is_empty(), "{} of {rounds} wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert_eq!(PANICS.load(Relaxed), 0, "panics");
}
