//! Encoding of an index's log records.
//!
//! ```text
//! kind u8 (1 index, 2 delete) · seq_no u64 · version u64 · id length u32 · id · source
//! ```
//!
//! Little endian. The source is the document after its pipeline ran, so that replay runs no model.

/// One write as stored in the log.
#[derive(Debug, PartialEq, Eq)]
pub struct Record<'a> {
    pub seq_no: u64,
    pub version: u64,
    pub id: &'a str,
    /// Source of the document; `None` for a deletion.
    pub source: Option<&'a [u8]>,
}

const INDEX: u8 = 1;
const DELETE: u8 = 2;
const HEADER: usize = 1 + 8 + 8 + 4;

impl<'a> Record<'a> {
    /// The fixed part of the encoding, which the id and the source follow.
    pub fn header(&self) -> [u8; HEADER] {
        let mut header = [0; HEADER];
        header[0] = if self.source.is_some() { INDEX } else { DELETE };
        header[1..9].copy_from_slice(&self.seq_no.to_le_bytes());
        header[9..17].copy_from_slice(&self.version.to_le_bytes());
        header[17..].copy_from_slice(&(self.id.len() as u32).to_le_bytes());
        header
    }

    /// Decodes a record; `None` if its kind is unknown (the log's checksum is correct, so a newer version
    /// wrote it).
    pub fn decode(bytes: &'a [u8]) -> Option<Self> {
        let (kind, rest) = bytes.split_first()?;
        let (seq_no, rest) = rest.split_first_chunk::<8>()?;
        let (version, rest) = rest.split_first_chunk::<8>()?;
        let (length, rest) = rest.split_first_chunk::<4>()?;
        let (id, source) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        let source = match *kind {
            INDEX => Some(source),
            DELETE => None,
            _ => return None,
        };
        Some(Self {
            seq_no: u64::from_le_bytes(*seq_no),
            version: u64::from_le_bytes(*version),
            id: std::str::from_utf8(id).ok()?,
            source,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Record;

    #[test]
    fn records_round_trip_and_cut_ones_are_refused() {
        for source in [None, Some(&b"{\"a\":1}"[..]), Some(&b""[..])] {
            let record = Record { seq_no: 7, version: 3, id: "käse", source };
            let bytes = [&record.header()[..], "käse".as_bytes(), source.unwrap_or_default()].concat();
            assert_eq!(Record::decode(&bytes), Some(record));
            for length in 0..26 {
                assert_eq!(
                    Record::decode(&bytes[..length.min(bytes.len() - source.map_or(1, |s| s.len() + 1))]),
                    None
                );
            }
        }
        assert_eq!(Record::decode(&[9; 40]), None);
    }
}
