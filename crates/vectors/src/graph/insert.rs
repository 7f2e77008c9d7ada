//! Inserts vectors into a graph one after another: HNSW by Malkov and Yashunin.

use std::iter;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use super::beam::{Beam, Seen, Visited};
use super::copies::Copies;
use super::format::{GraphOptions, neighbour_bits, pack_neighbours};
use super::packed::Packed;

/// Factor on `ef_construction`. Better graphs find more neighbours at the same search width; a merge pays for
/// that once, searches profit always. Recall measured: see `docs/design/vectors/hnsw.md`.
const THOROUGHNESS: usize = 2;

/// Most candidates that [`THOROUGHNESS`] leads to. Who asks for more has decided to pay for them.
const MAX_THOROUGH: usize = 400;

/// Chosen neighbours that are compared with a candidate at a time, before checking whether one is nearer to
/// it.
const COMPARED: usize = 4;

/// Neighbour lists of a level, all with the same capacity: the length of each, then the neighbours.
struct Lists {
    stride: usize,
    numbers: Vec<u32>,
}

impl Lists {
    fn new(most: usize, count: usize) -> Self {
        Self { stride: most + 1, numbers: vec![0; (most + 1) * count] }
    }

    fn most(&self) -> usize {
        self.stride - 1
    }

    fn get(&self, at: usize) -> &[u32] {
        let list = &self.numbers[at * self.stride..(at + 1) * self.stride];
        &list[1..=list[0] as usize]
    }

    /// Number of neighbours in the first `count` lists together.
    fn neighbours(&self, count: usize) -> usize {
        (0..count).map(|at| self.get(at).len()).sum()
    }

    fn set(&mut self, at: usize, neighbours: impl Iterator<Item = u32>) {
        let list = &mut self.numbers[at * self.stride..(at + 1) * self.stride];
        let (count, list) = list.split_at_mut(1);
        count[0] = 0;
        for (place, number) in list.iter_mut().zip(neighbours) {
            *place = number;
            count[0] += 1;
        }
    }

    fn push(&mut self, at: usize, number: u32) -> bool {
        let list = &mut self.numbers[at * self.stride..(at + 1) * self.stride];
        let count = list[0] as usize;
        let room = count + 1 < list.len();
        if room {
            list[count + 1] = number;
            list[0] += 1;
        }
        room
    }

    /// Appends a neighbour to a list; to a full one in place of the last.
    fn push_or_replace(&mut self, at: usize, number: u32) {
        if !self.push(at, number) {
            self.numbers[(at + 1) * self.stride - 1] = number;
        }
    }

    fn grow(&mut self) {
        self.numbers.resize(self.numbers.len() + self.stride, 0);
    }
}

/// A level above 0: its vectors, in ascending order, and their neighbours.
struct Upper {
    nodes: Vec<u32>,
    lists: Lists,
}

impl Upper {
    /// Index of a vector's list; `None` if it is not on the level.
    fn place(&self, vector: u32) -> Option<usize> {
        self.nodes.binary_search(&vector).ok()
    }
}

/// A graph in memory: neighbours per level, and the vector where searches start.
pub(super) struct Graph {
    lowest: Lists,
    upper: Vec<Upper>,
    entry: u32,
}

impl Graph {
    pub(super) fn levels(&self) -> usize {
        self.upper.len() + 1
    }

    pub(super) fn entry(&self) -> u32 {
        self.entry
    }

    fn list(&self, level: usize, vector: u32) -> &[u32] {
        match level.checked_sub(1).map(|above| &self.upper[above]) {
            None => self.lowest.get(vector as usize),
            Some(upper) => upper.place(vector).map_or(&[], |place| upper.lists.get(place)),
        }
    }

    /// Neighbour lists of a level, and the index of a vector's list among them; `None` if it is not on the level.
    fn lists_mut(&mut self, level: usize, vector: u32) -> Option<(&mut Lists, usize)> {
        match level.checked_sub(1).map(|above| &mut self.upper[above]) {
            None => Some((&mut self.lowest, vector as usize)),
            Some(upper) => {
                let place = upper.place(vector)?;
                Some((&mut upper.lists, place))
            }
        }
    }

    /// The graph encoded as the body of a block.
    pub(super) fn body(&self) -> Vec<u8> {
        let levels = || {
            let lowest = (&self.lowest, self.lowest.numbers.len() / self.lowest.stride, &[][..]);
            let upper = self.upper.iter().map(|upper| (&upper.lists, upper.nodes.len(), &upper.nodes[..]));
            iter::once(lowest).chain(upper)
        };
        let bits = neighbour_bits(self.lowest.numbers.len() / self.lowest.stride);
        // In one piece that is large enough, as this is nearly as large as the lists are.
        let bytes = |(lists, count, nodes): (&Lists, usize, &[u32])| {
            (2 + nodes.len() + count) * size_of::<u32>() + lists.neighbours(count) * bits as usize / 8 + 4
        };
        let mut body = Vec::with_capacity(levels().map(bytes).sum());
        for (level, (lists, count, nodes)) in levels().enumerate() {
            if level > 0 {
                body.extend((count as u32).to_le_bytes());
                body.extend(nodes.iter().flat_map(|number| number.to_le_bytes()));
            }
            let mut end = 0_u32;
            body.extend(end.to_le_bytes());
            for at in 0..count {
                end += lists.get(at).len() as u32;
                body.extend(end.to_le_bytes());
            }
            let neighbours = (0..count).flat_map(|at| lists.get(at)).copied();
            pack_neighbours(neighbours, bits, &mut body);
        }
        body
    }
}

/// Bytes of a vector's list of neighbours on the lowest level, full or not.
pub(super) fn lowest_list_bytes(options: GraphOptions) -> usize {
    (usize::from(options.m) * 2 + 1) * size_of::<u32>()
}

/// Number of candidates from which the neighbours of a new vector are chosen.
fn candidates(options: GraphOptions) -> usize {
    let asked = usize::from(options.ef_construction);
    asked.max((asked * THOROUGHNESS).min(MAX_THOROUGH))
}

/// A graph under construction.
pub(super) struct Inserter<'a> {
    vectors: &'a Packed,
    /// When set, insertions end early and the graph is not to be used.
    cancel: &'a AtomicBool,
    copies: Copies,
    options: GraphOptions,
    graph: Graph,
    beam: Beam,
    visited: Visited,
    new: Vec<u32>,
    near: Vec<f32>,
}

impl<'a> Inserter<'a> {
    pub(super) fn new(vectors: &'a Packed, options: GraphOptions, cancel: &'a AtomicBool) -> Self {
        let lowest = Lists::new(usize::from(options.m) * 2, vectors.len());
        Self {
            vectors,
            cancel,
            copies: Copies::among(vectors),
            options,
            graph: Graph { lowest, upper: Vec::new(), entry: 0 },
            beam: Beam::default(),
            visited: Visited::default(),
            new: Vec::new(),
            near: Vec::new(),
        }
    }

    pub(super) fn finish(mut self) -> Graph {
        let lowest = &mut self.graph.lowest;
        for (vector, copies) in self.copies.groups() {
            lowest.push_or_replace(vector as usize, copies[0]);
            // A tree in which each copy leads to later ones only: a walk comes to all of them in a few steps,
            // and to the first ones first.
            for (at, copy) in copies.iter().enumerate().skip(1) {
                lowest.push(copies[(at - 1) / lowest.most()] as usize, *copy);
            }
        }
        self.graph
    }

    /// Inserts the next vector; `vector` must be the previous number plus one.
    pub(super) fn insert(&mut self, vector: u32) {
        if self.copies.contains(vector) {
            return;
        }
        let level = level_of(vector, self.options.m);
        let top = self.graph.upper.len();
        for upper in self.graph.upper.iter_mut().take(level) {
            upper.nodes.push(vector);
            upper.lists.grow();
        }
        if vector > 0 {
            let mut start = self.graph.entry;
            for above in (level + 1..=top).rev() {
                self.search(vector, start, above, 1);
                start = self.beam.best().first().map_or(start, |seen| seen.vector());
            }
            for level in (0..=level.min(top)).rev() {
                self.search(vector, start, level, candidates(self.options));
                start = self.beam.best().first().map_or(start, |seen| seen.vector());
                self.link(vector, level);
            }
        }
        while self.graph.upper.len() < level {
            let lists = Lists::new(usize::from(self.options.m), 1);
            self.graph.upper.push(Upper { nodes: vec![vector], lists });
            self.graph.entry = vector;
        }
    }

    /// Fills the beam with the vectors on a level that are nearest to `vector`, starting from `start`.
    fn search(&mut self, vector: u32, start: u32, level: usize, width: usize) {
        let vectors = self.vectors;
        self.near.resize(1, 0.0);
        vectors.near(vector, &[start], &mut self.near);
        self.beam.clear(width);
        self.visited.clear(vectors.len());
        self.visited.visit(start);
        self.visited.visit(vector);
        self.beam.offer(Seen::new(self.near[0], start));
        while let Some(from) = self.beam.expand() {
            self.new.clear();
            let list = self.graph.list(level, from.vector());
            self.new.extend(list.iter().copied().filter(|number| self.visited.visit(*number)));
            self.near.resize(self.new.len(), 0.0);
            vectors.near(vector, &self.new, &mut self.near);
            for (number, near) in self.new.iter().zip(&self.near) {
                self.beam.offer(Seen::new(*near, *number));
            }
        }
    }

    /// Chooses neighbours of a vector from the beam, and links them in both directions.
    fn link(&mut self, vector: u32, level: usize) {
        let chosen = choose(self.vectors, self.beam.best(), usize::from(self.options.m));
        let Some((lists, place)) = self.graph.lists_mut(level, vector) else { return };
        lists.set(place, chosen.iter().map(|seen| seen.vector()));
        for other in chosen.iter().map(|seen| seen.vector()) {
            // With a large m, choosing anew for all of them takes seconds.
            if self.cancel.load(Relaxed) {
                return;
            }
            let Some((lists, place)) = self.graph.lists_mut(level, other) else { continue };
            if lists.push(place, vector) {
                continue;
            }
            let most = lists.most();
            self.new.clear();
            self.new.extend(lists.get(place));
            self.new.push(vector);
            self.near.resize(self.new.len(), 0.0);
            self.vectors.near(other, &self.new, &mut self.near);
            let mut all: Vec<Seen> =
                self.new.iter().zip(&self.near).map(|(number, near)| Seen::new(*near, *number)).collect();
            all.sort_unstable_by(|a, b| b.cmp(a));
            let kept = choose(self.vectors, &all, most);
            lists.set(place, kept.iter().map(|seen| seen.vector()));
        }
    }
}

/// Chooses neighbours in different directions: of the candidates, nearest first, those that are not nearer to
/// a chosen one than to the vector itself.
fn choose(vectors: &Packed, candidates: &[Seen], most: usize) -> Vec<Seen> {
    if candidates.len() < most {
        return candidates.to_vec();
    }
    let (mut chosen, mut numbers) = (Vec::with_capacity(most), Vec::with_capacity(most));
    let mut near = [0.0; COMPARED];
    for candidate in candidates {
        if chosen.len() == most {
            break;
        }
        let hidden = numbers.chunks(COMPARED).any(|numbers| {
            vectors.near(candidate.vector(), numbers, &mut near);
            near[..numbers.len()].iter().any(|near| *near > candidate.nearness())
        });
        if !hidden {
            chosen.push(*candidate);
            numbers.push(candidate.vector());
        }
    }
    chosen
}

/// Highest level of a vector, drawn pseudo-randomly from its number; each further level has the probability 1
/// / m.
fn level_of(vector: u32, m: u16) -> usize {
    // SplitMix64.
    let mut state = u64::from(vector).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    state = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    state = (state ^ state >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    state ^= state >> 31;
    let uniform = ((state >> 11) + 1) as f64 / (1_u64 << 53) as f64;
    (-uniform.ln() / f64::from(m.max(2)).ln()) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vector_that_is_not_on_a_level_has_no_neighbours_there() {
        let mut upper = Upper { nodes: vec![2, 5], lists: Lists::new(3, 2) };
        upper.lists.push(0, 5);
        upper.lists.push(1, 2);
        let mut graph = Graph { lowest: Lists::new(6, 8), upper: vec![upper], entry: 5 };
        assert_eq!([2, 3, 5].map(|vector| graph.list(1, vector)), [&[5][..], &[], &[2]]);
        assert!(graph.lists_mut(1, 3).is_none());
    }
}
