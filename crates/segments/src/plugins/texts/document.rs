//! One text of a document, inverted: every term once, with its positions.

use std::hash::{BuildHasher, Hasher};
use std::sync::LazyLock;

use foldhash::fast::RandomState;
use tantivy::schema::IndexRecordOption;
use tantivy::tokenizer::MAX_TOKEN_LEN;

use super::write_vint;

/// Seeds of the hashes of terms, the same for all texts, as a segment finds a term by its hash. They are unknown to clients that send documents,
/// so nobody can choose terms that collide.
static HASHER: LazyLock<RandomState> = LazyLock::new(RandomState::default);

/// Most memory that the terms of a document's texts may take, in bytes: of the distinct terms, of what is known of each, and of the
/// positions of all. An analyzer can make gigabytes of terms of a few kilobytes, and a segment takes the terms of a document as a whole.
pub const MAX_TERM_BYTES: usize = 512 << 20;

/// Most bytes and slots that are kept for the next text.
const KEPT_BYTES: usize = 1 << 20;
const KEPT_SLOTS: usize = 1 << 12;

/// Collects the terms of one field of one document, and encodes them. Can be used again after that.
#[derive(Default)]
pub struct TextInverter {
    /// The distinct terms, one behind the other.
    bytes: Vec<u8>,
    terms: Vec<Term>,
    /// For each token the number of its term, and its position.
    tokens: Vec<(u32, u32)>,
    /// Open addressing: one more than the number of a term, or 0.
    slots: Vec<u32>,
    /// Positions of all tokens, term by term.
    positions: Vec<u32>,
    /// Where the next position of each term goes.
    next: Vec<u32>,
    /// The record of a term.
    record: Vec<u8>,
    /// Bytes of terms that were too long.
    left_out: usize,
}

struct Term {
    hash: u32,
    start: u32,
    end: u32,
    count: u32,
}

impl TextInverter {
    /// Adds a token. Terms longer than tantivy's [`MAX_TOKEN_LEN`] bytes are left out, as tantivy leaves them out.
    ///
    /// Returns whether the token has been dealt with: it is left out too, and all after it should be, when the terms would take more than
    /// `limit` bytes.
    pub fn push(&mut self, term: &str, position: u32, limit: usize) -> bool {
        let term = term.as_bytes();
        if term.len() > MAX_TOKEN_LEN {
            // It takes no memory, but an analyzer has made it.
            self.left_out += term.len();
            return self.left_out <= limit;
        }
        if self.size() + term.len() > limit {
            return false;
        }
        if self.slots.len() <= 2 * self.terms.len() {
            self.grow();
        }
        let mut hasher = HASHER.build_hasher();
        hasher.write(term);
        let hash = hasher.finish();
        let hash = (hash ^ hash >> 32) as u32;
        let number = self.number_of(term, hash);
        self.terms[number as usize].count += 1;
        self.tokens.push((number, position));
        true
    }

    /// Memory that the terms take, in bytes: at least as much as they take encoded.
    fn size(&self) -> usize {
        self.bytes.len() + self.terms.len() * size_of::<Term>() + self.tokens.len() * size_of::<(u32, u32)>()
    }

    fn number_of(&mut self, term: &[u8], hash: u32) -> u32 {
        let mask = self.slots.len() - 1;
        let mut slot = hash as usize & mask;
        while let Some(number) = self.slots[slot].checked_sub(1) {
            let found = &self.terms[number as usize];
            if found.hash == hash && self.bytes[found.start as usize..found.end as usize] == *term {
                return number;
            }
            slot = (slot + 1) & mask;
        }
        let start = self.bytes.len() as u32;
        self.bytes.extend_from_slice(term);
        self.terms.push(Term { hash, start, end: self.bytes.len() as u32, count: 0 });
        self.slots[slot] = self.terms.len() as u32;
        self.terms.len() as u32 - 1
    }

    fn grow(&mut self) {
        let len = (self.slots.len() * 2).max(256);
        self.slots.clear();
        self.slots.resize(len, 0);
        for (number, term) in self.terms.iter().enumerate() {
            let mut slot = term.hash as usize & (len - 1);
            while self.slots[slot] != 0 {
                slot = (slot + 1) & (len - 1);
            }
            self.slots[slot] = number as u32 + 1;
        }
    }

    /// Encodes the terms for the thread that writes a segment, with what the field records of them, and forgets them:
    ///
    /// | part | bytes |
    /// |---|---|
    /// | `t`, which tells the kind of value apart | 1 |
    /// | number of tokens | vint |
    /// | for each term: its hash | 4 |
    /// | its length, and itself | vint, and that many |
    /// | twice the length of its record, plus one if it has one token | vint |
    /// | its record: the number of tokens unless it is one, and each position less the one before it | vints |
    pub fn finish(&mut self, records: IndexRecordOption) -> Vec<u8> {
        self.group_positions();
        let mut out = Vec::with_capacity(8 + self.bytes.len() + 8 * self.terms.len() + 2 * self.tokens.len());
        out.push(b't');
        write_vint(self.tokens.len() as u32, &mut out);
        let mut from = 0;
        for term in &self.terms {
            let positions = &self.positions[from..from + term.count as usize];
            from += positions.len();
            out.extend_from_slice(&term.hash.to_le_bytes());
            write_vint(term.end - term.start, &mut out);
            out.extend_from_slice(&self.bytes[term.start as usize..term.end as usize]);
            match *positions {
                // Nearly all: one token, whose position takes a byte.
                [position @ ..0x80] if records.has_positions() => {
                    out.extend_from_slice(&[1 << 1 | 1, position as u8])
                }
                _ => write_record(positions, records, &mut self.record, &mut out),
            }
        }
        self.clear();
        out
    }

    /// Sorts the positions by term, without changing their order within one.
    fn group_positions(&mut self) {
        self.next.clear();
        let mut sum = 0;
        for term in &self.terms {
            self.next.push(sum);
            sum += term.count;
        }
        self.positions.clear();
        self.positions.resize(self.tokens.len(), 0);
        for &(term, position) in &self.tokens {
            let at = &mut self.next[term as usize];
            self.positions[*at as usize] = position;
            *at += 1;
        }
    }

    /// Forgets all terms, as also what a panic has left of another text.
    pub fn clear(&mut self) {
        if self.size() > KEPT_BYTES {
            *self = Self::default();
            return;
        }
        self.left_out = 0;
        self.bytes.clear();
        self.terms.clear();
        self.tokens.clear();
        if self.slots.len() > KEPT_SLOTS {
            self.slots = Vec::new();
        }
        self.slots.fill(0);
    }
}

/// Writes the record of a term with its header.
fn write_record(positions: &[u32], records: IndexRecordOption, record: &mut Vec<u8>, out: &mut Vec<u8>) {
    record.clear();
    let is_single = !records.has_freq() || positions.len() == 1;
    if !is_single {
        write_vint(positions.len() as u32, record);
    }
    if records.has_positions() {
        let mut last = 0;
        for &position in positions {
            // A filter may put a token before an earlier one; the sum is right all the same.
            write_vint(position.wrapping_sub(last), record);
            last = position;
        }
    }
    write_vint((record.len() as u32) << 1 | u32::from(is_single), out);
    out.extend_from_slice(record);
}
