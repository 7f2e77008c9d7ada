//! The request parameters that say how multi-target expressions are resolved.

use sparrow_request::error::EngineError;
use sparrow_request::params::Params;

/// How a multi-target expression treats indices that are missing, closed or hidden.
#[derive(Debug, Clone)]
pub struct ResolveOptions {
    pub ignore_unavailable: bool,
    pub allow_no_indices: bool,
    /// Whether patterns match open indices.
    pub open: bool,
    /// Whether patterns match closed indices.
    pub closed: bool,
    /// Whether patterns also match hidden indices and aliases.
    pub hidden: bool,
    /// Whether a closed index is an error; otherwise it is treated like an open one.
    pub forbid_closed: bool,
    /// Whether an alias is an error.
    pub forbid_aliases: bool,
    /// Whether aliases are ignored.
    pub only_indices: bool,
}

impl Default for ResolveOptions {
    /// The options of operations on documents: patterns match open indices, and a closed index is an error.
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
    /// The options of operations on metadata: patterns match open indices, and closed ones may be named.
    pub fn metadata() -> Self {
        Self { forbid_closed: false, ..Self::default() }
    }

    /// The options of operations on metadata whose patterns match closed indices, too.
    pub fn open_and_closed() -> Self {
        Self { closed: true, ..Self::metadata() }
    }

    /// The options of listings: patterns match all indices, including closed and hidden ones.
    pub fn everything() -> Self {
        Self { hidden: true, ..Self::open_and_closed() }
    }

    /// [`ResolveOptions::default`], changed by the parameters of a request.
    ///
    /// # Errors
    /// As [`ResolveOptions::with`].
    pub fn from_params(params: &Params<'_>) -> Result<Self, EngineError> {
        Self::default().with(params)
    }

    /// Applies the parameters `ignore_unavailable`, `allow_no_indices` and `expand_wildcards` of a request.
    ///
    /// # Errors
    /// Illegal argument for an invalid value.
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
