//! How much space the inputs of completions take.

use std::collections::BTreeMap;

use sparrow_index::Snapshot;
use sparrow_mapping::FieldType;
use sparrow_segments::IndexError;
use sparrow_segments::schema::keyword_column;

/// Paths of the `completion` fields of an index, each with the size of its inputs in bytes.
///
/// # Errors
/// When a segment cannot be read.
pub fn completion_bytes(snapshot: &Snapshot) -> Result<BTreeMap<String, u64>, IndexError> {
    let fields = snapshot.mapping().leaf_fields();
    let paths = fields.filter(|(_, field_type)| matches!(field_type, FieldType::Completion(_)));
    let mut sizes = BTreeMap::new();
    for (path, _) in paths {
        let mut bytes = 0;
        for reader in snapshot.searcher().segment_readers() {
            let columns = reader.fast_fields().dynamic_column_handles(&keyword_column(path))?;
            bytes += columns.iter().map(|column| column.num_bytes().get_bytes()).sum::<u64>();
        }
        sizes.insert(path.to_owned(), bytes);
    }
    Ok(sizes)
}
