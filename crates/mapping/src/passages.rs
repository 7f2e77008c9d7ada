//! What travels and is stored behind a document's JSON: the passages that `semantic_text` fields were cut into, with the
//! vector of each, and the routing that the document was written with.
//!
//! So the log, a get by id, an update and a reindex have the passages without asking a model again, and the routing, which
//! no other part of the document holds:
//!
//! ```text
//! JSON [· payload · payload length u32 · 0] [· routing · routing length u32 · 1]
//! payload: version u8 (1) · fields u16 · field*
//! field: path · inference id · fingerprint · chunking (strings, u16 length) · sources u16 · path* · chunks u32 · chunk*
//! chunk: source u16 · start u32 · end u32 · kind u8 (1 sparse, 2 dense, 3 sparse and then dense) · vector (one or two)
//! vector: count u32 · values
//! ```
//!
//! Little endian. No JSON text ends with a byte of 0 or 1, so one look at the last byte tells what is there: a document
//! without `semantic_text` and routing is stored as it always was.

/// Version of the payload's layout, in its first byte.
const VERSION: u8 = 1;
const SPARSE: u8 = 1;
const DENSE: u8 = 2;
const HYBRID: u8 = 3;

/// Most passages of one document; a text that needs more is refused.
pub const MAX_PASSAGES: usize = 10_000;

/// The vector of a passage.
#[derive(Debug, Clone, PartialEq)]
pub enum PassageVector {
    /// Sparse vector: tokens with their weights.
    Sparse(Vec<(Box<str>, f32)>),
    /// Dense vector: one number per dimension.
    Dense(Vec<f32>),
    /// Both kinds of the same text.
    Hybrid { sparse: Vec<(Box<str>, f32)>, dense: Vec<f32> },
}

impl PassageVector {
    /// Tokens and weights of the passage's sparse vector, if it has one.
    pub fn sparse(&self) -> Option<&[(Box<str>, f32)]> {
        match self {
            Self::Sparse(tokens) | Self::Hybrid { sparse: tokens, .. } => Some(tokens),
            Self::Dense(_) => None,
        }
    }

    /// Components of the passage's dense vector, if it has one.
    pub fn dense(&self) -> Option<&[f32]> {
        match self {
            Self::Dense(vector) | Self::Hybrid { dense: vector, .. } => Some(vector),
            Self::Sparse(_) => None,
        }
    }
}

/// One passage: where its text is found, and its vector.
#[derive(Debug, Clone, PartialEq)]
pub struct Passage {
    /// Index in [`FieldPassages::sources`] of the field from which the text comes.
    pub source: u16,
    /// Byte offset at which the passage's text starts in that field's values, joined by single spaces; it ends before
    /// `end`.
    pub start: u32,
    pub end: u32,
    pub vector: PassageVector,
}

/// The passages of one `semantic_text` field.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FieldPassages {
    /// Name of the `semantic_text` field's slot: the field's path, or `path..number` for another slot than the first.
    pub path: String,
    pub inference_id: String,
    /// Fingerprint of the model, which differs between models whose vectors differ; empty if the model has none.
    pub fingerprint: String,
    /// The chunking settings by which the texts were cut, as a string that is equal for equal settings.
    pub chunking: String,
    /// Paths of the fields that the texts come from: the field itself, and those copied to it.
    pub sources: Vec<String>,
    /// The passages, in the order of the texts.
    pub chunks: Vec<Passage>,
}

/// Last byte of a stored document with passages behind its JSON.
const PASSAGES: u8 = 0;
/// Last byte of a stored document with a routing.
const ROUTING: u8 = 1;

/// A stored document, taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredParts<'a> {
    pub json: &'a [u8],
    /// The encoded passages, if there are any; see [`decode`].
    pub passages: Option<&'a [u8]>,
    pub routing: Option<&'a str>,
}

/// Takes a stored document apart.
pub fn split(stored: &[u8]) -> StoredParts<'_> {
    let (rest, routing) = without(stored, ROUTING);
    let (json, passages) = without(rest, PASSAGES);
    StoredParts { json, passages, routing: routing.and_then(|routing| std::str::from_utf8(routing).ok()) }
}

/// A stored document without the block at its end, and that block, if there is one with this marker.
fn without(stored: &[u8], marker: u8) -> (&[u8], Option<&[u8]>) {
    let Some((last, rest)) = stored.split_last() else { return (stored, None) };
    let Some((rest, length)) = rest.split_last_chunk::<4>().filter(|_| *last == marker) else {
        return (stored, None);
    };
    match rest.len().checked_sub(u32::from_le_bytes(*length) as usize) {
        Some(at) => (&rest[..at], Some(&rest[at..])),
        None => (stored, None),
    }
}

/// Appends to a document's JSON what is stored behind it: a payload of [`encode`], and a routing.
pub fn append(json: &mut Vec<u8>, passages: Option<&[u8]>, routing: Option<&str>) {
    let blocks = [(passages, PASSAGES), (routing.map(str::as_bytes), ROUTING)];
    for (block, marker) in blocks.into_iter().filter_map(|(block, marker)| Some((block?, marker))) {
        json.extend_from_slice(block);
        json.extend_from_slice(&(block.len() as u32).to_le_bytes());
        json.push(marker);
    }
}

/// Encodes the passages of all given fields as a payload.
pub fn encode(fields: &[FieldPassages]) -> Vec<u8> {
    let mut out = vec![VERSION];
    out.extend((fields.len() as u16).to_le_bytes());
    for field in fields {
        for text in [&field.path, &field.inference_id, &field.fingerprint, &field.chunking] {
            string(text, &mut out);
        }
        out.extend((field.sources.len() as u16).to_le_bytes());
        field.sources.iter().for_each(|source| string(source, &mut out));
        out.extend((field.chunks.len() as u32).to_le_bytes());
        for chunk in &field.chunks {
            out.extend(chunk.source.to_le_bytes());
            out.extend(chunk.start.to_le_bytes());
            out.extend(chunk.end.to_le_bytes());
            out.push(match &chunk.vector {
                PassageVector::Sparse(_) => SPARSE,
                PassageVector::Dense(_) => DENSE,
                PassageVector::Hybrid { .. } => HYBRID,
            });
            if let Some(tokens) = chunk.vector.sparse() {
                out.extend((tokens.len() as u32).to_le_bytes());
                for (token, weight) in tokens {
                    string(token, &mut out);
                    out.extend(weight.to_le_bytes());
                }
            }
            if let Some(vector) = chunk.vector.dense() {
                out.extend((vector.len() as u32).to_le_bytes());
                vector.iter().for_each(|component| out.extend(component.to_le_bytes()));
            }
        }
    }
    out
}

/// Reads what [`encode`] wrote; `None` when the bytes are damaged or of a newer version.
pub fn decode(payload: &[u8]) -> Option<Vec<FieldPassages>> {
    let mut input = Input(payload);
    if input.take::<1>()? != [VERSION] {
        return None;
    }
    let count = u16::from_le_bytes(input.take()?);
    let mut fields = Vec::new();
    for _ in 0..count {
        let mut field = FieldPassages {
            path: input.string()?.to_owned(),
            inference_id: input.string()?.to_owned(),
            fingerprint: input.string()?.to_owned(),
            chunking: input.string()?.to_owned(),
            ..FieldPassages::default()
        };
        for _ in 0..u16::from_le_bytes(input.take()?) {
            field.sources.push(input.string()?.to_owned());
        }
        for _ in 0..u32::from_le_bytes(input.take()?) {
            field.chunks.push(input.passage(field.sources.len())?);
        }
        fields.push(field);
    }
    input.0.is_empty().then_some(fields)
}

fn string(text: &str, out: &mut Vec<u8>) {
    // Paths, ids and tokens are far shorter; a longer one would be cut at a character.
    let mut end = text.len().min(u16::MAX as usize);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    out.extend((end as u16).to_le_bytes());
    out.extend_from_slice(&text.as_bytes()[..end]);
}

struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*taken)
    }

    fn string(&mut self) -> Option<&'a str> {
        let length = u16::from_le_bytes(self.take()?);
        let (text, rest) = self.0.split_at_checked(length as usize)?;
        self.0 = rest;
        std::str::from_utf8(text).ok()
    }

    fn passage(&mut self, sources: usize) -> Option<Passage> {
        let source = u16::from_le_bytes(self.take()?);
        let (start, end) = (u32::from_le_bytes(self.take()?), u32::from_le_bytes(self.take()?));
        if usize::from(source) >= sources || start > end {
            return None;
        }
        let [kind] = self.take::<1>()?;
        let vector = match kind {
            SPARSE => PassageVector::Sparse(self.tokens()?),
            DENSE => PassageVector::Dense(self.components()?),
            HYBRID => PassageVector::Hybrid { sparse: self.tokens()?, dense: self.components()? },
            _ => return None,
        };
        Some(Passage { source, start, end, vector })
    }

    fn tokens(&mut self) -> Option<Vec<(Box<str>, f32)>> {
        let count = u32::from_le_bytes(self.take()?) as usize;
        // A token takes at least six bytes.
        let mut tokens = Vec::with_capacity(count.min(self.0.len() / 6));
        for _ in 0..count {
            tokens.push((self.string()?.into(), f32::from_le_bytes(self.take()?)));
        }
        Some(tokens)
    }

    fn components(&mut self) -> Option<Vec<f32>> {
        let count = u32::from_le_bytes(self.take()?) as usize;
        let (components, rest) = self.0.split_at_checked(count.checked_mul(4)?)?;
        self.0 = rest;
        Some(components.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Vec<FieldPassages> {
        vec![
            FieldPassages {
                path: "körper".into(),
                inference_id: ".elser".into(),
                fingerprint: "f".into(),
                chunking: "{}".into(),
                sources: vec!["körper".into(), "title".into()],
                chunks: vec![
                    Passage {
                        source: 1,
                        start: 0,
                        end: 7,
                        vector: PassageVector::Sparse(vec![("über".into(), 0.5), ("a".into(), 1.0)]),
                    },
                    Passage { source: 0, start: 7, end: 9, vector: PassageVector::Sparse(Vec::new()) },
                ],
            },
            FieldPassages {
                sources: vec!["d".into()],
                chunks: vec![Passage {
                    source: 0,
                    start: 1,
                    end: 1,
                    vector: PassageVector::Dense(vec![1.0, -2.0]),
                }],
                ..FieldPassages::default()
            },
            FieldPassages {
                sources: vec!["h".into()],
                chunks: vec![Passage {
                    source: 0,
                    start: 0,
                    end: 3,
                    vector: PassageVector::Hybrid { sparse: vec![("a".into(), 2.0)], dense: vec![0.5, 3.0] },
                }],
                ..FieldPassages::default()
            },
        ]
    }

    #[test]
    fn passages_come_back_from_behind_the_json() {
        let mut stored = b"{\"a\": 1}\n".to_vec();
        assert_eq!(split(&stored), StoredParts { json: &stored, passages: None, routing: None });
        append(&mut stored, Some(&encode(&sample())), None);
        let parts = split(&stored);
        assert_eq!(parts.json, b"{\"a\": 1}\n");
        assert_eq!(decode(parts.passages.unwrap()), Some(sample()));
        for other in [&b""[..], &[9, 0, 0, 0, 0], &[9, 0, 0, 0, 1]] {
            assert_eq!(split(other), StoredParts { json: other, passages: None, routing: None });
        }
    }

    #[test]
    fn a_routing_comes_back_with_passages_and_without() {
        let payload = encode(&sample());
        for (json, passages) in [("{}", None), ("", None), ("{\"a\": [0, 1]}", Some(&payload[..]))] {
            let mut stored = json.as_bytes().to_vec();
            append(&mut stored, passages, Some("kühe"));
            assert_eq!(
                split(&stored),
                StoredParts { json: json.as_bytes(), passages, routing: Some("kühe") }
            );
        }
    }

    #[test]
    fn damaged_payloads_are_refused_and_never_panic() {
        let good = encode(&sample());
        for length in 0..good.len() {
            assert_eq!(decode(&good[..length]), None, "cut at {length}");
        }
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 0x55;
            let _ = decode(&bad);
        }
    }
}
