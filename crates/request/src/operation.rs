//! What is known of an operation of the interface: each is declared once, next to the function that carries it out.
//!
//! The engine finds an operation by its name and takes its lane of threads from here; the HTTP layer's tables (actions, parameters,
//! descriptions) are generated from the same declarations.

use crate::error::EngineError;
use crate::request::{CancelFlag, Reply, Request};
use crate::rights::Action;
use sparrow_wire::shape::Shape;

/// Which threads run an operation, so that a bulk load does not starve searches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lane {
    /// Searches and reads of documents.
    Read,
    /// Inference: it waits for its model, which may take minutes for very many long texts, and no search waits for it.
    Infer,
    /// Writes of documents, and changes of metadata.
    Write,
    /// Requests for metadata, settings and counts: they wait for no write, and no write waits for them.
    Look,
    /// Simulations of pipelines and index templates, and `_analyze`: they may take long and change nothing.
    Trial,
    /// Requests that show, list or cancel tasks, and the metrics of the process: answered however many long operations there are.
    Watch,
    /// `_cluster/health`: answered however busy the other lanes are.
    Health,
    /// Operations that may wait for minutes.
    Long,
}

impl Lane {
    /// Whether its operations change no data.
    pub fn only_reads(self) -> bool {
        matches!(self, Self::Read | Self::Infer | Self::Look | Self::Trial | Self::Watch | Self::Health)
    }
}

/// What the body of a request holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Body {
    /// Nothing: a body is refused.
    None,
    /// One JSON value.
    Json,
    /// One document, as JSON.
    Document,
    /// Lines of JSON, which are read one after the other.
    Lines,
    /// Lines of JSON, of which as many are read at once as there are processors.
    Searches,
}

/// What the body of a request holds, with its name in the OpenAPI document.
pub type Holds = (&'static str, fn() -> Shape);

/// A function that carries out an operation with the part `S` of the engine that it needs.
pub type Handler<S> = fn(&S, &Request, &[u8], &CancelFlag) -> Result<Reply, EngineError>;

/// An operation: its declaration and its function.
#[derive(Debug)]
pub struct Operation<S> {
    /// The name of the operation, the threads that run it, the rights that it needs, and its parameters.
    pub declaration: Declaration,
    /// The function that carries it out.
    pub run: Handler<S>,
}

/// An operation as the engine schedules it and the HTTP layer describes it: its name, threads, rights, parameters and body.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "each is a property of its own")]
pub struct Declaration {
    /// The name by which requests ask for it, such as `search`.
    pub name: &'static str,
    /// One sentence that describes the operation in the OpenAPI document.
    pub about: &'static str,
    /// What a key must be allowed to do.
    pub action: Action,
    /// Which threads run it.
    pub lane: Lane,
    /// What the body of a request for it holds.
    pub body: Body,
    /// What that body holds, or each of its lines.
    pub holds: Option<Holds>,
    /// The query parameters that it knows, besides those that every operation takes: texts of names with spaces between them.
    pub parameters: &'static [&'static str],
    /// Whether it answers text, unless JSON is asked for.
    pub is_text: bool,
    /// Whether it stops when its client goes away, also if it is not a `GET`. Never that of a single write: some clients send one
    /// and do not wait.
    pub stops: bool,
    /// Whether it may be as short as its way to a worker and back.
    pub is_short: bool,
    /// Whether the HTTP layer refuses some when more come than there is time for.
    pub is_shed: bool,
    /// Whether `_tasks` lists it while it runs: not if it looks at tasks itself, or registers a task of its own.
    pub is_listed: bool,
    /// Whether it runs on [`Lane::Long`] if the request says `wait_for_completion`.
    pub may_wait: bool,
    /// Whether its body may have as many values as there is memory for, and not only as many as a request about documents needs.
    pub is_large: bool,
}

impl<S> Operation<S> {
    /// An operation without body and parameters; see [`Declaration`] for the arguments.
    pub const fn new(name: &'static str, action: Action, lane: Lane, run: Handler<S>) -> Self {
        let declaration = Declaration {
            name,
            about: "",
            action,
            lane,
            body: Body::None,
            holds: None,
            parameters: &[],
            is_text: false,
            stops: false,
            is_short: false,
            is_shed: false,
            is_listed: true,
            may_wait: false,
            is_large: false,
        };
        Self { declaration, run }
    }

    /// Sets the sentence that describes the operation in the OpenAPI document.
    pub const fn about(mut self, sentence: &'static str) -> Self {
        self.declaration.about = sentence;
        self
    }

    /// Says that requests for it have one JSON value as their body.
    pub const fn json(self) -> Self {
        self.body(Body::Json)
    }

    /// Says what its body holds, which is one JSON value unless [`Operation::body`] said otherwise: by the name in the OpenAPI document.
    pub const fn holds(mut self, name: &'static str, shape: fn() -> Shape) -> Self {
        self.declaration.holds = Some((name, shape));
        match self.declaration.body {
            Body::None => self.json(),
            _ => self,
        }
    }

    /// Says of what kind the body of a request for it is.
    pub const fn body(mut self, body: Body) -> Self {
        self.declaration.body = body;
        self
    }

    /// Sets the query parameters that it knows: texts of names with spaces between them.
    pub const fn takes(mut self, parameters: &'static [&'static str]) -> Self {
        self.declaration.parameters = parameters;
        self
    }

    /// Says that it answers text, unless JSON is asked for.
    pub const fn text(mut self) -> Self {
        self.declaration.is_text = true;
        self
    }

    /// Says that it stops when its client goes away.
    pub const fn stops(mut self) -> Self {
        self.declaration.stops = true;
        self
    }

    /// Says that it may take less time than its way to a worker and back.
    pub const fn short(mut self) -> Self {
        self.declaration.is_short = true;
        self
    }

    /// Says that the HTTP layer refuses some requests for it when more come than there is time for.
    pub const fn shed(mut self) -> Self {
        self.declaration.is_shed = true;
        self
    }

    /// Says that `_tasks` does not list it while it runs.
    pub const fn unlisted(mut self) -> Self {
        self.declaration.is_listed = false;
        self
    }

    /// Says that its body holds documents, or the words of a model.
    pub const fn large(mut self) -> Self {
        self.declaration.is_large = true;
        self
    }

    /// Says that it runs on [`Lane::Long`] if the request asks for `wait_for_completion`.
    pub const fn may_wait(mut self) -> Self {
        self.declaration.may_wait = true;
        self
    }
}

impl Declaration {
    /// The lane of a request for it.
    pub fn lane_of(&self, request: &Request) -> Lane {
        let waits = || request.query.get("wait_for_completion").is_some_and(|text| text != "false");
        if self.may_wait && waits() { Lane::Long } else { self.lane }
    }

    /// Whether a request for it changes no data, so that it can be stopped, or its answer refused, at any time.
    pub fn only_reads(&self, request: &Request) -> bool {
        self.lane_of(request).only_reads()
    }
}

/// Query parameters that several operations take: texts of names with spaces between them.
pub mod parameters {
    /// What an index expression stands for.
    pub const INDICES: &str = "expand_wildcards allow_no_indices ignore_unavailable";
    /// A query in Lucene's syntax, and how it is read.
    pub const URI_QUERY: &str = "q df default_operator analyzer analyze_wildcard lenient";
    /// Which parts of a source are shown.
    pub const SOURCE: &str = "_source _source_includes _source_excludes";
    /// How long to wait.
    pub const TIMEOUTS: &str = "timeout master_timeout";
    /// How the definitions of indices and templates are shown.
    pub const SHOWN: &str = "flat_settings include_defaults local master_timeout";
    /// How an index is made of another one.
    pub const RESIZE: &str = "wait_for_active_shards wait_for_completion copy_settings max_docs dry_run lazy";
    /// What every table of `_cat` takes.
    pub const CAT: &str = "format h help v s bytes time local master_timeout";
}
