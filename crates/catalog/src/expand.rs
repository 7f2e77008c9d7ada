//! Expands a multi-target expression to the names of indices and aliases. Expressions come from clients and may be long, so the
//! work done for each of their parts is counted and limited.

use std::borrow::Cow;
use std::collections::btree_map::Range;
use std::collections::{BTreeMap, BTreeSet};
use std::iter::TakeWhile;
use std::ops::Bound;

use sparrow_runtime::work;

use super::date_math;
use super::registry::IndexNames;
use super::resolve_options::ResolveOptions;
use sparrow_request::error::EngineError;
use sparrow_request::name_steps::{NamePattern, NameSteps, is_pattern};
use sparrow_request::rights::Right;

/// By which names of an expression an index was found.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Via {
    /// Whether the index's own name, or a pattern that matches it, was among them.
    pub(super) direct: bool,
    /// Names of the aliases by which it was found.
    pub(super) aliases: BTreeSet<String>,
}

impl Via {
    fn through(&mut self, alias: &str) {
        if !self.aliases.contains(alias) {
            self.aliases.insert(alias.to_owned());
        }
    }
}

/// A part of an expression.
struct Part<'e> {
    /// Whether it begins with `-` and excludes what the parts before it have found.
    excludes: bool,
    /// As it was written, without the `-`.
    written: &'e str,
    /// The name or pattern, with date math resolved.
    name: Cow<'e, str>,
}

/// What has been found so far while an expression is expanded.
struct ExpandedNames<'n, 'r> {
    names: &'n IndexNames,
    right: Right<'r>,
    indices: BTreeMap<String, Via>,
    steps: NameSteps,
}

impl IndexNames {
    /// Names of the aliases that match an expression. Names that are not aliases are skipped.
    ///
    /// # Errors
    /// When comparing patterns with names takes more steps than are allowed.
    pub fn alias_names(
        &self,
        expression: &str,
        options: &ResolveOptions,
        right: Right<'_>,
    ) -> Result<Vec<String>, EngineError> {
        let mut steps = NameSteps::default();
        let mut aliases: BTreeSet<&str> = BTreeSet::new();
        let mut pattern_seen = false;
        for part in expression.split(',').map(str::trim) {
            steps.add(1)?;
            if let Some(excluded) = part.strip_prefix('-').filter(|_| pattern_seen) {
                let excluded = NamePattern::new(excluded);
                for (alias, _) in with_beginning(&self.aliases, excluded) {
                    if excluded.matches(alias, &mut steps)? {
                        aliases.remove(alias.as_str());
                    }
                }
            } else if is_pattern(part) {
                pattern_seen = true;
                let wanted = NamePattern::new(part);
                for (alias, indices) in with_beginning(&self.aliases, wanted) {
                    let hidden =
                        || indices.values().any(|spec| spec.is_hidden == Some(true)) && !options.hidden;
                    if wanted.matches(alias, &mut steps)? && right.sees(alias) && !hidden() {
                        aliases.insert(alias);
                    }
                }
            } else if let Some((alias, _)) = self.aliases.get_key_value(part)
                && right.sees(alias)
            {
                aliases.insert(alias);
            }
        }
        Ok(aliases.into_iter().map(str::to_owned).collect())
    }

    /// The indices that an expression stands for, each with the names by which it was found.
    ///
    /// # Errors
    /// 403 for names that are not allowed; [`EngineError::IndexNotFound`] for a name that does not exist, unless it may be
    /// unavailable; when comparing patterns with names takes more steps than are allowed, or the request is cancelled.
    pub(super) fn expand(
        &self,
        expression: &str,
        options: &ResolveOptions,
        right: Right<'_>,
    ) -> Result<BTreeMap<String, Via>, EngineError> {
        let wanted = parts(expression)?;
        // Checked before anything is looked up, so that a missing index and a forbidden one give the same answer.
        right.check(
            wanted.iter().filter(|part| !part.excludes && !is_pattern(&part.name)).map(|part| &*part.name),
        )?;
        for part in wanted.iter().filter(|part| !part.excludes && is_pattern(&part.name)) {
            right.check_pattern(if part.written == "_all" { "*" } else { part.written })?;
        }
        let mut expanded =
            ExpandedNames { names: self, right, indices: BTreeMap::new(), steps: NameSteps::default() };
        for Part { excludes, written, name } in wanted {
            expanded.steps.add(1)?;
            if excludes {
                expanded.exclude(&name)?;
            } else if is_pattern(&name) {
                if !expanded.include(&name, options)? && !options.allow_no_indices {
                    return Err(EngineError::IndexNotFound { name: written.to_owned() });
                }
            } else {
                expanded.add(&name, options)?;
            }
        }
        if expanded.indices.is_empty() && !options.allow_no_indices {
            return Err(EngineError::IndexNotFound { name: expression.to_owned() });
        }
        Ok(expanded.indices)
    }
}

/// Splits an expression into its parts; an empty expression is `_all`.
fn parts(expression: &str) -> Result<Vec<Part<'_>>, EngineError> {
    let mut wanted = Vec::new();
    let mut steps = NameSteps::default();
    let mut pattern_seen = false;
    for part in expression.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        steps.add(1)?;
        work::check()?;
        let (excludes, written) = match part.strip_prefix('-') {
            Some(rest) if pattern_seen => (true, rest),
            _ => (false, part),
        };
        let name = match written.starts_with('<') {
            true => Cow::Owned(date_math::resolve(written)?),
            false => Cow::Borrowed(written),
        };
        pattern_seen |= !excludes && is_pattern(&name);
        wanted.push(Part { excludes, written, name });
    }
    if wanted.is_empty() {
        wanted.push(Part { excludes: false, written: "_all", name: Cow::Borrowed("_all") });
    }
    Ok(wanted)
}

impl ExpandedNames<'_, '_> {
    /// Adds an index to what has been found; `come` notes by which name.
    fn index(&mut self, name: &str, come: impl FnOnce(&mut Via)) {
        match self.indices.get_mut(name) {
            Some(via) => come(via),
            None => come(self.indices.entry(name.to_owned()).or_default()),
        }
    }

    /// Adds the indices that a name without a pattern stands for.
    fn add(&mut self, name: &str, options: &ResolveOptions) -> Result<(), EngineError> {
        let names = self.names;
        if names.uuid(name).is_some() {
            self.index(name, |via| via.direct = true);
            return Ok(());
        }
        if let Some(indices) = names.aliases.get(name) {
            if options.only_indices || (options.forbid_aliases && options.ignore_unavailable) {
                return Ok(());
            }
            if options.forbid_aliases {
                return Err(only_an_index(name));
            }
            for index in indices.keys() {
                self.steps.add(1)?;
                self.index(index, |via| via.through(name));
            }
            return Ok(());
        }
        match name_error(name) {
            Some(error) => Err(error),
            None if options.ignore_unavailable => Ok(()),
            None => Err(EngineError::IndexNotFound { name: name.to_owned() }),
        }
    }

    /// Adds the indices that a pattern stands for; `false` if it stands for no index.
    fn include(&mut self, given: &str, options: &ResolveOptions) -> Result<bool, EngineError> {
        let (names, right) = (self.names, self.right);
        let pattern = NamePattern::new(given);
        let is_dotted = pattern.beginning().starts_with('.');
        // A hidden index or alias is found if the request asks for hidden ones, or if pattern and name both begin with a dot.
        let shown =
            |name: &str, hidden: bool| !hidden || options.hidden || (is_dotted && name.starts_with('.'));
        let in_state = |name: &str| match names.indices.get(name) {
            Some(handle) if handle.is_closed() => options.closed,
            _ => options.open,
        };
        let wanted = |name: &str, steps: &mut NameSteps| {
            pattern.matches(name, steps).map(|matches| matches && right.sees(name))
        };
        let mut any = false;
        for (name, handle) in with_beginning(&names.indices, pattern) {
            if wanted(name, &mut self.steps)? && in_state(name) && shown(name, handle.settings().is_hidden())
            {
                self.index(name, |via| via.direct = true);
                any = true;
            }
        }
        for (name, _) in with_beginning(&names.broken, pattern) {
            if wanted(name, &mut self.steps)? && options.open {
                self.index(name, |via| via.direct = true);
                any = true;
            }
        }
        if options.forbid_aliases || options.only_indices {
            return Ok(any);
        }
        for (alias, indices) in with_beginning(&names.aliases, pattern) {
            if !wanted(alias, &mut self.steps)?
                || !shown(alias, indices.values().any(|spec| spec.is_hidden == Some(true)))
            {
                continue;
            }
            for index in indices.keys() {
                self.steps.add(1)?;
                if in_state(index) {
                    self.index(index, |via| via.through(alias));
                    any = true;
                }
            }
        }
        Ok(any)
    }

    /// Removes the indices that a pattern stands for. An alias that the caller may not see removes nothing, so that nobody learns
    /// of it.
    fn exclude(&mut self, given: &str) -> Result<(), EngineError> {
        let pattern = NamePattern::new(given);
        for (alias, indices) in with_beginning(&self.names.aliases, pattern) {
            if pattern.matches(alias, &mut self.steps)? && self.right.sees(alias) {
                for index in indices.keys() {
                    self.steps.add(1)?;
                    self.indices.remove(index);
                }
            }
        }
        let mut gone = Vec::new();
        for (name, _) in with_beginning(&self.indices, pattern) {
            if pattern.matches(name, &mut self.steps)? {
                gone.push(name.clone());
            }
        }
        gone.iter().for_each(|name| {
            self.indices.remove(name);
        });
        Ok(())
    }
}

/// The error for a name that no index can ever have, since it begins with `_`; none for any other name.
pub(super) fn name_error(name: &str) -> Option<EngineError> {
    name.starts_with('_').then(|| EngineError::InvalidIndexName {
        name: name.to_owned(),
        problem: "must not start with '_'.".to_owned(),
    })
}

/// The entries of `map` whose keys begin with the pattern's literal prefix: no others can match.
fn with_beginning<'m, V>(
    map: &'m BTreeMap<String, V>,
    pattern: NamePattern<'_>,
) -> TakeWhile<Range<'m, String, V>, impl FnMut(&(&'m String, &'m V)) -> bool> {
    let (beginning, is_name) = (pattern.beginning(), pattern.is_name());
    map.range::<str, _>((Bound::Included(beginning), Bound::Unbounded)).take_while(move |(name, _)| {
        name.starts_with(beginning) && (!is_name || name.len() == beginning.len())
    })
}

/// The error for an alias where only an index may be named.
pub fn only_an_index(name: &str) -> EngineError {
    EngineError::illegal_argument(format!(
        "The provided expression [{name}] matches an alias, specify the corresponding concrete indices instead."
    ))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

    use sparrow_request::name_steps::MOST_STEPS;
    use sparrow_runtime::work::{self, Memory, Work};

    use super::*;

    /// Names with `count` aliases of one index.
    fn names(count: usize) -> IndexNames {
        let mut names = IndexNames::default();
        for number in 0..count {
            names.add_alias(format!("a{number:05}"), "books".to_owned(), Arc::default());
        }
        names
    }

    #[test]
    fn entries_are_those_whose_names_begin_as_a_pattern() {
        let map: BTreeMap<String, ()> =
            ["a", "ab", "abc", "ac", "b"].map(|name| (name.to_owned(), ())).into();
        let found = |pattern: &str| {
            with_beginning(&map, NamePattern::new(pattern))
                .map(|(name, ())| name.as_str())
                .collect::<Vec<_>>()
                .join(",")
        };
        assert_eq!(found("ab*"), "ab,abc");
        assert_eq!(found("a*z"), "a,ab,abc,ac");
        assert_eq!(found("*"), "a,ab,abc,ac,b");
        assert_eq!((found("ab").as_str(), found("aa").as_str(), found("c*").as_str()), ("ab", "", ""));
    }

    #[test]
    fn a_pattern_is_held_only_against_names_that_begin_as_it_does() {
        let names = names(3000);
        let _entered =
            work::enter(Some(Work::new(Arc::default(), Arc::new(Memory::new(1 << 30, 1 << 30)), "<test>")));
        let list = vec!["a00001*"; 10_000].join(",");
        for _ in 0..100 {
            let found = names.expand(&list, &ResolveOptions::default(), Right::unlimited()).expect("found");
            assert_eq!(found["books"].aliases.len(), 1);
        }
    }

    #[test]
    fn a_list_of_patterns_stops_at_the_limit_and_with_its_request() {
        let names = names(3000);
        let stop = Arc::new(AtomicBool::new(false));
        let work = || Work::new(stop.clone(), Arc::new(Memory::new(1 << 30, 1 << 30)), "<test>");
        let list = format!("*{}", ",*0*z".repeat(6000));
        let excluded = format!("*{}", ",-*0*z".repeat(6000));
        let (options, right) = (ResolveOptions::default(), Right::unlimited());
        for expression in [&list, &excluded] {
            let _entered = work::enter(Some(work()));
            let error = names.expand(expression, &options, right).expect_err("too many");
            assert!(error.reason().contains(&format!("[{MOST_STEPS}]")), "{}", error.reason());
            let _entered = work::enter(Some(work()));
            let error = names.alias_names(expression, &options, right).expect_err("too many");
            assert_eq!(error.status(), 400);
        }
        stop.store(true, Relaxed);
        let _entered = work::enter(Some(work()));
        for expression in [list, vec!["books"; 1000].join(",")] {
            let stopped = names.expand(&expression, &options, right);
            assert!(matches!(stopped, Err(EngineError::Cancelled)));
        }
    }
}
