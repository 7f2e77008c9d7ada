//! Statistics of an index, its segments and merges.

use std::collections::BTreeMap;

use sparrow_file_system as fs;
use sparrow_mapping::FieldType;
use sparrow_segments::IndexError;
use sparrow_segments::plugins::MergeStats;
use sparrow_segments::schema::keyword_column;

use crate::Snapshot;
use crate::index::SparrowIndex;

/// Statistics of an index as of its newest commit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct IndexStats {
    pub docs: u64,
    /// Documents deleted or replaced that are still in a segment, as no merge has removed them.
    pub deleted: u64,
    pub segments: usize,
    /// Size of all files in the index directory, in bytes.
    pub bytes: u64,
    /// Size of sparse postings and dense vectors within those files, in bytes.
    pub plugin_bytes: u64,
}

/// Statistics of one searchable segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentStats {
    /// Name of the segment, 32 hexadecimal digits.
    pub id: String,
    pub docs: u64,
    /// Documents deleted or replaced since the segment was written.
    pub deleted: u64,
    /// Size of the segment's files, in bytes.
    pub bytes: u64,
    /// Number of values in sparse fields.
    pub sparse_values: u64,
    /// Number of vectors in dense fields.
    pub dense_values: u64,
}

impl SparrowIndex {
    /// Statistics of the index.
    ///
    /// # Errors
    /// When the directory cannot be listed.
    pub fn stats(&self) -> Result<IndexStats, IndexError> {
        let snapshot = self.searcher();
        let mut stats = IndexStats {
            docs: snapshot.num_docs(),
            segments: snapshot.segments().len(),
            ..IndexStats::default()
        };
        for (reader, segment) in snapshot.searcher().segment_readers().iter().zip(snapshot.segments()) {
            stats.deleted += u64::from(reader.num_deleted_docs());
            stats.plugin_bytes += segment.plugins().bytes();
        }
        for entry in fs::read_dir(self.dir()).map_err(IndexError::io(self.dir()))? {
            let entry = entry.map_err(IndexError::io(self.dir()))?;
            // A file may be removed between the listing and this.
            stats.bytes += entry.metadata().map_or(0, |metadata| metadata.len());
        }
        Ok(stats)
    }

    /// Statistics of the merges since the index was opened.
    pub fn merge_stats(&self) -> MergeStats {
        self.limiter.merges.stats()
    }

    /// Why the last merge failed; `None` if a merge has succeeded since, or none has failed.
    pub fn merge_failure(&self) -> Option<String> {
        self.limiter.merges.failures.last()
    }

    /// Statistics of each searchable segment.
    ///
    /// # Errors
    /// When the directory cannot be listed.
    pub fn segment_stats(&self) -> Result<Vec<SegmentStats>, IndexError> {
        let snapshot = self.searcher();
        let mut sizes: BTreeMap<String, u64> = BTreeMap::new();
        for entry in fs::read_dir(self.dir()).map_err(IndexError::io(self.dir()))? {
            let entry = entry.map_err(IndexError::io(self.dir()))?;
            let name = entry.file_name();
            if let Some((id, _)) = name.to_str().and_then(|name| name.split_once('.')) {
                *sizes.entry(id.to_owned()).or_default() += entry.metadata().map_or(0, |file| file.len());
            }
        }
        let schema = snapshot.schema();
        let stats = snapshot.searcher().segment_readers().iter().zip(snapshot.segments());
        Ok(stats
            .map(|(reader, segment)| {
                let id = reader.segment_id().uuid_string();
                let sparse = schema.sparse_fields().filter_map(|field| segment.sparse(field));
                let dense = schema.dense_fields().filter_map(|field| segment.dense(field));
                SegmentStats {
                    docs: u64::from(reader.num_docs()),
                    deleted: u64::from(reader.num_deleted_docs()),
                    bytes: sizes.get(&id).copied().unwrap_or_default(),
                    sparse_values: sparse.map(|reader| u64::from(reader.docs_with_field())).sum(),
                    dense_values: dense.map(|reader| reader.len() as u64).sum(),
                    id,
                }
            })
            .collect())
    }
}

impl Snapshot {
    /// Paths of the `wanted` fields, each with the size of its column of texts in bytes.
    ///
    /// # Errors
    /// When a segment cannot be read.
    pub fn text_column_bytes(
        &self,
        wanted: impl Fn(&FieldType) -> bool,
    ) -> Result<BTreeMap<String, u64>, IndexError> {
        let mut sizes = BTreeMap::new();
        for (path, _) in self.mapping().leaf_fields().filter(|(_, field_type)| wanted(field_type)) {
            let mut bytes = 0;
            for reader in self.searcher().segment_readers() {
                let columns = reader.fast_fields().dynamic_column_handles(&keyword_column(path))?;
                bytes += columns.iter().map(|column| column.num_bytes().get_bytes()).sum::<u64>();
            }
            sizes.insert(path.to_owned(), bytes);
        }
        Ok(sizes)
    }
}
