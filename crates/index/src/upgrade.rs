//! Rewriting an index in another postings format.
//!
//! A new directory is built beside the old one. Segments keep their documents and numbers: every file
//! but our container is taken over as it is (linked where the file system can), and each sparse field of
//! each container is written anew, term by term. So nothing depends on `_source`, which may lack fields,
//! and the old index stays searchable and writable meanwhile. The caller swaps the directories.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use sparrow_postings::{Format, MergeSource, merge_postings};
use tantivy::directory::{Directory, ManagedDirectory, MmapDirectory, TerminatingWrite};
use tantivy::{SegmentReader, TantivyError};

use crate::directory::{MANAGED, META};
use crate::error::IndexError;
use crate::index::SparrowIndex;
use crate::plugins::{self, ContainerWriter, PartKind, SparseReader, read_parts};
use crate::writer::format_number;

/// How far a rewrite is, in live documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RewriteProgress {
    pub done: u64,
    pub total: u64,
}

/// What a rewrite did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RewriteStats {
    /// Live documents that are now in the target format.
    pub docs: u64,
    pub segments: usize,
    /// The new directory covers writes up to here; later ones have to be applied to it.
    pub covered_seq_no: Option<u64>,
}

impl SparrowIndex {
    /// Builds in `target` this index with sparse postings in `format`, durable when it returns. `target`
    /// is emptied first. Takes the newest commit: call [`SparrowIndex::flush`] before, so that the
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
        let (index, directory, meta_json, payload) = {
            let mut writer = self.lock_writer();
            writer.commit(false)?;
            let meta = writer.directory.read_meta().map_err(TantivyError::from)?;
            (writer.index.clone(), writer.directory.clone(), meta, writer.payload)
        };
        // The meta file's segments are tracked while this lives, so that no merge removes their files.
        let metas = {
            let _files = directory.hold_files();
            index.load_metas()?
        };
        let mut new_meta: serde_json::Value = serde_json::from_slice(&meta_json)
            .map_err(|error| IndexError::Corrupt { path: META.into(), reason: error.to_string() })?;
        let payload = crate::writer::Payload { sparse_format: format_number(format), ..payload };
        let payload_json = serde_json::to_string(&payload)
            .map_err(|error| IndexError::Corrupt { path: META.into(), reason: error.to_string() })?;
        new_meta["payload"] = payload_json.into();
        // A merge may have ended between the two reads: the tracked list counts.
        new_meta["segments"] = serde_json::to_value(&metas.segments)
            .map_err(|error| IndexError::Corrupt { path: META.into(), reason: error.to_string() })?;

        let total = metas.segments.iter().map(|meta| u64::from(meta.num_docs())).sum();
        let mut done = 0;
        progress(RewriteProgress { done, total });
        let container = plugins::component();
        let mut names = BTreeSet::from([PathBuf::from(META)]);
        for meta in &metas.segments {
            let own = meta.relative_path(container.clone());
            for path in metas.list_segment_files() {
                let of_segment =
                    path.to_str().is_some_and(|name| name.starts_with(&meta.id().uuid_string()));
                let source = self.dir().join(&path);
                if of_segment && path != own && source.exists() {
                    link_or_copy(&source, &target.join(&path)).map_err(IndexError::io(&source))?;
                    names.insert(path);
                }
            }
            let reader = SegmentReader::open(&index.segment(meta.clone()))?;
            rewrite_container(&reader, target, &own, format, cancel)?;
            names.insert(own);
            done += u64::from(meta.num_docs());
            progress(RewriteProgress { done, total });
        }
        write_durably(target, &names, &new_meta).map_err(IndexError::io(target))?;
        Ok(RewriteStats { docs: total, segments: metas.segments.len(), covered_seq_no: payload.seq_no })
    }
}

/// Writes the container of one segment anew, with tantivy's checksum footer.
fn rewrite_container(
    reader: &SegmentReader,
    target: &Path,
    path: &Path,
    format: Format,
    cancel: &AtomicBool,
) -> Result<(), IndexError> {
    let file = reader.open_read(plugins::component()).map_err(TantivyError::from)?;
    let bytes = file.read_bytes().map_err(IndexError::io(path))?;
    let parts = read_parts(&bytes).map_err(|error| IndexError::Corrupt {
        path: path.to_path_buf(),
        reason: error.to_string(),
    })?;
    let directory = ManagedDirectory::wrap(Box::new(MmapDirectory::open(target).map_err(TantivyError::from)?))?;
    let out = directory.open_write(path).map_err(TantivyError::from)?;
    let mut container = ContainerWriter::new(out);
    let doc_map: Vec<u32> = (0..reader.max_doc()).collect();
    for part in parts {
        if cancel.load(Ordering::Relaxed) {
            return Err(IndexError::Cancelled);
        }
        match part.kind {
            PartKind::Dense => container.part(part.field, part.kind, &part.bytes),
            PartKind::Sparse => {
                let field = part.field.to_string();
                let damaged = |source| IndexError::Postings {
                    field: field.clone(),
                    segment: reader.segment_id().uuid_string(),
                    source,
                };
                let postings = SparseReader::open(part.bytes).map_err(damaged)?;
                // The last chance to notice a damaged file, as the old one goes after this.
                postings.verify().map_err(damaged)?;
                container.part_with(part.field, part.kind, &mut |out| {
                    let source = MergeSource { reader: &postings, doc_map: &doc_map };
                    merge_postings(&[source], reader.max_doc(), format, out)
                })
            }
        }
        .map_err(IndexError::io(path))?;
    }
    container.finish().and_then(|out| out.terminate()).map_err(IndexError::io(path))
}

/// Files of segments never change, so a link is as good as a copy.
fn link_or_copy(source: &Path, target: &Path) -> io::Result<()> {
    if fs::hard_link(source, target).is_err() {
        fs::copy(source, target)?;
    }
    Ok(())
}

fn write_durably(
    target: &Path,
    names: &BTreeSet<PathBuf>,
    meta: &serde_json::Value,
) -> io::Result<()> {
    for name in names {
        if name.as_path() != Path::new(META) {
            File::open(target.join(name))?.sync_data()?;
        }
    }
    let directory = MmapDirectory::open(target).map_err(io::Error::other)?;
    directory.atomic_write(Path::new(MANAGED), &serde_json::to_vec(names)?)?;
    directory.atomic_write(Path::new(META), &serde_json::to_vec(meta)?)?;
    directory.sync_directory()
}
