//! Compiled scripts that are used again.

use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use indexmap::IndexMap;
use sparrow_runtime::attempt;
use sparrow_runtime::work::Stopped;

use crate::context::Context;
use crate::error::ScriptError;
use crate::script::Script;

/// Most scripts that are kept.
const MOST_SCRIPTS: usize = 200;
/// Most bytes that the kept scripts take together, by what [`Script::weight`] says.
const MOST_BYTES: usize = 32 << 20;
/// Most bytes of a script that an attempt to answer without another thread compiles: nothing looks at a flag meanwhile.
const LONGEST_IN_ATTEMPT: usize = 1 << 10;

/// Compiled scripts by the name of their context and their text. Requests share it; errors are not kept.
#[derive(Debug, Default)]
pub struct Cache {
    kept: Mutex<Kept>,
}

type Key = (&'static str, Arc<str>);

#[derive(Debug, Default)]
struct Kept {
    /// With the time of their last use, by the name of the context and the text.
    scripts: IndexMap<Key, (Arc<Script>, u64), foldhash::fast::RandomState>,
    bytes: usize,
    uses: u64,
}

impl Cache {
    /// The cache of the process.
    pub fn shared() -> &'static Self {
        static SHARED: LazyLock<Cache> = LazyLock::new(Cache::default);
        &SHARED
    }

    /// The script for this text in a context, compiled or kept. The one that was not used for the longest makes room.
    ///
    /// # Errors
    /// As [`Script::compile`].
    pub fn get(&self, source: &Arc<str>, context: &Context) -> Result<Arc<Script>, ScriptError> {
        let key = (context.name, Arc::clone(source));
        {
            let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.uses += 1;
            let now = kept.uses;
            if let Some((script, used)) = kept.scripts.get_mut(&key) {
                *used = now;
                return Ok(Arc::clone(script));
            }
        }
        if source.len() > LONGEST_IN_ATTEMPT && attempt::give_up() {
            return Err(ScriptError::Stopped(Stopped::Cancelled));
        }
        let script = Arc::new(Script::compile(source, context)?);
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let now = kept.uses;
        if kept.scripts.insert(key, (Arc::clone(&script), now)).is_none() {
            kept.bytes += script.weight();
        }
        while kept.scripts.len() > MOST_SCRIPTS || kept.bytes > MOST_BYTES {
            let oldest = (0..kept.scripts.len()).min_by_key(|at| kept.scripts[*at].1);
            match oldest.and_then(|at| kept.scripts.swap_remove_index(at)) {
                Some((_, (script, _))) => kept.bytes -= script.weight(),
                None => break,
            }
        }
        Ok(script)
    }
}
