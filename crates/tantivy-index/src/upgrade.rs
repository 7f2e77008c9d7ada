//! Rewrites an index in another postings format, and its dense vectors in the current one.
//!
//! A new directory is built beside the old one. Segments keep their documents and numbers: every file but our
//! container is taken over as it is (linked where the file system can), and each sparse field of each
//! container is written anew, term by term. So nothing depends on `_source`, which may lack fields, and the
//! old index stays searchable and writable meanwhile. The caller swaps the directories.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sparrow_file_system as fs;
use sparrow_postings::{Format, MergeSource, merge_postings};
use tantivy::directory::{ManagedDirectory, OwnedBytes, TerminatingWrite};
use tantivy::schema::Schema;
use tantivy::{Directory, SegmentReader, TantivyError};

use crate::index::SparrowIndex;
use crate::writer::{Payload, format_number};
use sparrow_segments::IndexError;
use sparrow_segments::directory::{LazyDirectory, MANAGED};
use sparrow_segments::manifest::META;
use sparrow_segments::manifest::{Checksum, Commit, Manifest};
use sparrow_segments::plugins::{
    self, ContainerWriter, DenseGraph, DenseReader, PartKind, SparseReader, VectorSettings, read_parts,
};

/// Progress of a rewrite, in live documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RewriteProgress {
    pub done: u64,
    pub total: u64,
}

/// Result of a rewrite.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RewriteStats {
    /// Number of live documents that are now in the target format.
    pub docs: u64,
    pub segments: usize,
    /// Sequence number up to which the new directory contains all writes; later ones have to be applied to
    /// it.
    pub covered_seq_no: Option<u64>,
}

impl SparrowIndex {
    /// Builds a copy of this index in `target`, with sparse postings in `format`; it is durable when the call
    /// returns. `target` is emptied first. Takes the newest commit and makes none: the caller that commits has to
    /// know at once what a failure took from the buffer. Call [`SparrowIndex::flush`] before, so that the
    /// sequence number it covers is recent, and apply what came later to the new index.
    ///
    /// # Errors
    /// [`IndexError::Cancelled`] when `cancel` was set, leaving `target` to be removed.
    pub fn rewrite(
        &self,
        target: &Path,
        format: Format,
        progress: &mut dyn FnMut(RewriteProgress),
        cancel: &AtomicBool,
    ) -> Result<RewriteStats, IndexError> {
        if target.exists() {
            fs::remove_dir_all(target).map_err(IndexError::io(target))?;
        }
        fs::create_dir_all(target).map_err(IndexError::io(target))?;
        let taken = self.take(target)?;
        let payload = Payload { sparse_format: format_number(format), ..taken.payload };
        let mut meta = taken.meta;
        meta["payload"] = serde_json::to_string(&payload).map_err(corrupt_meta)?.into();
        let total = taken.segments.iter().map(|segment| segment.docs).sum();
        let mut done = 0;
        progress(RewriteProgress { done, total });
        let mut sums = taken.sums;
        let segments = taken.segments.len();
        for segment in taken.segments {
            let sum = segment.rewrite(target, format, &taken.schema, &taken.vectors, cancel)?;
            sums.insert(segment.container, sum);
            done += segment.docs;
            progress(RewriteProgress { done, total });
        }
        write_durably(target, &sums, &meta).map_err(IndexError::io(target))?;
        Ok(RewriteStats { docs: total, segments, covered_seq_no: payload.seq_no })
    }

    /// Links or copies the files of the newest commit into `target`, except for the containers, which are
    /// opened. Meanwhile no file is removed and the schema stays the same; afterwards nothing depends on the
    /// old directory.
    fn take(&self, target: &Path) -> Result<TakenCommit, IndexError> {
        let writer = self.lock_writer();
        let _files = writer.directory.hold_files();
        // Tracked by the index while it lives, so a merge that ends now leaves these segments alone.
        let metas = writer.index.load_metas()?;
        let meta = writer.directory.read_meta().map_err(TantivyError::from)?;
        let mut meta: serde_json::Value = serde_json::from_slice(&meta).map_err(corrupt_meta)?;
        // A merge may have ended between the two reads: the tracked list counts.
        meta["segments"] = serde_json::to_value(&metas.segments).map_err(corrupt_meta)?;
        let mut sums = HashMap::new();
        let mut segments = Vec::with_capacity(metas.segments.len());
        for segment in &metas.segments {
            let reader = SegmentReader::open(&writer.index.segment(segment.clone()))?;
            let file = reader.open_read(plugins::component()).map_err(TantivyError::from)?;
            let container = segment.relative_path(plugins::component());
            segments.push(TakenSegment {
                bytes: file.read_bytes().map_err(IndexError::io(&container))?,
                container,
                docs: u64::from(segment.num_docs()),
            });
        }
        for path in metas.list_segment_files() {
            // The list names every component a segment may have.
            let source = self.dir().join(&path);
            if source.exists() && !segments.iter().any(|segment| segment.container == path) {
                let sum = writer.directory.sum(&path).ok_or_else(|| unknown(&path))?;
                fs::link_or_copy(&source, target.join(&path)).map_err(IndexError::io(&source))?;
                sums.insert(path, sum);
            }
        }
        let (schema, vectors) = (writer.index.schema(), writer.vector_settings().clone());
        Ok(TakenCommit { payload: writer.payload, meta, sums, segments, schema, vectors })
    }
}

/// A commit whose files have been linked or copied and whose containers are still to be written.
struct TakenCommit {
    payload: Payload,
    meta: serde_json::Value,
    /// Checksums of the files that were taken over unchanged.
    sums: HashMap<PathBuf, Checksum>,
    segments: Vec<TakenSegment>,
    schema: Schema,
    vectors: Arc<VectorSettings>,
}

struct TakenSegment {
    container: PathBuf,
    bytes: OwnedBytes,
    /// Number of live documents.
    docs: u64,
}

fn unknown(path: &Path) -> IndexError {
    IndexError::Corrupt { path: path.to_path_buf(), reason: "its checksum is not known".to_owned() }
}

fn corrupt_meta(error: serde_json::Error) -> IndexError {
    IndexError::Corrupt { path: META.into(), reason: error.to_string() }
}

impl TakenSegment {
    /// Writes the segment's container in the new format, with tantivy's checksum footer; returns the file's
    /// length and checksum.
    fn rewrite(
        &self,
        target: &Path,
        format: Format,
        schema: &Schema,
        vectors: &VectorSettings,
        cancel: &AtomicBool,
    ) -> Result<Checksum, IndexError> {
        let path = &self.container;
        let parts = read_parts(&self.bytes)
            .map_err(|error| IndexError::Corrupt { path: path.clone(), reason: error.to_string() })?;
        let written = LazyDirectory::open(target)?;
        let directory = ManagedDirectory::wrap(Box::new(written.clone()))?;
        let out = directory.open_write(path).map_err(TantivyError::from)?;
        let mut container = ContainerWriter::new(out);
        // Numbers of documents, or of passages where there are more of them.
        let same = |count: u32| (0..count).collect::<Vec<u32>>();
        // Vectors in an old layout are written anew, and their graphs with them; for an old graph its vectors are.
        let mut renewed = BTreeSet::new();
        for part in parts.iter().filter(|part| matches!(part.kind, PartKind::Graph)) {
            if DenseGraph::open(part.bytes.clone()).is_ok_and(|graph| !graph.is_current()) {
                renewed.insert(part.field);
            }
        }
        for part in parts {
            if cancel.load(Ordering::Relaxed) {
                return Err(IndexError::Cancelled);
            }
            match part.kind {
                PartKind::Graph if renewed.contains(&part.field) => Ok(()),
                PartKind::Graph | PartKind::Passages => container.part(part.field, part.kind, &part.bytes),
                PartKind::Dense => {
                    let damaged = |source| IndexError::Vectors {
                        field: part.field.to_string(),
                        segment: path.display().to_string(),
                        source,
                    };
                    let reader = DenseReader::open(part.bytes.clone()).map_err(damaged)?;
                    reader.verify().map_err(damaged)?;
                    if reader.is_current() && !renewed.contains(&part.field) {
                        container.part(part.field, part.kind, &part.bytes)
                    } else {
                        renewed.insert(part.field);
                        let count = reader.num_docs();
                        let sources = [(&reader, Arc::from(same(count).as_slice()))];
                        vectors.merge(schema, part.field, &sources, count, &mut container)
                    }
                }
                PartKind::Sparse => {
                    let damaged = |source| IndexError::Postings {
                        field: part.field.to_string(),
                        segment: path.display().to_string(),
                        source,
                    };
                    let postings = SparseReader::open(part.bytes.clone()).map_err(damaged)?;
                    // The last chance to notice a damaged file, as the old one goes after this.
                    postings.verify().map_err(damaged)?;
                    let count = postings.num_docs();
                    let doc_map = same(count);
                    container.part_with(part.field, part.kind, &mut |out| {
                        let source = MergeSource { reader: &postings, doc_map: &doc_map };
                        merge_postings(&[source], count, format, out)
                    })
                }
            }
            .map_err(IndexError::io(path))?;
        }
        container.finish().and_then(|out| out.terminate()).map_err(IndexError::io(path))?;
        written.sum(path).ok_or_else(|| unknown(path))
    }
}

fn write_durably(
    target: &Path,
    sums: &HashMap<PathBuf, Checksum>,
    meta: &serde_json::Value,
) -> io::Result<()> {
    for name in sums.keys() {
        fs::sync_data(target.join(name))?;
    }
    fs::sync_dir(target)?;
    let names: BTreeSet<&Path> = sums.keys().map(PathBuf::as_path).chain([Path::new(META)]).collect();
    fs::durable::atomic_write(&target.join(MANAGED), &serde_json::to_vec(&names)?)?;
    let commit = meta.as_object().and_then(Commit::of);
    let commit = commit.ok_or_else(|| io::Error::other("a commit without segments"))?;
    let meta = Manifest::of(&commit, sums).encode(&serde_json::to_vec(meta)?)?;
    fs::durable::atomic_write(&target.join(META), &meta)
}
