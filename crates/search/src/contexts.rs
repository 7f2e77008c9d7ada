//! Search contexts, which stay open between requests: scrolls and points in time.
//!
//! A context holds the segments of its indices as of one moment, and a scroll also its request, so it takes up files and memory:
//! the number of contexts and their memory are limited, and a thread closes those that have not been used in time. It runs as
//! long as any are open.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use parking_lot::Mutex;

use super::error::SearchError;
use super::target::{Target, open_context};
use sparrow_catalog::counters::OpenContext;
use sparrow_request::error::{EngineError, Exception};
use sparrow_request::rights::Holder;
use sparrow_runtime::work;
use sparrow_search_body::body::SearchBody;
use sparrow_search_body::uri::Presentation;

/// Most points in time that may be open; for scrolls a cluster setting says it (`search.max_open_scroll_context`).
pub(super) const MAX_OPEN: usize = 500;
/// How often expired contexts are closed.
const SWEEP: Duration = Duration::from_secs(1);

/// A scroll between two pages.
pub struct Scroll {
    /// Snapshots of the indices, taken for the first page.
    pub targets: Vec<Target>,
    /// The search request; its position is that of the last page's last hit.
    pub body: SearchBody,
    /// How the responses are formatted.
    pub shown: Presentation,
    /// Counts the scroll as open in the statistics of its indices.
    pub _open: OpenContext,
}

/// The state of a scroll or of a point in time.
#[derive(Clone)]
pub enum Content {
    Scroll(Arc<Mutex<Scroll>>),
    PointInTime(Arc<Vec<Target>>),
}

struct Context {
    _counted: Option<OpenContext>,
    content: Content,
    /// What the request that opened the context had in memory then, in bytes.
    held: usize,
    /// The restricted API key that opened the context: no other restricted key may use it.
    owner: Option<Holder>,
    keep_alive: Duration,
    ends: Instant,
}

#[derive(Default)]
struct Open {
    contexts: HashMap<String, Context>,
    opened: u64,
    swept: bool,
}

/// All scrolls and points in time that are open.
#[derive(Default)]
pub struct Contexts {
    open: Arc<Mutex<Open>>,
}

/// First byte of an id, which says what kind of context it is for.
const SCROLL: u8 = b's';
const POINT_IN_TIME: u8 = b'p';
/// Length of an id in bytes: kind, number, and enough random bytes that nobody can guess it.
const ID_BYTES: usize = 1 + 8 + 16;

impl Contexts {
    /// Opens a context and returns its id, unless `most` of its kind are open, or all hold more than `most_bytes` bytes. A
    /// restricted API key may have a share of both ([`Holder::check_share`]).
    ///
    /// # Errors
    /// 429 when too many are open, or they hold too much.
    pub fn open(
        &self,
        content: Content,
        owner: Option<&Holder>,
        keep_alive: Duration,
        most: usize,
        most_bytes: usize,
    ) -> Result<String, EngineError> {
        let held = work::current().map_or(0, |request| request.used());
        let mut open = self.open.lock();
        let kind = kind_of(&content);
        let sizes = open.contexts.values().map(|context| (context.owner.as_ref(), context.held));
        Holder::check_share_of(owner, sizes, held, most_bytes).map_err(|over| work::TooMuch {
            limit_of: "request",
            label: "<contexts>",
            wanted: over.wanted as u64,
            limit: over.share as u64,
        })?;
        let contexts = open.contexts.values().filter(|context| kind_of(&context.content) == kind);
        if let Err(most) = Holder::check_share(owner, contexts.map(|context| context.owner.as_ref()), most) {
            let what = if kind == SCROLL { "scroll" } else { "point in time" };
            return Err(EngineError::api(
                429,
                Exception::new(
                    "exception",
                    format!(
                        "Trying to create too many {what} contexts. Must be less than or equal to: [{most}]. \
                         This limit can be set by changing the [search.max_open_scroll_context] setting."
                    ),
                ),
            ));
        }
        open.opened += 1;
        let number = open.opened;
        let mut bytes = Vec::with_capacity(ID_BYTES);
        bytes.push(kind);
        bytes.extend_from_slice(&number.to_be_bytes());
        bytes.extend_from_slice(uuid::Uuid::new_v4().as_bytes());
        let id = URL_SAFE_NO_PAD.encode(bytes);
        let counted = match &content {
            Content::PointInTime(targets) => Some(open_context(targets, false)),
            // It counts itself.
            Content::Scroll(_) => None,
        };
        let context = Context {
            _counted: counted,
            content,
            held,
            owner: owner.cloned(),
            keep_alive,
            ends: Instant::now() + keep_alive,
        };
        open.contexts.insert(id.clone(), context);
        if !open.swept {
            open.swept = start_sweep(Arc::downgrade(&self.open));
        }
        Ok(id)
    }

    /// The state of a context, whose expiry is extended by `keep_alive`, or by as long as before.
    ///
    /// # Errors
    /// 404 when it is not open, or belongs to another key; 400 when the id is malformed.
    pub fn get(
        &self,
        id: &str,
        owner: Option<&Holder>,
        keep_alive: Option<Duration>,
    ) -> Result<Content, EngineError> {
        let number = number_of(id)?;
        let mut open = self.open.lock();
        let context = open.contexts.get_mut(id).filter(|context| context.is_open_to(owner));
        let context = context.ok_or(SearchError::ContextMissing { id: number })?;
        if let Some(keep_alive) = keep_alive {
            context.keep_alive = keep_alive;
        }
        context.ends = Instant::now() + context.keep_alive;
        Ok(context.content.clone())
    }

    /// Closes a context; `false` if it was not open.
    ///
    /// # Errors
    /// 400 when the id is malformed.
    pub fn close(&self, id: &str, owner: Option<&Holder>) -> Result<bool, EngineError> {
        number_of(id)?;
        let mut open = self.open.lock();
        if open.contexts.get(id).is_some_and(|context| context.is_open_to(owner)) {
            return Ok(open.contexts.remove(id).is_some());
        }
        Ok(false)
    }

    /// Closes all scrolls of an API key, or all scrolls; gives their number.
    pub fn close_scrolls(&self, owner: Option<&Holder>) -> usize {
        let mut open = self.open.lock();
        let before = open.contexts.len();
        open.contexts.retain(|_, context| kind_of(&context.content) != SCROLL || !context.is_open_to(owner));
        before - open.contexts.len()
    }
}

impl Context {
    fn is_open_to(&self, owner: Option<&Holder>) -> bool {
        self.ends > Instant::now() && owner.is_none_or(|owner| self.owner.as_ref() == Some(owner))
    }
}

fn kind_of(content: &Content) -> u8 {
    match content {
        Content::Scroll(_) => SCROLL,
        Content::PointInTime(_) => POINT_IN_TIME,
    }
}

/// The number in an id, by which errors name the context.
fn number_of(id: &str) -> Result<u64, EngineError> {
    let malformed = || EngineError::illegal_argument("Cannot parse scroll id");
    if id.len() > 2 * ID_BYTES {
        return Err(malformed());
    }
    let bytes = URL_SAFE_NO_PAD.decode(id.trim_end_matches('=')).map_err(|_| malformed())?;
    let number = bytes.get(1..9).and_then(|bytes| bytes.try_into().ok()).map(u64::from_be_bytes);
    match (bytes.len(), bytes.first(), number) {
        (ID_BYTES, Some(&SCROLL | &POINT_IN_TIME), Some(number)) => Ok(number),
        _ => Err(malformed()),
    }
}

/// Starts the thread that closes expired contexts and ends when none is left; `false` if it cannot be started.
fn start_sweep(open: Weak<Mutex<Open>>) -> bool {
    let sweep = move || {
        loop {
            std::thread::sleep(SWEEP);
            let Some(open) = open.upgrade() else { return };
            let now = Instant::now();
            let mut held = open.lock();
            let ended: Vec<Context> = held
                .contexts
                .extract_if(|_, context| context.ends <= now)
                .map(|(_, context)| context)
                .collect();
            let is_empty = held.contexts.is_empty();
            held.swept &= !is_empty;
            drop(held);
            // What they saw is unmapped, which nobody who opens one should wait for.
            drop(ended);
            if is_empty {
                return;
            }
        }
    };
    let started = std::thread::Builder::new().name("search-contexts".to_owned()).spawn(sweep);
    if let Err(error) = &started {
        tracing::warn!(%error, "scrolls are only closed by request");
    }
    started.is_ok()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::{Content, Contexts, MAX_OPEN};
    use sparrow_request::rights::Holder;
    use sparrow_runtime::work::{self, Memory, Work};

    const MINUTE: Duration = Duration::from_secs(60);

    fn key(id: &str) -> Holder {
        Holder::new(id, "{}")
    }

    fn pit() -> Content {
        Content::PointInTime(Arc::new(Vec::new()))
    }

    #[test]
    fn a_context_belongs_to_its_key() {
        let contexts = Contexts::default();
        let (me, you, changed) = (key("me"), key("you"), Holder::new("me", "{ }"));
        let mine = contexts.open(pit(), Some(&me), MINUTE, MAX_OPEN, usize::MAX).expect("opens");
        let all = contexts.open(pit(), None, MINUTE, MAX_OPEN, usize::MAX).expect("opens");
        assert!(contexts.get(&mine, Some(&me), None).is_ok());
        assert!(contexts.get(&mine, None, None).is_ok());
        for (id, owner) in [(&mine, &you), (&mine, &changed), (&all, &me)] {
            let error = contexts.get(id, Some(owner), None).err().expect("foreign");
            assert_eq!(error.status(), 404);
            assert!(error.body().to_string().contains("search_context_missing_exception"));
            assert!(!contexts.close(id, Some(owner)).expect("an id"));
        }
        assert!(contexts.close(&mine, Some(&me)).expect("an id"));
        assert!(!contexts.close(&mine, Some(&me)).expect("an id"));
    }

    #[test]
    fn a_key_leaves_as_many_as_it_has_to_others() {
        const MOST: usize = 8;
        let contexts = Contexts::default();
        let open = |owner: Option<&Holder>| contexts.open(pit(), owner, MINUTE, MOST, usize::MAX);
        let fill = |owner: &Holder| (0..).take_while(|_| open(Some(owner)).is_ok()).count();
        assert_eq!(fill(&key("a")), 4);
        // Also with other rights.
        let error = open(Some(&Holder::new("a", "{ }"))).expect_err("too many");
        assert_eq!(error.status(), 429);
        assert!(error.reason().contains("Must be less than or equal to: [4]"), "{}", error.reason());
        assert_eq!((fill(&key("b")), fill(&key("c")), fill(&key("d"))), (2, 1, 1));
        assert_eq!(fill(&key("e")), 0);
        assert!(open(None).is_err());
    }

    #[test]
    fn contexts_share_their_memory_as_they_share_their_number() {
        let contexts = Contexts::default();
        let memory = Arc::new(Memory::new(usize::MAX, usize::MAX));
        let request = Work::new(Arc::default(), memory, "<test>");
        let _body = request.hold_outside(100);
        let _entered = work::enter(Some(request));
        let open = |owner: Option<&Holder>| contexts.open(pit(), owner, MINUTE, MAX_OPEN, 1000);
        let fill = |owner: Option<&Holder>| (0..).take_while(|_| open(owner).is_ok()).count();
        assert_eq!((fill(Some(&key("a"))), fill(Some(&key("b"))), fill(None)), (5, 2, 3));
        assert_eq!(open(Some(&key("a"))).expect_err("too much").status(), 429);
    }

    #[test]
    fn who_may_do_everything_may_have_all() {
        let contexts = Contexts::default();
        let first = contexts.open(pit(), Some(&key("a")), MINUTE, 3, usize::MAX).expect("opens");
        let opened: Vec<_> =
            (0..3).map_while(|_| contexts.open(pit(), None, MINUTE, 3, usize::MAX).ok()).collect();
        assert_eq!(opened.len(), 2);
        assert!(contexts.close(&first, None).expect("an id"));
        assert!(contexts.open(pit(), Some(&key("a")), MINUTE, 3, usize::MAX).is_ok());
        assert!(contexts.open(pit(), Some(&key("a")), MINUTE, 0, usize::MAX).is_err());
    }

    #[test]
    fn a_context_ends_in_time() {
        let contexts = Contexts::default();
        let id = contexts.open(pit(), None, MINUTE, MAX_OPEN, usize::MAX).expect("opens");
        contexts.get(&id, None, Some(Duration::from_millis(1))).expect("open");
        std::thread::sleep(Duration::from_millis(5));
        assert_eq!(contexts.get(&id, None, None).err().expect("over").status(), 404);
    }

    #[test]
    fn their_number_is_limited_and_ids_are_checked() {
        let contexts = Contexts::default();
        for _ in 0..MAX_OPEN {
            contexts.open(pit(), None, MINUTE, MAX_OPEN, usize::MAX).expect("opens");
        }
        assert_eq!(
            contexts.open(pit(), None, MINUTE, MAX_OPEN, usize::MAX).expect_err("too many").status(),
            429
        );
        for id in ["", "x", "DnF1ZXJ5VGhlbkZldGNo", "é", &"A".repeat(34)] {
            assert_eq!(contexts.get(id, None, None).err().expect(id).status(), 400, "{id}");
        }
    }
}
