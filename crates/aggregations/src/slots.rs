//! Numbering of buckets by their parent bucket and the code of their key.

use rustc_hash::FxHashMap;

/// Marks a table entry without a bucket.
const NONE: u32 = u32::MAX;
/// Largest number of entries of the table; beyond that, a map is used.
const MOST_ENTRIES: usize = 1 << 22;

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
