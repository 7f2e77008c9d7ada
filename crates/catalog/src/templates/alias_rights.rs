//! The right to say in a template what indices of others get.
//!
//! Templates apply to indices that other callers create, and those are not checked for what they are given. So the caller who
//! puts a template needs the rights that it would take to change such an index itself.

use std::collections::BTreeSet;

use super::Body;
use sparrow_request::error::EngineError;
use sparrow_request::rights::{Action, Caller};

/// The index patterns that stand for `{index}` in a component template, which does not say which indices it is for.
pub const ANY_INDEX: &[&str] = &["*"];

/// Checks that the caller may change every alias that indices of the patterns `named` would get, and every index that the
/// patterns `given` match if it would get an alias or a pipeline: both show its documents to others.
///
/// # Errors
/// 403 that names the aliases, with `*` where they differ from index to index, and the patterns.
pub fn check<P: AsRef<str>>(
    caller: &Caller,
    body: &Body,
    named: &[P],
    given: &[String],
) -> Result<(), EngineError> {
    if !caller.is_restricted() {
        return Ok(());
    }
    let mut names: BTreeSet<String> = body
        .aliases
        .keys()
        .flat_map(|alias| named.iter().map(move |index| possible_names(alias, index.as_ref())))
        .collect();
    let settings = &body.settings;
    if !names.is_empty() || settings.default_pipeline().is_some() || settings.final_pipeline().is_some() {
        names.extend(given.iter().cloned());
    }
    caller.to(Action::Aliases).check(names.iter().map(String::as_str))
}

/// A pattern that matches every name that an alias can get from an index matching `index`, on any day.
fn possible_names(alias: &str, index: &str) -> String {
    let name = alias.replace("{index}", index);
    match name.strip_prefix('<') {
        None => name,
        // Of date math, what is before it is the same every day.
        Some(text) => format!("{}*", text.split(['{', '\\', '>']).next().unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::Body;
    use super::{ANY_INDEX, check, possible_names};
    use sparrow_request::rights::Caller;

    #[test]
    fn names_of_aliases_are_those_of_any_day_and_any_index() {
        for (alias, index, names) in [
            ("prod", "logs-*", "prod"),
            ("{index}-all", "logs-*", "logs-*-all"),
            ("a-{index}-{index}", "*", "a-*-*"),
            ("<prod-{now/d}>", "logs-*", "prod-*"),
            ("<{index}-{now/d}>", "logs-*", "logs-*-*"),
            ("<a\\{x>", "*", "a*"),
            ("<prod>", "*", "prod*"),
        ] {
            assert_eq!(possible_names(alias, index), names, "{alias}");
        }
    }

    #[test]
    fn a_template_gives_only_aliases_that_its_writer_may_change() {
        let grants =
            json!({"indices:admin/aliases": {"names": [["logs-*", "*-all", "one"]], "by": "manage"}});
        let text = json!({"key": "k", "user": "owner", "grants": grants}).to_string();
        let caller: Caller = serde_json::from_str(&text).expect("rights");
        let allowed = |alias: &str, patterns: &[&str]| {
            let mut body = Body::default();
            body.set("aliases", &json!({"one": {}, alias: {}})).expect("aliases");
            assert!(check(&Caller::default(), &body, patterns, &[]).is_ok());
            check(&caller, &body, patterns, &[]).is_ok()
        };
        assert!(allowed("logs-x", &["*"]) && allowed("{index}-all", &["*"]));
        assert!(allowed("{index}", &["logs-a*", "logs-b*"]) && !allowed("{index}", &["logs-a*", "a*"]));
        assert!(!allowed("{index}", ANY_INDEX) && !allowed("prod", &["logs-*"]));
        assert!(allowed("<logs-{now/d}>", &["*"]) && !allowed("<log{now/d}>", &["*"]));
        assert!(!allowed("al{index}", &["l*"]) && !allowed("{index}one", &["*"]));
    }

    #[test]
    fn what_shows_documents_is_given_only_to_indices_that_the_writer_may_change() {
        let grants = json!({"indices:admin/aliases": {"names": [["logs-*", "mine?"]], "by": "manage"}});
        let text = json!({"key": "k", "user": "owner", "grants": grants}).to_string();
        let caller: Caller = serde_json::from_str(&text).expect("rights");
        let allowed = |member: &str, value: serde_json::Value, given: &[&str]| {
            let mut body = Body::default();
            body.set(member, &value).expect(member);
            let given: Vec<String> = given.iter().map(|one| (*one).to_owned()).collect();
            check(&caller, &body, ANY_INDEX, &given).is_ok()
        };
        let alias = || json!({"logs-t": {}});
        assert!(allowed("aliases", alias(), &["logs-*", "logs-a*"]) && allowed("aliases", alias(), &[]));
        for others in ["payroll-*", "*", "log*", "mine*", "payroll"] {
            assert!(!allowed("aliases", alias(), &["logs-*", others]), "{others}");
            assert!(!allowed("settings", json!({"default_pipeline": "p"}), &[others]), "{others}");
            assert!(!allowed("settings", json!({"index.final_pipeline": "p"}), &[others]), "{others}");
            assert!(allowed("settings", json!({"default_pipeline": "_none"}), &[others]), "{others}");
            assert!(allowed("mappings", json!({"properties": {}}), &[others]), "{others}");
        }
    }
}
