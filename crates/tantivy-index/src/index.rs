//! One index: writes, refresh, flush and snapshots.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use sparrow_file_system as fs;
use sparrow_postings::Format;
use tantivy::{Index, IndexSettings};

use crate::options::{IndexOptions, WriteDocument};
use crate::schema_extension;
use crate::snapshot::{Newest, Snapshot};
use crate::writer::{self, BuiltDocument, Payload, Writer};
use sparrow_mapping::Mapping;
use sparrow_segments::IndexError;
use sparrow_segments::directory::{CommitFile, LazyDirectory};
use sparrow_segments::manifest::META;
use sparrow_segments::plugins::{self, InFlightLimiter, VectorSettings};
use sparrow_segments::schema::IndexSchema;
use sparrow_segments::verify::Damage;

/// Size of a block of stored documents, in bytes before compression: the unit of compression and decompression.
const STORE_BLOCK_BYTES: usize = 4096;

/// A tantivy index with Sparrow's segment plugin for sparse postings and dense vectors.
pub struct SparrowIndex {
    dir: PathBuf,
    format: Format,
    pub(crate) limiter: Arc<InFlightLimiter>,
    /// A handle that shares its state with the writer's directory, and is read while the writer holds its lock and waits for the disk.
    directory: LazyDirectory,
    writer: Mutex<Writer>,
    /// One forced merge at a time: another would take the same segments.
    pub(crate) forced_merge: Mutex<()>,
    snapshot: Newest,
}

impl SparrowIndex {
    /// Creates an index in `dir`, which is created and must hold no index. Durable when it returns.
    ///
    /// # Errors
    /// When the directory holds an index already or cannot be written.
    pub fn create(dir: &Path, mapping: &Mapping, options: &IndexOptions) -> Result<Self, IndexError> {
        fs::create_dir_all(dir).map_err(IndexError::io(dir))?;
        let directory = LazyDirectory::open(dir)?;
        let schema = IndexSchema::for_mapping(mapping);
        let settings = IndexSettings {
            docstore_compress_dedicated_thread: false,
            docstore_blocksize: STORE_BLOCK_BYTES,
            ..IndexSettings::default()
        };
        // The plugin must be known when the index is created, as its extension is recorded then.
        let plugin = plugins::SegmentParts {
            format: options.sparse_format,
            limiter: Arc::new(InFlightLimiter::default()),
            vectors: Arc::new(VectorSettings::new(mapping, options.min_graph_vectors)),
        };
        if Index::exists(&directory).map_err(tantivy::TantivyError::from)? {
            return Err(tantivy::TantivyError::IndexAlreadyExists.into());
        }
        Index::builder()
            .schema(schema.schema.clone())
            .settings(settings)
            .register_plugin(Arc::new(plugin))
            .open_or_create(directory.clone())?;
        let payload = Payload { seq_no: None, sparse_format: writer::format_number(options.sparse_format) };
        let encoded = payload.encode()?;
        schema_extension::edit_commit(&directory, |meta| {
            meta["payload"] = encoded.into();
            Ok(())
        })?;
        let index = Index::open(directory.clone())?;
        let writer = Writer::open(
            index,
            directory.clone(),
            schema,
            Arc::new(mapping.clone()),
            payload,
            options.sparse_format,
            options.clone(),
        )?;
        directory.make_durable().map_err(IndexError::io(dir))?;
        Self::with_writer(dir, options.sparse_format, writer)
    }

    /// Opens the index in `dir` as of its last flush, and returns the sequence number up to which that flush contains all writes: later
    /// ones have to be applied again, with `replaces` set.
    ///
    /// `mapping` may be wider than what the index was flushed with.
    ///
    /// # Errors
    /// When the directory holds no index, a damaged one, or one of an unknown format.
    pub fn open(
        dir: &Path,
        mapping: &Mapping,
        options: &IndexOptions,
    ) -> Result<(Self, Option<u64>), IndexError> {
        let directory = LazyDirectory::open(dir)?;
        if !Index::exists(&directory).map_err(tantivy::TantivyError::from)? {
            return Err(IndexError::Corrupt { path: dir.join(META), reason: "it is missing".to_owned() });
        }
        let index = Index::open(directory.clone())?;
        let payload = Payload::decode(dir, index.load_metas()?.payload.as_deref())?;
        let format = payload.format().ok_or_else(|| IndexError::Corrupt {
            path: dir.join(META),
            reason: format!(
                "sparse format {} is not one that this version reads (1 and 3)",
                payload.sparse_format
            ),
        })?;
        let schema = IndexSchema::from_schema(index.schema()).ok_or_else(|| IndexError::Corrupt {
            path: dir.join(META),
            reason: "a reserved field is missing from the schema".to_owned(),
        })?;
        let mapping = Arc::new(mapping.clone());
        let mut writer =
            Writer::open(index, directory, schema, mapping.clone(), payload, format, options.clone())?;
        schema_extension::extend(&mut writer, mapping)?;
        Ok((Self::with_writer(dir, format, writer)?, payload.seq_no))
    }

    fn with_writer(dir: &Path, format: Format, mut writer: Writer) -> Result<Self, IndexError> {
        let snapshot = writer.publish()?;
        Ok(Self {
            dir: dir.to_path_buf(),
            format,
            limiter: writer.limiter.clone(),
            directory: writer.directory.clone(),
            writer: Mutex::new(writer),
            forced_merge: Mutex::default(),
            snapshot: Newest::new(snapshot),
        })
    }

    /// Reads the format of the sparse postings of the index in `dir`, without opening the index.
    ///
    /// # Errors
    /// When there is no readable commit.
    pub fn detect_format(dir: &Path) -> Result<Format, IndexError> {
        let path = dir.join(META);
        let meta = fs::read(&path).map_err(IndexError::io(&path))?;
        let meta: serde_json::Value = serde_json::from_slice(&meta)
            .map_err(|error| IndexError::Corrupt { path: path.clone(), reason: error.to_string() })?;
        let payload = Payload::decode(dir, meta["payload"].as_str())?;
        payload.format().ok_or_else(|| IndexError::Corrupt {
            path,
            reason: format!(
                "sparse format {} is not one that this version reads (1 and 3)",
                payload.sparse_format
            ),
        })
    }

    /// Finds damage in the newest durable commit of the index in `dir` and in its files: each file is read and compared with its length and
    /// checksum in the commit. Nothing is opened or changed.
    ///
    /// # Errors
    /// When the commit itself is missing, damaged or of a newer version: nothing is known of the files then.
    pub fn damages(dir: &Path) -> Result<Vec<Damage>, IndexError> {
        sparrow_segments::verify::damages(dir)
    }

    /// Path of the index directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Format of all sparse postings of the index, in existing segments and in new ones.
    pub fn format(&self) -> Format {
        self.format
    }

    /// The mapping that is currently in force.
    pub fn mapping(&self) -> Arc<Mapping> {
        self.snapshot.get().mapping().clone()
    }

    /// Puts a wider mapping in force. New text, sparse and dense fields cost a commit and a reopen, during which writes wait; other changes
    /// are free. Searches see it with the next snapshot.
    ///
    /// # Errors
    /// [`IndexError::RolledBack`] when the commit of buffered writes fails.
    pub fn update_mapping(&self, mapping: &Mapping) -> Result<(), IndexError> {
        let mut writer = self.writer.lock();
        let mapping = Arc::new(mapping.clone());
        if schema_extension::extend(&mut writer, mapping.clone())? {
            // Also makes the buffered writes visible that had to be committed.
            let snapshot = writer.publish()?;
            self.snapshot.replace(snapshot);
        } else {
            let snapshot = self.snapshot.get().with_mapping(mapping, writer.mapping_epoch());
            self.snapshot.replace(snapshot);
        }
        Ok(())
    }

    /// Buffers a document; it is searchable after the next refresh.
    ///
    /// # Errors
    /// [`IndexError::RolledBack`] when an indexing thread failed; its documentation says what to do.
    pub fn add(&self, document: WriteDocument) -> Result<(), IndexError> {
        let built = self.build(document)?;
        self.add_built(built)
    }

    /// Converts a document to the form in which segments take it, without buffering it. The result fits the mapping in force.
    ///
    /// # Errors
    /// [`IndexError::UnknownField`] when the document has a field that the mapping lacks.
    pub fn build(&self, document: WriteDocument) -> Result<BuiltDocument, IndexError> {
        let form = self.writer.lock().form();
        form.build(document)
    }

    /// Buffers a document that was built since the mapping last changed; it is searchable after the next refresh.
    ///
    /// # Errors
    /// As [`SparrowIndex::add`].
    pub fn add_built(&self, document: BuiltDocument) -> Result<(), IndexError> {
        self.writer.lock().add(document)
    }

    /// Buffers the deletion of the document with this `_id`.
    ///
    /// # Errors
    /// As [`SparrowIndex::add`].
    pub fn delete(&self, id: &str) -> Result<(), IndexError> {
        self.writer.lock().delete(id)
    }

    /// Makes everything buffered searchable. Durable only with the next flush. Cheap when nothing changed; also picks up finished merges,
    /// so that their sources can be released.
    ///
    /// # Errors
    /// [`IndexError::RolledBack`] when the commit fails.
    pub fn refresh(&self) -> Result<(), IndexError> {
        self.commit()?;
        self.publish()
    }

    /// Commits everything buffered, in memory. Searches see it after the next [`SparrowIndex::publish`].
    ///
    /// # Errors
    /// [`IndexError::RolledBack`] when the commit fails.
    pub fn commit(&self) -> Result<(), IndexError> {
        self.writer.lock().commit()
    }

    /// Commits even if nothing is buffered, because tantivy looks for segments to merge after each commit.
    ///
    /// # Errors
    /// As [`SparrowIndex::commit`].
    pub fn commit_again(&self) -> Result<(), IndexError> {
        self.writer.lock().commit_again()
    }

    /// Makes the newest commit and finished merges visible to searches.
    ///
    /// # Errors
    /// When the segments cannot be opened; searches then see what they saw before.
    pub fn publish(&self) -> Result<(), IndexError> {
        let mut writer = self.writer.lock();
        if writer.needs_publishing() {
            let snapshot = writer.publish()?;
            self.snapshot.replace(snapshot);
        }
        Ok(())
    }

    /// Makes everything buffered durable; the commit records that it covers writes up to `seq_no`. Writes wait for the commit, not for the
    /// fsyncs.
    ///
    /// # Errors
    /// [`IndexError::RolledBack`] when the commit fails, [`IndexError::Poisoned`] after a failed fsync.
    pub fn flush(&self, seq_no: Option<u64>) -> Result<(), IndexError> {
        self.commit_covering(seq_no)?;
        self.make_durable()
    }

    /// Commits everything buffered, in memory; the commit records that it covers writes up to `seq_no`.
    ///
    /// # Errors
    /// As [`SparrowIndex::flush`].
    pub fn commit_covering(&self, seq_no: Option<u64>) -> Result<(), IndexError> {
        let mut writer = self.writer.lock();
        if writer.directory.is_poisoned() {
            return Err(writer.directory.poisoned());
        }
        let payload = Payload { seq_no: writer.payload.seq_no.max(seq_no), ..writer.payload };
        writer.commit_as(payload)
    }

    /// Makes the newest commit durable. Writes and searches go on meanwhile.
    ///
    /// # Errors
    /// When the disk reports an error. The index can then still be read, but not flushed until it is reopened.
    pub fn make_durable(&self) -> Result<(), IndexError> {
        self.directory.make_durable().map_err(IndexError::io(&self.dir))
    }

    /// Whether making a commit durable has failed: no later one can be made durable until the index is reopened.
    pub fn is_poisoned(&self) -> bool {
        self.directory.is_poisoned()
    }

    /// Size in bytes of files that are no longer needed and will be removed after the next durable commit.
    pub fn garbage_bytes(&self) -> u64 {
        self.directory.garbage_bytes()
    }

    /// Whether the writer holds threads and memory although everything is committed and nothing has been written for `time`. Never blocks:
    /// `false` while another thread is writing.
    pub fn is_idle(&self, time: Duration) -> bool {
        self.writer.try_lock().is_some_and(|writer| writer.is_idle(time))
    }

    /// Releases the threads and the memory that only writing needs, if the index is idle; the next write gets them again, which takes about
    /// a millisecond.
    ///
    /// # Errors
    /// When an indexing thread failed; nothing that was written is lost by it.
    pub fn rest(&self, time: Duration) -> Result<(), IndexError> {
        let mut writer = self.writer.lock();
        if writer.is_idle(time) { writer.rest() } else { Ok(()) }
    }

    /// Stops writing for good, so that the directory can be reopened or removed. Searches continue to see what they saw; writes fail.
    pub fn retire(&self) {
        self.writer.lock().retire();
    }

    /// Links the files of the last flush into `target`, which is made and must be empty: the result is an index in the state of that flush,
    /// which shares only files that never change with this one. Where the file system cannot link they are copied. Writes and searches go
    /// on; only a flush waits. Durable when it returns.
    ///
    /// # Errors
    /// [`IndexError::Io`]; of kind `NotFound` when the directory was replaced or removed meanwhile.
    pub fn link_commit(&self, target: &Path) -> Result<Vec<CommitFile>, IndexError> {
        let directory = self.writer.lock().directory.clone();
        fs::create_dir_all(target).map_err(IndexError::io(target))?;
        directory.link_commit(target).map_err(IndexError::io(&self.dir))
    }

    /// Discards everything buffered since the last refresh or flush.
    ///
    /// # Errors
    /// When the index cannot be reopened.
    pub fn rollback(&self) -> Result<(), IndexError> {
        self.writer.lock().rollback()
    }

    /// The newest published snapshot.
    pub fn searcher(&self) -> Arc<Snapshot> {
        self.snapshot.get()
    }

    pub(crate) fn lock_writer(&self) -> parking_lot::MutexGuard<'_, Writer> {
        self.writer.lock()
    }
}
