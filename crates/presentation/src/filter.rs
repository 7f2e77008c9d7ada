//! Applies `filter_path`: which parts of an answer are kept.
//!
//! Comma-separated dot paths, with `*` inside a name, `**` for any depth and a leading `-` to leave something
//! out. Arrays are looked through, and containers that become empty vanish. All paths are matched at once, as
//! a set of positions in them. The set that a name leads to is cached, because answers repeat their names.

use std::rc::Rc;

use rustc_hash::FxHashMap;
use sparrow_runtime::work;

use super::Problem;
use super::scan::{Malformed, SIGNS, Scanner, Token, unescaped};

/// Matching steps that a request may take: this many, plus [`STEPS_PER_BYTE`] per byte of the answer.
/// Patterns come from clients, and can be made to take any amount of work.
const STEPS: usize = 50_000_000;
const STEPS_PER_BYTE: usize = 64;

/// Most cached transitions from a set of positions by a name.
const REMEMBERED: usize = 10_000;
/// Longest name whose transitions are cached, in bytes.
const REMEMBERED_NAME: usize = 128;

/// Removes from a JSON answer what `filter` does not select, and all whitespace between tokens.
pub(super) fn filtered(bytes: &[u8], filter: &str) -> Result<Vec<u8>, Problem> {
    let paths: Vec<&str> = filter.split(',').map(trimmed).filter(|path| !path.is_empty()).collect();
    let excluded = paths.iter().filter_map(|path| path.strip_prefix('-'));
    let included = paths.iter().filter(|path| !path.starts_with('-')).copied();
    let mut steps = Steps { left: STEPS.saturating_add(bytes.len().saturating_mul(STEPS_PER_BYTE)) };
    let mut included = Paths::new(included);
    let mut excluded = Paths::new(excluded);
    let state = State { kept: included.start(), dropped: excluded.start() };
    let mut out = Vec::new();
    let mut scanner = Scanner::new(bytes);
    let mut frames: Vec<Frame> = Vec::new();
    let mut next = Some(state);
    let mut mark = 0;
    while let Some(token) = scanner.next()? {
        work::grow(&mut out, token.len() + SIGNS)?;
        match token {
            Token::Key(key) => {
                let Some(frame) = frames.last() else { return Err(Malformed.into()) };
                let name = unescaped(key);
                next = frame.state.behind(&name, &mut included, &mut excluded, &mut steps)?;
                if next.is_none() {
                    scanner.skip()?;
                    continue;
                }
                mark = out.len();
                if frame.entries > 0 {
                    out.push(b',');
                }
                out.extend_from_slice(key);
                out.push(b':');
            }
            Token::Scalar(text) => {
                let state = value_state(&frames, &mut next, &mut mark, &mut out);
                if state.kept.is_none() {
                    out.extend_from_slice(text);
                    entered(&mut frames);
                } else {
                    out.truncate(mark);
                }
            }
            Token::ObjectStart | Token::ArrayStart => {
                let state = value_state(&frames, &mut next, &mut mark, &mut out);
                let object = token == Token::ObjectStart;
                out.push(if object { b'{' } else { b'[' });
                if state.keeps_all() {
                    copy_rest(&mut scanner, object, &mut out)?;
                    entered(&mut frames);
                } else {
                    frames.push(Frame { state, mark, entries: 0 });
                }
            }
            Token::ObjectEnd | Token::ArrayEnd => {
                let Some(frame) = frames.pop() else { return Err(Malformed.into()) };
                if frame.entries == 0 {
                    out.truncate(frame.mark);
                } else {
                    out.push(if token == Token::ObjectEnd { b'}' } else { b']' });
                    entered(&mut frames);
                }
            }
        }
    }
    if out.is_empty() {
        out.extend_from_slice(b"{}");
    }
    Ok(out)
}

/// An open object or array that is only partly kept.
struct Frame {
    state: State,
    /// Length of the output before the container and its key, in bytes.
    mark: usize,
    /// Number of values kept so far.
    entries: usize,
}

fn entered(frames: &mut [Frame]) {
    if let Some(frame) = frames.last_mut() {
        frame.entries += 1;
    }
}

/// Filter state of the next value: the one its key led to, or that of the array it is in.
fn value_state(frames: &[Frame], next: &mut Option<State>, mark: &mut usize, out: &mut Vec<u8>) -> State {
    if let Some(state) = next.take() {
        return state;
    }
    *mark = out.len();
    match frames.last() {
        Some(frame) => {
            if frame.entries > 0 {
                out.push(b',');
            }
            frame.state.clone()
        }
        None => State { kept: None, dropped: None },
    }
}

/// Copies the rest of a container after its opening bracket, without whitespace.
fn copy_rest(scanner: &mut Scanner<'_>, object: bool, out: &mut Vec<u8>) -> Result<(), Problem> {
    let mut open = vec![object];
    // Whether a comma goes before the next key or item.
    let mut follows = false;
    while let Some(&in_object) = open.last() {
        let token = scanner.next()?.ok_or(Malformed)?;
        work::grow(out, token.len() + SIGNS)?;
        let ends = matches!(token, Token::ObjectEnd | Token::ArrayEnd);
        if follows && !ends && (!in_object || matches!(token, Token::Key(_))) {
            out.push(b',');
        }
        follows = true;
        match token {
            Token::Key(key) => {
                out.extend_from_slice(key);
                out.push(b':');
            }
            Token::Scalar(text) => out.extend_from_slice(text),
            Token::ObjectStart | Token::ArrayStart => {
                let object = token == Token::ObjectStart;
                out.push(if object { b'{' } else { b'[' });
                open.push(object);
                follows = false;
            }
            Token::ObjectEnd | Token::ArrayEnd => {
                out.push(if token == Token::ObjectEnd { b'}' } else { b']' });
                open.pop();
            }
        }
    }
    Ok(())
}

/// Number of matching steps left.
struct Steps {
    left: usize,
}

impl Steps {
    fn spend(&mut self, steps: usize) -> Result<(), Problem> {
        self.left = self.left.checked_sub(steps).ok_or(Problem::TooMuchWork)?;
        Ok(())
    }
}

/// Filter state of a value: the positions that the path to it has reached.
#[derive(Clone)]
struct State {
    /// Positions in the paths to keep; `None` when all of the value is kept.
    kept: Option<Rc<PositionSet>>,
    /// Positions in the paths to leave out; `None` when none of them leads here.
    dropped: Option<Rc<PositionSet>>,
}

impl State {
    fn keeps_all(&self) -> bool {
        self.kept.is_none() && self.dropped.is_none()
    }

    /// State of the member `name` of the value; `None` if it is left out.
    fn behind(
        &self,
        name: &[u8],
        included: &mut Paths,
        excluded: &mut Paths,
        steps: &mut Steps,
    ) -> Result<Option<State>, Problem> {
        let kept = match &self.kept {
            None => None,
            Some(places) => match included.advance(places, name, steps)? {
                Way::Ends => None,
                Way::Nowhere => return Ok(None),
                Way::To(places) => Some(places),
            },
        };
        let dropped = match &self.dropped {
            None => None,
            Some(places) => match excluded.advance(places, name, steps)? {
                Way::Ends => return Ok(None),
                Way::Nowhere => None,
                Way::To(places) => Some(places),
            },
        };
        Ok(Some(State { kept, dropped }))
    }
}

/// A set of positions in paths, ascending.
struct PositionSet {
    places: Vec<u32>,
    /// Number of the set in the cache of transitions; `None` if its transitions are not cached.
    known: Option<u32>,
}

/// Result of following a name from a set of positions.
#[derive(Clone)]
enum Way {
    /// A path ends here: all below matches.
    Ends,
    /// No path matches.
    Nowhere,
    To(Rc<PositionSet>),
}

/// One element of a path.
enum Name {
    /// `**`: any number of names.
    Anything,
    /// A name in which `*` stands for any characters.
    Glob(Vec<u8>),
    /// Marks the end of a path.
    End,
}

/// Dot paths, stored one after another in `names`; an index into it is a position.
struct Paths {
    names: Vec<Name>,
    starts: Vec<u32>,
    known: FxHashMap<Vec<u32>, Rc<PositionSet>>,
    ways: FxHashMap<(u32, Box<[u8]>), Way>,
    /// Per position, the last round in which it was reached; `followed` is the same for runs of `**` followed
    /// from it.
    reached: Vec<u32>,
    followed: Vec<u32>,
    round: u32,
}

impl Paths {
    fn new<'a>(paths: impl Iterator<Item = &'a str>) -> Self {
        let mut names = Vec::new();
        let mut starts = Vec::new();
        for path in paths {
            starts.push(names.len() as u32);
            names.extend(segments(path).into_iter().map(|name| match name.as_slice() {
                b"**" => Name::Anything,
                _ => Name::Glob(name),
            }));
            names.push(Name::End);
        }
        let places = names.len();
        Self {
            names,
            starts,
            known: FxHashMap::default(),
            ways: FxHashMap::default(),
            reached: vec![0; places],
            followed: vec![0; places],
            round: 0,
        }
    }

    /// Start positions of all paths; `None` if there are no paths.
    fn start(&mut self) -> Option<Rc<PositionSet>> {
        (!self.starts.is_empty()).then(|| self.set(self.starts.clone()))
    }

    fn set(&mut self, places: Vec<u32>) -> Rc<PositionSet> {
        if let Some(known) = self.known.get(&places) {
            return Rc::clone(known);
        }
        let room = self.known.len() < REMEMBERED / 10;
        let number = room.then_some(self.known.len() as u32);
        let set = Rc::new(PositionSet { places: places.clone(), known: number });
        if room {
            self.known.insert(places, Rc::clone(&set));
        }
        set
    }

    fn advance(&mut self, from: &Rc<PositionSet>, name: &[u8], steps: &mut Steps) -> Result<Way, Problem> {
        steps.spend(1 + name.len() / 8)?;
        let remembered = from.known.filter(|_| name.len() <= REMEMBERED_NAME);
        let Some(number) = remembered else { return self.look(&from.places, name, steps) };
        let key = (number, Box::from(name));
        if let Some(way) = self.ways.get(&key) {
            return Ok(way.clone());
        }
        let way = self.look(&from.places, name, steps)?;
        if self.ways.len() < REMEMBERED {
            self.ways.insert(key, way.clone());
        }
        Ok(way)
    }

    /// Positions after the elements of `from` that match `name`; `**` matches any name and keeps its
    /// position.
    fn look(&mut self, from: &[u32], name: &[u8], steps: &mut Steps) -> Result<Way, Problem> {
        self.round += 1;
        let round = self.round;
        let mut found = Vec::new();
        for &start in from {
            steps.spend(1)?;
            let mut place = start as usize;
            let mut is_known = false;
            while let Name::Anything = self.names[place] {
                // A run that an earlier one ran into leads nowhere else.
                is_known = std::mem::replace(&mut self.followed[place], round) == round;
                if is_known {
                    break;
                }
                steps.spend(1)?;
                if std::mem::replace(&mut self.reached[place], round) != round {
                    found.push(place as u32);
                }
                place += 1;
            }
            if is_known {
                continue;
            }
            match &self.names[place] {
                // At the end of a path a `**` stands for everything below.
                Name::End if place > start as usize => return Ok(Way::Ends),
                Name::Glob(pattern) if matches(pattern, name, steps)? => {
                    if let Name::End = self.names[place + 1] {
                        return Ok(Way::Ends);
                    }
                    if std::mem::replace(&mut self.reached[place + 1], round) != round {
                        found.push(place as u32 + 1);
                    }
                }
                Name::End | Name::Glob(_) | Name::Anything => {}
            }
        }
        if found.is_empty() {
            return Ok(Way::Nowhere);
        }
        found.sort_unstable();
        Ok(Way::To(self.set(found)))
    }
}

/// Whether a text matches a pattern in which `*` stands for any characters.
fn matches(pattern: &[u8], text: &[u8], steps: &mut Steps) -> Result<bool, Problem> {
    let (mut at, mut read) = (0, 0);
    // The last star, and how much of the text it stands for so far.
    let mut star: Option<(usize, usize)> = None;
    let mut walked = 0;
    while read < text.len() {
        walked += 1;
        if walked > steps.left {
            return Err(Problem::TooMuchWork);
        }
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, read));
                at += 1;
            }
            Some(letter) if *letter == text[read] => {
                at += 1;
                read += 1;
            }
            _ => match &mut star {
                Some((place, taken)) => {
                    *taken += 1;
                    read = *taken;
                    at = *place + 1;
                }
                None => {
                    steps.spend(walked)?;
                    return Ok(false);
                }
            },
        }
    }
    steps.spend(walked)?;
    Ok(pattern[at.min(pattern.len())..].iter().all(|letter| *letter == b'*'))
}

/// Names of a dot path; `\.` is a dot inside a name.
fn segments(path: &str) -> Vec<Vec<u8>> {
    let mut names = vec![Vec::new()];
    for &byte in path.as_bytes() {
        let Some(name) = names.last_mut() else { break };
        match byte {
            b'.' if name.last() == Some(&b'\\') => {
                name.pop();
                name.push(b'.');
            }
            b'.' => names.push(Vec::new()),
            _ => name.push(byte),
        }
    }
    names
}

/// A text without leading and trailing whitespace, by JavaScript's definition of it.
fn trimmed(text: &str) -> &str {
    text.trim_matches(|letter: char| letter == '\u{feff}' || (letter.is_whitespace() && letter != '\u{85}'))
}
