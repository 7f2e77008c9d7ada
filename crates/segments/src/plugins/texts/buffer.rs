//! The terms of all texts of a segment, with their postings, in memory.

use std::collections::BTreeMap;

use tantivy::DocId;
use tantivy::fieldnorm::FieldNormReader;

use super::read_vint;

/// Longest term that its entry holds itself; longer ones lie in pages.
const SHORT: usize = 32;
/// Size of a page, in bytes: more than the longest term and the longest chunk.
const PAGE: usize = 1 << 16;
/// Size of the first chunk of a list, in bytes. Each is twice as long as the one before it, up to the longest.
const FIRST_CHUNK: usize = 16;
/// Number of times that the length of a chunk doubles.
const DOUBLINGS: u8 = 8;
/// Bytes at the end of a chunk with the address of the next one.
const LINK: usize = 4;

/// Terms of all texts of the documents of one segment. Documents come in the order of their numbers.
///
/// A term has an entry of 64 bytes, a cache line, and a list of chunks with its postings; a table finds the entry. To add the terms of a
/// text takes three passes over them (the slots of the table, the entries, the ends of the lists), as the processor then waits for the
/// memory of many terms at once instead of for each in turn.
#[derive(Default)]
pub struct TermBuffer {
    /// Open addressing: the hash of a term above one more than the number of its entry, or 0.
    slots: Vec<u64>,
    entries: Vec<Entry>,
    pages: Pages,
    fields: BTreeMap<u32, TextLengths>,
    /// Terms of the text that is being added.
    read: Vec<ReadTerm>,
}

/// Lengths of the texts of a field, in tokens.
#[derive(Default)]
pub(super) struct TextLengths {
    /// Number of tokens of each document in the form of a field norm, up to the last document with a text.
    norms: Vec<u8>,
    /// Number of tokens of all documents.
    pub tokens: u64,
}

#[repr(align(64))]
struct Entry {
    hash: u32,
    field: u32,
    /// The document that was added last; 0 before the first.
    last_doc: DocId,
    num_docs: u32,
    /// Addresses of the first chunk, and of the next byte in the last.
    first: u32,
    next: u32,
    /// Free bytes in the last chunk.
    room: u16,
    key_len: u16,
    /// How often the length of the last chunk has doubled.
    doublings: u8,
    /// The term, or its address.
    key: [u8; SHORT],
}

/// A term of the text that is being added, as places in its bytes.
struct ReadTerm {
    hash: u32,
    key: (u32, u32),
    record: (u32, u32),
    is_single: bool,
    /// What the table has where the search for the term begins.
    slot: u64,
    entry: usize,
}

impl TermBuffer {
    /// Whether no term has been added.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Estimated memory, in bytes.
    pub fn mem_usage(&self) -> usize {
        self.slots.capacity() * size_of::<u64>()
            + self.entries.capacity() * size_of::<Entry>()
            + self.pages.pages.len() * PAGE
            + self.fields.values().map(|field| field.norms.capacity()).sum::<usize>()
    }

    /// Adds what [`super::TextInverter::finish`] made of a field of a document. A field has one such text a document.
    pub fn add(&mut self, field: u32, doc: DocId, text: &[u8]) {
        let mut rest = text;
        let num_tokens = read_vint(&mut rest);
        let lengths = self.fields.entry(field).or_default();
        lengths.norms.resize(doc as usize, 0);
        lengths.norms.push(FieldNormReader::fieldnorm_to_id(num_tokens));
        lengths.tokens += u64::from(num_tokens);

        // The hash of a term says nothing of its field, and titles share their words with texts.
        let of_field = field.wrapping_mul(0x9E37_79B9);
        let mut read = std::mem::take(&mut self.read);
        while let Some((hash, after)) = rest.split_first_chunk() {
            rest = after;
            let hash = u32::from_le_bytes(*hash).wrapping_add(of_field);
            let key = skip(&mut rest, text, |header| header);
            let mut is_single = false;
            let record = skip(&mut rest, text, |header| {
                is_single = header & 1 == 1;
                header >> 1
            });
            read.push(ReadTerm { hash, key, record, is_single, slot: 0, entry: 0 });
        }
        self.reserve(read.len());
        let mask = self.slots.len() - 1;
        for term in &mut read {
            term.slot = self.slots[term.hash as usize & mask];
        }
        for term in &mut read {
            let key = &text[term.key.0 as usize..term.key.1 as usize];
            term.entry = match entry_of(term.slot) {
                Some(entry) if self.is_entry_of(entry, term.hash, field, key) => entry,
                _ => self.find_or_insert(term.hash, field, key),
            };
        }
        for term in read.drain(..) {
            let entry = &mut self.entries[term.entry];
            let mut head = [0; 5];
            let head = vint((doc - entry.last_doc) << 1 | u32::from(term.is_single), &mut head);
            entry.last_doc = doc;
            entry.num_docs += 1;
            self.pages.append(entry, head);
            self.pages.append(entry, &text[term.record.0 as usize..term.record.1 as usize]);
        }
        self.read = read;
    }

    fn is_entry_of(&self, entry: usize, hash: u32, field: u32, key: &[u8]) -> bool {
        let entry = &self.entries[entry];
        entry.hash == hash && entry.field == field && self.pages.key(entry) == key
    }

    fn find_or_insert(&mut self, hash: u32, field: u32, key: &[u8]) -> usize {
        let mask = self.slots.len() - 1;
        let mut slot = hash as usize & mask;
        while let Some(entry) = entry_of(self.slots[slot]) {
            if (self.slots[slot] >> 32) as u32 == hash && self.is_entry_of(entry, hash, field, key) {
                return entry;
            }
            slot = (slot + 1) & mask;
        }
        let number = self.entries.len();
        self.slots[slot] = u64::from(hash) << 32 | (number as u64 + 1);
        let mut inline = [0; SHORT];
        match inline.get_mut(..key.len()) {
            Some(inline) => inline.copy_from_slice(key),
            None => inline[..LINK].copy_from_slice(&self.pages.store(key).to_le_bytes()),
        }
        let first = self.pages.take(FIRST_CHUNK);
        self.entries.push(Entry {
            hash,
            field,
            last_doc: 0,
            num_docs: 0,
            first,
            next: first,
            room: (FIRST_CHUNK - LINK) as u16,
            key_len: key.len() as u16,
            doublings: 0,
            key: inline,
        });
        number
    }

    /// Makes room for more terms, so that the table is at most half full.
    fn reserve(&mut self, more: usize) {
        let needed = ((self.entries.len() + more) * 2).next_power_of_two().max(1024);
        if needed <= self.slots.len() {
            return;
        }
        self.slots.clear();
        self.slots.resize(needed, 0);
        for (number, entry) in self.entries.iter().enumerate() {
            let mut slot = entry.hash as usize & (needed - 1);
            while self.slots[slot] != 0 {
                slot = (slot + 1) & (needed - 1);
            }
            self.slots[slot] = u64::from(entry.hash) << 32 | (number as u64 + 1);
        }
    }

    /// Lengths of the texts of a field; `None` if no document has one.
    pub(super) fn lengths(&self, field: u32) -> Option<&TextLengths> {
        self.fields.get(&field)
    }

    /// Numbers of the entries by field, in the order of their terms.
    pub(super) fn sorted(&self) -> BTreeMap<u32, Vec<u32>> {
        let mut keys: Vec<(u32, u64, u32)> = self
            .entries
            .iter()
            .enumerate()
            .map(|(number, entry)| {
                let key = self.pages.key(entry);
                let mut start = [0; 8];
                let len = key.len().min(8);
                start[..len].copy_from_slice(&key[..len]);
                (entry.field, u64::from_be_bytes(start), number as u32)
            })
            .collect();
        keys.sort_unstable_by(|a, b| {
            (a.0, a.1).cmp(&(b.0, b.1)).then_with(|| self.term(a.2).key.cmp(self.term(b.2).key))
        });
        let mut sorted: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for of_field in keys.chunk_by(|a, b| a.0 == b.0) {
            sorted.insert(of_field[0].0, of_field.iter().map(|(.., number)| *number).collect());
        }
        sorted
    }

    /// The term with that number.
    pub(super) fn term(&self, number: u32) -> BufferedTerm<'_> {
        let entry = &self.entries[number as usize];
        BufferedTerm { key: self.pages.key(entry), num_docs: entry.num_docs, entry, pages: &self.pages }
    }
}

impl TextLengths {
    /// Field norms of all documents of the segment.
    pub(super) fn norms(&self, max_doc: DocId) -> Vec<u8> {
        let mut norms = self.norms.clone();
        norms.resize(max_doc as usize, 0);
        norms
    }
}

/// A term of the segment with its postings.
pub(super) struct BufferedTerm<'a> {
    pub key: &'a [u8],
    pub num_docs: u32,
    entry: &'a Entry,
    pages: &'a Pages,
}

impl BufferedTerm<'_> {
    /// Copies the list of postings into `out`: for each document twice the distance to the one before it, plus one if the record of the
    /// document is of a single token, and that record.
    pub(super) fn read_postings(&self, out: &mut Vec<u8>) {
        out.clear();
        let mut chunk = self.entry.first;
        let mut doublings = 0;
        loop {
            let data = chunk_size(doublings) - LINK;
            let end = chunk + data as u32;
            if (chunk..=end).contains(&self.entry.next) {
                out.extend_from_slice(self.pages.bytes(chunk, (self.entry.next - chunk) as usize));
                return;
            }
            out.extend_from_slice(self.pages.bytes(chunk, data));
            chunk = u32::from_le_bytes(self.pages.bytes(end, LINK).try_into().expect("four bytes"));
            doublings = (doublings + 1).min(DOUBLINGS);
        }
    }
}

fn chunk_size(doublings: u8) -> usize {
    FIRST_CHUNK << doublings
}

/// Number of the entry that a slot of the table names.
fn entry_of(slot: u64) -> Option<usize> {
    (slot as u32).checked_sub(1).map(|number| number as usize)
}

/// Reads a length as `len_of` finds it in a vint, moves behind the bytes of that length, and returns where they lie in `text`.
fn skip(rest: &mut &[u8], text: &[u8], len_of: impl FnOnce(u32) -> u32) -> (u32, u32) {
    let len = len_of(read_vint(rest));
    let start = (text.len() - rest.len()) as u32;
    *rest = &rest[len as usize..];
    (start, start + len)
}

/// Writes a vint into `out`, and returns what was written.
fn vint(mut number: u32, out: &mut [u8; 5]) -> &[u8] {
    let mut len = 0;
    while number >= 0x80 {
        out[len] = number as u8 | 0x80;
        number >>= 7;
        len += 1;
    }
    out[len] = number as u8;
    &out[..=len]
}

/// Memory in pieces that never move. An address is the number of a page above the place in it.
#[derive(Default)]
struct Pages {
    pages: Vec<Box<[u8]>>,
    /// Used bytes of the last page.
    used: usize,
}

impl Pages {
    /// Address of `size` bytes, at most a page.
    fn take(&mut self, size: usize) -> u32 {
        if self.pages.is_empty() || self.used + size > PAGE {
            self.pages.push(vec![0; PAGE].into_boxed_slice());
            self.used = 0;
        }
        let page =
            u16::try_from(self.pages.len() - 1).expect("a segment is written before its buffer has 4 GiB");
        let address = u32::from(page) << 16 | self.used as u32;
        self.used += size;
        address
    }

    fn store(&mut self, bytes: &[u8]) -> u32 {
        let address = self.take(bytes.len());
        self.bytes_mut(address, bytes.len()).copy_from_slice(bytes);
        address
    }

    fn bytes(&self, address: u32, len: usize) -> &[u8] {
        let start = address as usize % PAGE;
        &self.pages[address as usize / PAGE][start..start + len]
    }

    fn bytes_mut(&mut self, address: u32, len: usize) -> &mut [u8] {
        let start = address as usize % PAGE;
        &mut self.pages[address as usize / PAGE][start..start + len]
    }

    /// The term of an entry.
    fn key<'a>(&'a self, entry: &'a Entry) -> &'a [u8] {
        let len = entry.key_len as usize;
        match entry.key.get(..len) {
            Some(key) => key,
            None => {
                let [a, b, c, d, ..] = entry.key;
                self.bytes(u32::from_le_bytes([a, b, c, d]), len)
            }
        }
    }

    /// Appends to the postings of a term.
    fn append(&mut self, entry: &mut Entry, mut bytes: &[u8]) {
        loop {
            let (now, later) = bytes.split_at(bytes.len().min(entry.room as usize));
            self.bytes_mut(entry.next, now.len()).copy_from_slice(now);
            entry.next += now.len() as u32;
            entry.room -= now.len() as u16;
            if later.is_empty() {
                return;
            }
            bytes = later;
            entry.doublings = (entry.doublings + 1).min(DOUBLINGS);
            let size = chunk_size(entry.doublings);
            let chunk = self.take(size);
            self.bytes_mut(entry.next, LINK).copy_from_slice(&chunk.to_le_bytes());
            entry.next = chunk;
            entry.room = (size - LINK) as u16;
        }
    }
}
