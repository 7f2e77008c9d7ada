//! Builds the indexes that are searched, or opens those that exist.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::json;
use sparrow_mapping::{Limits, Mapping};
use sparrow_tantivy_index::{IndexOptions, IndexStats, Snapshot, SparrowIndex, WriteDocument};

use crate::Arguments;
use crate::corpus::{Corpus, spread};

/// An opened index. The sequence number of a document is its row in the corpus.
pub struct Built {
    index: SparrowIndex,
    /// Number of segments and share of deleted documents, for output.
    pub label: String,
}

impl Built {
    pub fn open(dir: &Path) -> Result<Self, Box<dyn Error>> {
        let (index, _) = SparrowIndex::open(dir, &mapping()?, &options())?;
        let IndexStats { segments, deleted, .. } = index.stats()?;
        let plural = if segments == 1 { "" } else { "s" };
        Ok(Self { index, label: format!("{segments} segment{plural}, {deleted} deleted") })
    }

    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.index.searcher()
    }
}

pub fn mapping() -> Result<Mapping, Box<dyn Error>> {
    Ok(Mapping::parse(&json!({
        "properties": {
            "title": {"type": "text"},
            "text": {"type": "text"},
            "half": {"type": "keyword"},
            "twentieth": {"type": "keyword"},
            "rare": {"type": "keyword"},
            "number": {"type": "integer"},
            "v": {"type": "sparse_vector"}
        }
    }))?)
}

/// Options with one indexing thread, and enough memory that segments end only at a refresh.
fn options() -> IndexOptions {
    IndexOptions { memory_budget: 3_000_000_000, ..IndexOptions::default() }
}

/// Whether the document of a row is deleted in an index with this share of deleted documents (0 to 1).
pub fn is_deleted(row: u64, share: f64) -> bool {
    // Independent of the filter values, which depend on lower digits.
    spread(row.wrapping_mul(31).wrapping_add(7)) as f64 / 1_000_003.0 < share
}

/// The document of a row in the form in which an index takes it.
pub fn write_document(
    mapping: &Mapping,
    corpus: &Corpus,
    row: usize,
) -> Result<WriteDocument, Box<dyn Error>> {
    let (source, whole) = corpus.document(row);
    let id = format!("doc-{row}");
    let (parsed, _) =
        mapping.parse_document(&id, &whole, &Limits::default()).map_err(|error| format!("{error:?}"))?;
    let source = serde_json::to_vec(&source)?;
    Ok(WriteDocument { id, seq_no: row as u64, version: 1, parsed, source, replaces: false })
}

/// Builds an index with `segments` segments, unless the directory already holds one.
pub fn prepare(
    arguments: &Arguments,
    corpus: &Corpus,
    segments: usize,
    deleted: f64,
) -> Result<PathBuf, Box<dyn Error>> {
    let rows = corpus.len();
    let name = format!("{rows}-{segments}-{deleted}");
    let (dir, ready) = (arguments.work.join(&name), arguments.work.join(format!("{name}.ready")));
    if ready.exists() && !arguments.rebuild {
        return Ok(dir);
    }
    let _ = fs::remove_file(&ready);
    let _ = fs::remove_dir_all(&dir);
    let mapping = mapping()?;
    let index = SparrowIndex::create(&dir, &mapping, &options())?;
    for row in 0..rows {
        index.add(write_document(&mapping, corpus, row)?)?;
        if (row + 1) % rows.div_ceil(segments) == 0 {
            index.refresh()?;
        }
    }
    index.refresh()?;
    if segments == 1 {
        index.merge_all()?;
    }
    for row in (0..rows as u64).filter(|row| is_deleted(*row, deleted)) {
        index.delete(&format!("doc-{row}"))?;
    }
    index.refresh()?;
    index.flush(Some(rows as u64))?;
    fs::write(ready, "")?;
    Ok(dir)
}
