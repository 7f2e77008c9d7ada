//! Building a new data directory from what a damaged one still has. The damaged one stays as it is.

use std::path::{Path, PathBuf};

use serde::Serialize;
use sparrow_file_system as fs;
use sparrow_tantivy_index::{
    IndexOptions, SalvagedDoc, SparrowIndex, WriteDocument, salvage as salvage_index,
};
use sparrow_write_ahead_log::{DataDir, Salvaged, StorageError, durable, salvage};

use super::{CheckedIndex, Report, below, inspect};
use sparrow_catalog::{METADATA_PREFIX, Metadata, Record, reread};
use sparrow_request::error::EngineError;
use sparrow_request::places;

/// The report of `sparrow repair`: the parts of a damaged data directory that were copied into a new one, and those left out.
#[derive(Debug, Serialize)]
pub struct Repair {
    /// The damaged files, of the directory that was repaired.
    pub found: Report,
    /// Path of the new directory.
    pub into: String,
    pub indices: Vec<RepairedIndex>,
    /// Files that belong to no index and are damaged, so not in the new directory; paths relative to the damaged one.
    pub left_out: Vec<String>,
}

/// An index of a damaged data directory, and how many of its documents are in the new one.
#[derive(Debug, Serialize)]
pub struct RepairedIndex {
    pub name: String,
    /// Whether no file of it was damaged, so that all were copied as they are.
    pub whole: bool,
    /// Number of documents in the new directory, without those that only the log of an undamaged index holds.
    pub kept: u64,
    /// Documents that are not in the new directory; absent if their number is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost: Option<u64>,
    /// Ids of the documents whose writes in the log could be read but not applied.
    pub lost_ids: Vec<String>,
    /// What else a user of the new index should know, as sentences.
    pub notes: Vec<String>,
}

/// Builds in `into`, which must be empty or not there, a data directory of all that is whole in `data`. Of a damaged index those segments
/// are kept whose files are whole, stored documents of other segments, and the writes of the log that can be read. Nobody but the
/// owner can read what is made. Links to folders are not followed.
///
/// `unusable` are files below `data` that somebody else has found damaged: they are left out as well.
///
/// # Errors
/// When a process has `data` open, `into` is not empty or in `data`, or it cannot be written.
pub fn repair(data: &Path, into: &Path, unusable: &[String]) -> Result<Repair, EngineError> {
    let source = DataDir::inspect(data)?;
    if fs::read_dir(into).is_ok_and(|mut entries| entries.next().is_some()) {
        return Err(EngineError::illegal_argument(format!("{} is not empty", into.display())));
    }
    if places::real(into).starts_with(places::real(source.path())) {
        return Err(EngineError::illegal_argument("the new directory must not be in the damaged one"));
    }
    let report = inspect(&source)?;
    durable::create_dir_all(into)?;
    // Before a secret lies in it.
    close_to_others(into);
    let damaged = |file: &str| {
        report.problems.iter().any(|problem| problem.file == file)
            || unusable.iter().any(|other| other == file)
    };
    let (mut left_out, mut skipped) = (Vec::new(), Vec::new());
    let mut wanted = |file: &Path| {
        let name = file.display().to_string();
        // The indices come one by one; packed weights are made anew; the lock is the damaged directory's.
        if name == "indices" || name == "packed" || name == "lock" {
            return false;
        }
        let damaged = damaged(&name);
        if damaged {
            left_out.push(name);
        }
        !damaged
    };
    copy_tree(source.path(), into, Path::new(""), &mut wanted, &mut skipped)?;
    durable::create_dir_all(&into.join("indices"))?;
    let mut indices = Vec::new();
    for index in &report.indices {
        indices.push(of_index(&source, into, index, &mut skipped)?);
    }
    left_out.extend(skipped.iter().map(|path| below(source.path(), path)));
    close_all_to_others(into)?;
    Ok(Repair { into: into.display().to_string(), indices, left_out, found: report })
}

/// Builds one index of the new data directory from what the damaged directory still has of it.
fn of_index(
    source: &DataDir,
    into: &Path,
    index: &CheckedIndex,
    skipped: &mut Vec<PathBuf>,
) -> Result<RepairedIndex, EngineError> {
    let mut repaired = RepairedIndex {
        name: index.name.clone(),
        whole: !index.damaged,
        kept: 0,
        lost: Some(0),
        lost_ids: Vec::new(),
        notes: Vec::new(),
    };
    let store = format!("{METADATA_PREFIX}{}", index.uuid);
    let metadata = match Metadata::load(source, &store) {
        Ok(Some(metadata)) if metadata.uuid == index.uuid => metadata,
        other => {
            repaired.lost = None;
            repaired.notes.push(match other {
                Ok(Some(other)) => format!(
                    "its metadata is that of the index with uuid [{}]: nothing of it was kept",
                    other.uuid
                ),
                _ => "its mapping cannot be read: nothing of it was kept".into(),
            });
            return Ok(repaired);
        }
    };
    let from = source.index_dir(&index.uuid);
    let to = into.join("indices").join(&index.uuid);
    if from.is_symlink() {
        (repaired.whole, repaired.lost) = (false, None);
        repaired
            .notes
            .push("its folder is a symbolic link, which is not followed: nothing of it was kept".into());
        durable::remove_file(&into.join("store").join(format!("{store}.json")))?;
        skipped.push(from);
        return Ok(repaired);
    }
    let options = IndexOptions {
        analysis: metadata.settings.analysis()?,
        name: metadata.name.as_str().into(),
        ..IndexOptions::default()
    };
    if index.damaged {
        let segments = salvage_segments(&from, &to, &metadata, &options, &mut repaired)?;
        add_salvaged(&from, &metadata, segments, &mut repaired)?;
        return Ok(repaired);
    }
    copy_tree(&from, &to, Path::new(""), &mut |_| true, skipped)?;
    let (opened, _) = SparrowIndex::open(&to.join(&metadata.folder), &metadata.mapping, &options)?;
    repaired.kept = opened.stats()?.docs;
    let waiting = salvage(&from.join("wal"))?.records.len();
    if waiting > 0 {
        repaired.notes.push(format!("{waiting} writes in its log, applied when it is opened"));
    }
    Ok(repaired)
}

/// An index that holds the undamaged segments of a damaged one.
struct WholeSegments {
    index: SparrowIndex,
    /// Last sequence number that the segments contain; `None` if they contain no document.
    covered: Option<u64>,
    /// Stored documents that could be read from the damaged segments.
    documents: Vec<SalvagedDoc>,
}

/// Makes an index in `to` from the undamaged segments in `from`, an empty one if the commit cannot be read.
fn salvage_segments(
    from: &Path,
    to: &Path,
    metadata: &Metadata,
    options: &IndexOptions,
    repaired: &mut RepairedIndex,
) -> Result<WholeSegments, EngineError> {
    let folder = to.join(&metadata.folder);
    // An index without a folder for its log counts as damaged.
    durable::create_dir_all(&to.join("wal"))?;
    let salvaged = salvage_index(&from.join(&metadata.folder), &folder).and_then(|salvaged| {
        let (index, covered) = SparrowIndex::open(&folder, &metadata.mapping, options)?;
        Ok((salvaged.lost, WholeSegments { index, covered, documents: salvaged.documents }))
    });
    match salvaged {
        Ok((lost, segments)) => {
            repaired.lost = Some(lost);
            Ok(segments)
        }
        Err(error) => {
            repaired.lost = None;
            repaired.notes.push(format!("its segments cannot be read, only its log: {error}"));
            // It is not there if the commit could not be read.
            durable::remove_dir_all(&folder)?;
            let index = SparrowIndex::create(&folder, &metadata.mapping, options)?;
            Ok(WholeSegments { index, covered: None, documents: Vec::new() })
        }
    }
}

/// Adds what damaged segments and the log in `from` still have, and commits it.
fn add_salvaged(
    from: &Path,
    metadata: &Metadata,
    segments: WholeSegments,
    repaired: &mut RepairedIndex,
) -> Result<(), EngineError> {
    let WholeSegments { index, covered, documents } = segments;
    let log = salvage(&from.join("wal"))
        .unwrap_or_else(|error| Salvaged { records: Vec::new(), problems: vec![error] });
    let records: Vec<Record<'_>> = log.records.iter().filter_map(|bytes| Record::decode(bytes)).collect();
    let unknown = log.records.len() - records.len();
    let mut next = records.iter().map(|record| record.seq_no + 1).max();
    next = next.max(covered.map(|covered| covered + 1));
    let mut last = covered;
    let unnumbered = documents.iter().filter(|document| document.numbers.is_none()).count();
    if unnumbered > 0 {
        repaired.notes.push(format!("{unnumbered} documents have new sequence numbers and version 1"));
    }
    if !documents.is_empty() {
        repaired.notes.push(format!(
            "{} documents of damaged segments were indexed again from [_source]",
            documents.len()
        ));
    }
    let mut narrowed = 0;
    let mut add = |id: &str, seq_no: u64, version: u64, source: &[u8], lost_ids: &mut Vec<String>| {
        let read = reread(&metadata.mapping, metadata.settings.limits().ignore_malformed, id, source);
        narrowed += u64::from(!read.left_out.is_empty());
        let (id, source) = (id.to_owned(), source.to_vec());
        let document =
            WriteDocument { id: id.clone(), seq_no, version, parsed: read.parsed, source, replaces: true };
        last = last.max(Some(seq_no));
        if let Err(error) = index.add(document) {
            tracing::warn!(id, %error, "a document cannot be kept");
            lost_ids.push(id);
        }
    };
    for document in &documents {
        let (seq_no, version) = document.numbers.unwrap_or_else(|| {
            let seq_no = next.unwrap_or_default();
            next = Some(seq_no + 1);
            (seq_no, 1)
        });
        add(&document.id, seq_no, version, &document.source, &mut repaired.lost_ids);
    }
    for record in records.iter().filter(|record| covered.is_none_or(|covered| record.seq_no > covered)) {
        match record.source {
            Some(source) => add(record.id, record.seq_no, record.version, source, &mut repaired.lost_ids),
            None => index.delete(record.id)?,
        }
    }
    if narrowed > 0 {
        repaired.notes.push(format!(
            "{narrowed} documents have fields that the mapping cannot take: these are in [_source] only"
        ));
    }
    if !log.problems.is_empty() {
        repaired.notes.push("writes in damaged places of its log are lost; their number is not known".into());
        repaired.lost = None;
    }
    if unknown > 0 {
        repaired
            .notes
            .push(format!("{unknown} records of its log are of a kind that this version does not know"));
        repaired.lost = None;
    }
    if let Some(lost) = &mut repaired.lost {
        *lost += repaired.lost_ids.len() as u64;
    }
    let last = last.max(next.and_then(|next| next.checked_sub(1)));
    index.flush(last)?;
    index.refresh()?;
    repaired.kept = index.stats()?.docs;
    Ok(())
}

/// Copies a folder, without what `wanted` refuses; `wanted` gets paths relative to `from`. Symbolic links to
/// folders, and whatever is neither a folder nor a file, are not copied but added to `skipped`, by their full
/// paths. The copy is durable when this returns.
fn copy_tree(
    from: &Path,
    to: &Path,
    below: &Path,
    wanted: &mut dyn FnMut(&Path) -> bool,
    skipped: &mut Vec<PathBuf>,
) -> Result<(), StorageError> {
    durable::create_dir_all(&to.join(below))?;
    let folder = from.join(below);
    for entry in fs::read_dir(&folder).map_err(StorageError::io("list", &folder))? {
        let entry = entry.map_err(StorageError::io("list", &folder))?;
        let place = below.join(entry.file_name());
        if !wanted(&place) {
            continue;
        }
        let (path, target) = (entry.path(), to.join(&place));
        if path.is_dir() && !path.is_symlink() {
            copy_tree(from, to, &place, wanted, skipped)?;
        } else if path.is_file() {
            fs::copy(&path, &target).map_err(StorageError::io("copy", &path))?;
            fs::File::append(&target)
                .and_then(|file| file.sync_all())
                .map_err(StorageError::io("sync", &target))?;
        } else {
            skipped.push(path);
        }
    }
    durable::sync_dir(&to.join(below))
}

/// Takes all access rights to a file or folder away from other users, where the file system has such rights.
fn close_to_others(path: &Path) {
    if let Err(error) = fs::close_to_others(path) {
        tracing::warn!(path = %path.display(), %error, "other users may be able to read it");
    }
}

/// Takes all access rights to a folder and everything in it away from other users.
fn close_all_to_others(folder: &Path) -> Result<(), StorageError> {
    close_to_others(folder);
    for entry in fs::read_dir(folder).map_err(StorageError::io("list", folder))? {
        let path = entry.map_err(StorageError::io("list", folder))?.path();
        match path.is_dir() {
            true => close_all_to_others(&path)?,
            false => close_to_others(&path),
        }
    }
    Ok(())
}
