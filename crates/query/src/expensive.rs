//! Queries that look at many terms or documents on their own, which a cluster may forbid.

use sparrow_mapping::{FieldType, Mapping};

use crate::walk::visit;
use crate::{Query, QueryKind};

const PREFIX: &str = "[prefix] queries";

/// The reason for which the first expensive clause of some queries is refused, in Elasticsearch's words; `None` if no clause is expensive.
pub fn refusal<'q>(queries: impl Iterator<Item = &'q Query>, mapping: &Mapping) -> Option<String> {
    let mut found = None;
    for query in queries {
        visit(query, &mut |query| found = found.or_else(|| expensive(&query.kind, mapping)));
    }
    let hint = match found? {
        PREFIX => " For optimised prefix queries on text fields please enable [index_prefixes].",
        _ => "",
    };
    let what = found?;
    Some(format!("{what} cannot be executed when 'search.allow_expensive_queries' is set to false.{hint}"))
}

fn expensive(kind: &QueryKind, mapping: &Mapping) -> Option<&'static str> {
    Some(match kind {
        // A field that says that it is meant for them is not slower than others here.
        QueryKind::Prefix(prefix) if mapping.parameter(&prefix.field, "index_prefixes").is_some() => {
            return None;
        }
        QueryKind::Prefix(_) => PREFIX,
        QueryKind::Wildcard(_) => "[wildcard] queries",
        QueryKind::Regexp(_) => "[regexp] queries",
        QueryKind::Fuzzy(_) => "[fuzzy] queries",
        QueryKind::Nested(_) => "[joining] queries",
        QueryKind::Script(_) => "[script] queries",
        QueryKind::ScriptScore(_) => "[script score] queries",
        QueryKind::Range(range) => match mapping.field(&range.field)? {
            FieldType::Text { .. } | FieldType::Keyword { .. } => {
                "[range] queries on [text] or [keyword] fields"
            }
            _ => return None,
        },
        _ => return None,
    })
}
