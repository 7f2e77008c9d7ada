//! Numbering of buckets by their parent bucket and the code of their key.

use rustc_hash::FxHashMap;

/// Marks a table entry without a bucket.
const NONE: u32 = u32::MAX;
/// Largest number of entries of the table; beyond that, a map is used.
const MOST_ENTRIES: usize = 1 << 22;

/// Bytes of an entry of the map, with its share of empty places and control bytes.
const MAP_ENTRY: usize = 32;

/// Assigns a number to each pair of parent bucket and code, from 0 in the order of first use.
pub struct Slots {
    /// The width of the table, which all codes are below, and the bucket numbers at `parent * width + code`.
    table: Option<(usize, Vec<u32>)>,
    map: FxHashMap<(u32, u64), u32>,
    last: Option<((u32, u64), u32)>,
    /// Parent and code of each bucket, by its number.
    pub owners: Vec<(u32, u64)>,
}

impl Slots {
    /// An empty numbering. `width` is an exclusive upper bound of the codes, if one is known.
    pub fn new(width: Option<usize>) -> Self {
        let table =
            width.filter(|&width| (1..=MOST_ENTRIES).contains(&width)).map(|width| (width, Vec::new()));
        Self { table, map: FxHashMap::default(), last: None, owners: Vec::new() }
    }

    /// Bytes that are allocated at once if so many pairs are new: lists and maps grow to twice their size.
    pub fn growth(&self, pairs: usize) -> usize {
        let grown = |len: usize, capacity: usize, entry: usize| {
            let wanted = len + pairs;
            if wanted > capacity { wanted.max(capacity * 2) * entry } else { 0 }
        };
        let fits_table = self.table.is_some() && self.owners.len() + pairs <= MOST_ENTRIES;
        let map = if fits_table { 0 } else { grown(self.map.len(), self.map.capacity(), MAP_ENTRY) };
        map + grown(self.owners.len(), self.owners.capacity(), size_of::<(u32, u64)>())
    }

    /// The number of the bucket for a pair, assigned if the pair is new.
    pub fn get(&mut self, parent: u32, code: u64) -> u32 {
        if let Some((width, table)) = &mut self.table {
            let place = parent as usize * *width + code as usize;
            if place >= table.len() {
                if place >= MOST_ENTRIES {
                    self.leave_table();
                    return self.get(parent, code);
                }
                table.resize((parent as usize + 1) * *width, NONE);
            }
            let number = &mut table[place];
            if *number == NONE {
                *number = self.owners.len() as u32;
                self.owners.push((parent, code));
            }
            return *number;
        }
        let pair = (parent, code);
        if let Some((known, number)) = self.last
            && known == pair
        {
            return number;
        }
        let next = self.owners.len() as u32;
        let number = *self.map.entry(pair).or_insert(next);
        if number == next {
            self.owners.push(pair);
        }
        self.last = Some((pair, number));
        number
    }

    fn leave_table(&mut self) {
        self.table = None;
        self.map = self.owners.iter().enumerate().map(|(number, &pair)| (pair, number as u32)).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::{MOST_ENTRIES, Slots};

    #[test]
    fn growth_is_what_the_next_pairs_make_the_lists_grow_by() {
        let mut slots = Slots::new(None);
        assert!(slots.growth(1000) >= 1000 * 16);
        for code in 0..1000 {
            slots.get(0, code);
        }
        assert_eq!(slots.growth(0), 0, "there is room for what is there");
        let (owners, map) = (slots.owners.capacity(), slots.map.capacity());
        assert!(slots.growth(owners.max(map)) >= 2 * (owners * 16).max(map * 16));
        // A table has its numbers in itself, as long as there is one.
        let mut table = Slots::new(Some(10));
        table.get(0, 3);
        assert!(table.growth(1000) < slots.growth(MOST_ENTRIES));
        assert!(table.growth(MOST_ENTRIES + 1) > MOST_ENTRIES * 32);
    }
}
