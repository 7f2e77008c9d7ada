//! Numbering of buckets by their parent bucket and the code of their key.

use rustc_hash::FxHashMap;
use sparrow_runtime::work::{self, Stopped};

/// Marks a table entry without a bucket.
const NONE: u32 = u32::MAX;
/// Largest number of entries of the table; beyond that, a map is used.
const MOST_ENTRIES: usize = 1 << 22;

/// Bytes of an entry of the map, with its share of empty places and control bytes.
const MAP_ENTRY: usize = 32;
/// Bytes that each numbered pair takes: the pair itself, and the counter of the bucket in `collect.rs`.
const OWNER: usize = size_of::<(u32, u64)>() + size_of::<u64>();

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
    ///
    /// # Errors
    /// When there is no memory for one more.
    pub fn get(&mut self, parent: u32, code: u64) -> Result<u32, Stopped> {
        if let Some((width, table)) = &mut self.table {
            let place = parent as usize * *width + code as usize;
            if place >= table.len() {
                if place >= MOST_ENTRIES {
                    self.leave_table()?;
                    return self.get(parent, code);
                }
                table.resize((parent as usize + 1) * *width, NONE);
            }
            let number = &mut table[place];
            if *number == NONE {
                *number = numbered(&mut self.owners, (parent, code))?;
            }
            return Ok(*number);
        }
        let pair = (parent, code);
        if let Some((known, number)) = self.last
            && known == pair
        {
            return Ok(number);
        }
        let number = match self.map.get(&pair) {
            Some(number) => *number,
            None => {
                let number = numbered(&mut self.owners, pair)?;
                room_to_grow(self.map.len(), 1, self.map.capacity(), MAP_ENTRY)?;
                self.map.insert(pair, number);
                number
            }
        };
        self.last = Some((pair, number));
        Ok(number)
    }

    /// Parent and code of each bucket, without what finds them.
    pub fn into_owners(self) -> Vec<(u32, u64)> {
        self.owners
    }

    fn leave_table(&mut self) -> Result<(), Stopped> {
        work::room_for(self.owners.len() * MAP_ENTRY)?;
        self.table = None;
        self.map = self.owners.iter().enumerate().map(|(number, &pair)| (pair, number as u32)).collect();
        Ok(())
    }
}

/// Fails if there is no room for `more` entries of so many bytes. What is full grows to twice its size, which may be hundreds of
/// megabytes at once.
pub fn room_to_grow(len: usize, more: usize, capacity: usize, entry: usize) -> Result<(), Stopped> {
    if len + more > capacity { work::room_for(2 * capacity * entry) } else { Ok(()) }
}

/// Numbers a new pair.
fn numbered(owners: &mut Vec<(u32, u64)>, pair: (u32, u64)) -> Result<u32, Stopped> {
    room_to_grow(owners.len(), 1, owners.capacity(), OWNER)?;
    owners.push(pair);
    Ok(owners.len() as u32 - 1)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use sparrow_runtime::work::{self, Memory, Work};

    use super::{MOST_ENTRIES, Slots, room_to_grow};

    #[test]
    fn only_what_is_full_asks_for_room_to_grow() {
        let memory = Arc::new(Memory::new(usize::MAX, 1 << 20));
        let _entered = work::enter(Some(Work::new(Arc::default(), memory, "<test>")));
        assert_eq!(room_to_grow(99, 1, 100, 1 << 20), Ok(()));
        assert_eq!(room_to_grow(100, 1, 100, 1 << 10), Ok(()));
        assert!(room_to_grow(100, 1, 100, 1 << 20).is_err());
    }

    #[test]
    fn pairs_are_numbered_in_the_order_of_first_use_with_a_table_and_beyond_it() {
        let mut slots = Slots::new(Some(10));
        let far = (MOST_ENTRIES / 10) as u32 + 1;
        let pairs = [(0, 3), (5, 9), (0, 3), (far, 1), (0, 3), (far, 1), (5, 9), (far, 2)];
        let numbers: Vec<u32> =
            pairs.iter().map(|&(parent, code)| slots.get(parent, code).unwrap()).collect();
        assert_eq!(numbers, [0, 1, 0, 2, 0, 2, 1, 3]);
        assert_eq!(slots.owners, [(0, 3), (5, 9), (far, 1), (far, 2)]);
    }
}
