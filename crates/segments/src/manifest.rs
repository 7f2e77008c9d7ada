//! File list of a durable commit: length and CRC-32 of each file, and of the list itself.
//!
//! The list is an extra member of tantivy's `meta.json`, which tantivy ignores, so that a commit and its
//! checksums are replaced by one rename. It comes last, and the last 21 bytes are the checksum of all bytes
//! before them:
//!
//! ```text
//! {…tantivy's members…,"sparrow":{"format":2,"files":{"<name>":[[length, crc32], …], …},"crc32":"0123abcd"}}
//! ```
//!
//! A file that is replaced under its name (field norms, when text fields are added) is listed with both contents while a crash may
//! find either.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

use serde_json::{Map, Value};

/// Name of tantivy's commit point.
pub const META: &str = "meta.json";

/// Name of our extra member of `meta.json`.
const MEMBER: &str = "sparrow";
/// Format version of that member; older ones are read. In version 2 a document may have a routing behind its JSON, which a build that
/// knows only version 1 would show as a part of the source.
pub const FORMAT: u64 = 2;
const TAIL_BEGINS: &[u8] = br#","crc32":""#;
const TAIL_ENDS: &[u8] = br#""}}"#;
const TAIL: usize = TAIL_BEGINS.len() + 8 + TAIL_ENDS.len();

/// Length and CRC-32 of a whole file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Checksum {
    pub bytes: u64,
    pub crc32: u32,
}

/// File names of a commit, each with the contents that the file may have: one, or two while the file is being
/// replaced.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Manifest {
    pub files: BTreeMap<String, Vec<Checksum>>,
}

impl Manifest {
    /// List of the files that `commit` names and whose checksums are in `sums`.
    pub fn of(commit: &Commit, sums: &HashMap<PathBuf, Checksum>) -> Self {
        let named = sums.iter().filter_map(|(path, sum)| {
            let name = path.to_str()?;
            commit.names(name).then(|| (name.to_owned(), vec![*sum]))
        });
        Self { files: named.collect() }
    }

    /// Content of a `meta.json`: tantivy's members in `meta`, followed by this list.
    ///
    /// # Errors
    /// When `meta` is no JSON object.
    pub fn encode(&self, meta: &[u8]) -> serde_json::Result<Vec<u8>> {
        let mut members: Map<String, Value> = serde_json::from_slice(meta)?;
        let files = self.files.iter().map(|(name, sums)| {
            let sums = sums.iter().map(|sum| Value::from(vec![sum.bytes, u64::from(sum.crc32)]));
            (name.clone(), Value::Array(sums.collect()))
        });
        let list = Map::from_iter([
            ("format".to_owned(), FORMAT.into()),
            ("files".to_owned(), Value::Object(files.collect())),
        ]);
        // Whatever was there under the name has to make room: ours comes last.
        members.shift_remove(MEMBER);
        members.insert(MEMBER.to_owned(), Value::Object(list));
        let mut bytes = serde_json::to_vec(&members)?;
        bytes.truncate(bytes.len() - 2);
        let checksum = crc32fast::hash(&bytes);
        bytes.extend_from_slice(&tail(checksum));
        Ok(bytes)
    }
}

fn tail(checksum: u32) -> Vec<u8> {
    let mut tail = TAIL_BEGINS.to_vec();
    tail.extend_from_slice(format!("{checksum:08x}").as_bytes());
    tail.extend_from_slice(TAIL_ENDS);
    tail
}

/// A decoded `meta.json` whose checksum is correct.
#[derive(Debug)]
pub struct Meta {
    /// tantivy's members as JSON, without ours.
    pub bytes: Vec<u8>,
    pub commit: Commit,
    /// List of files; `None` if an older version wrote the `meta.json`, so that no file can be checked
    /// against it.
    pub manifest: Option<Manifest>,
}

/// Why a `meta.json` cannot be used.
#[derive(Debug)]
pub enum MetaProblem {
    Damaged(String),
    Newer { found: u64 },
}

impl Meta {
    /// Checks and decodes the content of a `meta.json`.
    pub fn decode(bytes: &[u8]) -> Result<Self, MetaProblem> {
        let damaged = |reason: String| MetaProblem::Damaged(reason);
        let mut members: Map<String, Value> =
            serde_json::from_slice(bytes).map_err(|error| damaged(format!("no commit: {error}")))?;
        let checked = bytes.len() > TAIL && bytes[bytes.len() - TAIL..].starts_with(TAIL_BEGINS);
        if checked {
            let (content, found) = bytes.split_at(bytes.len() - TAIL);
            let expected = tail(crc32fast::hash(content));
            if found != expected {
                let text = |tail: &[u8]| {
                    String::from_utf8_lossy(&tail[TAIL_BEGINS.len()..TAIL_BEGINS.len() + 8]).into_owned()
                };
                return Err(damaged(format!("crc32 {}, expected {}", text(&expected), text(found))));
            }
        }
        let manifest = match members.shift_remove(MEMBER) {
            None if checked => return Err(damaged("its list of files is missing".into())),
            None => None,
            Some(_) if !checked => return Err(damaged("its checksum is missing".into())),
            Some(own) => Some(read_own(&own)?),
        };
        let commit = Commit::of(&members).ok_or_else(|| damaged("it names no segments".into()))?;
        let bytes = serde_json::to_vec(&members).map_err(|error| damaged(error.to_string()))?;
        Ok(Self { bytes, commit, manifest })
    }
}

fn read_own(member: &Value) -> Result<Manifest, MetaProblem> {
    let found = member["format"].as_u64().unwrap_or_default();
    if found > FORMAT {
        return Err(MetaProblem::Newer { found });
    }
    let sum = |value: &Value| {
        Some(Checksum { bytes: value[0].as_u64()?, crc32: u32::try_from(value[1].as_u64()?).ok()? })
    };
    let sums = |value: &Value| value.as_array()?.iter().map(sum).collect::<Option<Vec<Checksum>>>();
    let files = member["files"].as_object().and_then(|files| {
        files.iter().map(|(name, value)| Some((name.clone(), sums(value)?))).collect::<Option<_>>()
    });
    match files {
        Some(files) => Ok(Manifest { files }),
        None => Err(MetaProblem::Damaged("its list of files cannot be read".into())),
    }
}

/// Segments of a commit: name (32 hexadecimal digits) → stamp of its deletions file, if it has one.
#[derive(Debug, Default)]
pub struct Commit {
    segments: HashMap<String, Option<u64>>,
}

impl Commit {
    /// Segments listed in the members of a `meta.json`; `None` when they cannot be read.
    pub fn of(members: &Map<String, Value>) -> Option<Self> {
        let mut segments = HashMap::new();
        for segment in members.get("segments")?.as_array()? {
            let id = segment["segment_id"].as_str()?.replace('-', "");
            segments.insert(id, segment["deletes"]["opstamp"].as_u64());
        }
        Some(Self { segments })
    }

    /// Whether a file of this name belongs to the commit.
    pub fn names(&self, file: &str) -> bool {
        let Some((id, rest)) = file.split_once('.') else { return false };
        match self.segments.get(id) {
            None => false,
            Some(opstamp) => match rest.strip_suffix(".del") {
                Some(number) => opstamp.is_some_and(|opstamp| number == opstamp.to_string()),
                None => !rest.ends_with(".new") && rest != "store.temp",
            },
        }
    }

    /// Names of the segments, 32 hexadecimal digits each.
    pub fn segments(&self) -> impl Iterator<Item = &str> {
        self.segments.keys().map(String::as_str)
    }
}

/// Segment name that a file name begins with; `None` if it is not a segment file.
pub fn segment_of(file: &str) -> Option<&str> {
    let (id, _) = file.split_once('.')?;
    (id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit())).then_some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0123456789abcdef0123456789abcdef";

    fn meta() -> Vec<u8> {
        let id = "01234567-89ab-cdef-0123-456789abcdef";
        format!(
            "{{\n \"segments\": [{{\"segment_id\": \"{id}\", \"max_doc\": 3, \"deletes\": null}}],\n \"opstamp\": 7\n}}\n"
        )
        .into_bytes()
    }

    fn manifest() -> Manifest {
        let store = (format!("{ID}.store"), vec![Checksum { bytes: 5, crc32: 6 }]);
        let norms = (
            format!("{ID}.fieldnorm"),
            vec![Checksum { bytes: 7, crc32: u32::MAX }, Checksum { bytes: 8, crc32: 0 }],
        );
        Manifest { files: BTreeMap::from([store, norms]) }
    }

    #[test]
    fn a_commit_comes_back_with_its_files_and_without_our_member() {
        let encoded = manifest().encode(&meta()).unwrap();
        let decoded = Meta::decode(&encoded).unwrap();
        assert_eq!(decoded.manifest, Some(manifest()));
        let members: Value = serde_json::from_slice(&decoded.bytes).unwrap();
        assert_eq!(members, serde_json::from_slice::<Value>(&meta()).unwrap());
        assert!(decoded.commit.names(&format!("{ID}.store")));
        assert!(!decoded.commit.names(&format!("{ID}.3.del")));
        // Once more over what was read gives the same bytes.
        assert_eq!(manifest().encode(&decoded.bytes).unwrap(), encoded);
        assert_eq!(Meta::decode(&meta()).unwrap().manifest, None);
    }

    #[test]
    fn each_changed_bit_and_each_cut_is_found() {
        let encoded = manifest().encode(&meta()).unwrap();
        for at in 0..encoded.len() {
            for bit in 0..8 {
                let mut bytes = encoded.clone();
                bytes[at] ^= 1 << bit;
                assert!(Meta::decode(&bytes).is_err(), "bit {bit} of byte {at}");
            }
            assert!(Meta::decode(&encoded[..at]).is_err(), "cut at {at}");
        }
        let mut longer = encoded;
        longer.push(b' ');
        assert!(Meta::decode(&longer).is_err());
    }

    #[test]
    fn a_newer_list_is_refused_as_such() {
        assert!(matches!(Meta::decode(&of_format(3)), Err(MetaProblem::Newer { found: 3 })));
    }

    #[test]
    fn an_older_list_is_read_and_written_as_a_current_one() {
        let decoded = Meta::decode(&of_format(1)).unwrap();
        assert_eq!(decoded.manifest, Some(manifest()));
        assert_eq!(manifest().encode(&decoded.bytes).unwrap(), of_format(2));
    }

    /// The list of this format version, with a correct checksum.
    fn of_format(format: u64) -> Vec<u8> {
        let encoded = String::from_utf8(manifest().encode(&meta()).unwrap()).unwrap();
        let own = format!(r#""format":{format}"#);
        let other = encoded[..encoded.len() - TAIL].replace(r#""format":2"#, &own).into_bytes();
        [other.as_slice(), &tail(crc32fast::hash(&other))].concat()
    }
}
