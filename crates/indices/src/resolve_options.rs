//! What the parameters of a request say about expressions that stand for several indices.

use sparrow_call::error::EngineError;
use sparrow_call::params::Params;

/// How a multi-target expression treats what is not there, closed or hidden.
#[derive(Debug, Clone)]
pub struct ResolveOptions {
    pub ignore_unavailable: bool,
    pub allow_no_indices: bool,
    /// Patterns stand for open indices.
    pub open: bool,
    /// Patterns stand for closed indices.
    pub closed: bool,
    /// Patterns stand for hidden indices and aliases, too.
    pub hidden: bool,
    /// A closed index is refused; else it is one like any other.
    pub forbid_closed: bool,
    /// An alias is refused.
    pub forbid_aliases: bool,
    /// Aliases stand for nothing.
    pub only_indices: bool,
}

impl Default for ResolveOptions {
    /// For operations on documents.
    fn default() -> Self {
        Self {
            ignore_unavailable: false,
            allow_no_indices: true,
            open: true,
            closed: false,
            hidden: false,
            forbid_closed: true,
            forbid_aliases: false,
            only_indices: false,
        }
    }
}

impl ResolveOptions {
    /// For operations on metadata: a closed index that is named has it too.
    pub fn metadata() -> Self {
        Self { forbid_closed: false, ..Self::default() }
    }

    /// For operations on metadata whose patterns stand for closed indices too.
    pub fn open_and_closed() -> Self {
        Self { closed: true, ..Self::metadata() }
    }

    /// For overviews: everything there is.
    pub fn everything() -> Self {
        Self { hidden: true, ..Self::open_and_closed() }
    }

    /// [`ResolveOptions::default`], changed by what the request says.
    ///
    /// # Errors
    /// As [`ResolveOptions::with`].
    pub fn from_params(params: &Params<'_>) -> Result<Self, EngineError> {
        Self::default().with(params)
    }

    /// Reads `ignore_unavailable`, `allow_no_indices` and `expand_wildcards`.
    ///
    /// # Errors
    /// Illegal argument for a value that none of them can have.
    pub fn with(mut self, params: &Params<'_>) -> Result<Self, EngineError> {
        self.ignore_unavailable = params.bool("ignore_unavailable", self.ignore_unavailable)?;
        self.allow_no_indices = params.bool("allow_no_indices", self.allow_no_indices)?;
        if let Some(list) = params.get("expand_wildcards") {
            (self.open, self.closed, self.hidden) = (false, false, false);
            for state in list.split(',') {
                match state.trim() {
                    "open" => self.open = true,
                    "closed" => self.closed = true,
                    "hidden" => self.hidden = true,
                    "none" => (self.open, self.closed, self.hidden) = (false, false, false),
                    "all" => (self.open, self.closed, self.hidden) = (true, true, true),
                    other => {
                        return Err(EngineError::illegal_argument(format!(
                            "No valid expand wildcard value [{other}]"
                        )));
                    }
                }
            }
        }
        Ok(self)
    }
}
