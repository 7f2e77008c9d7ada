//! What the body of a search holds, as JSON Schema for the OpenAPI document. Parts that another file reads are declared there.

use crate::sections::source_filter_shape;
use crate::shape::*;
use crate::{aggs, collapse, fields, highlight, paging, rescore, retriever, sort};

fn source_selection() -> Shape {
    either([flag(), several(text().about("path or pattern")), source_filter_shape()])
}

/// What parts of a search hold, by the names in the OpenAPI document.
pub fn schemas() -> impl Iterator<Item = Named> {
    let own = [
        ("SourceSelection", source_selection()),
        ("FieldRequests", fields::shape()),
        ("Sort", sort::shape()),
        ("Highlight", highlight::shape()),
        ("Collapse", collapse::shape()),
        ("InnerHits", collapse::inner_hits_shape()),
        ("Rescore", rescore::shape()),
        ("Retriever", retriever::shape()),
        ("Slice", paging::slice_shape()),
        ("Suggest", sparrow_suggest::shape()),
    ];
    own.into_iter().chain(aggs::schemas())
}

#[cfg(test)]
mod tests {
    use sparrow_query::dsl::Context;
    use sparrow_wire::BodyError;
    use sparrow_wire::json::{self, Member};

    use crate::SearchBody;

    fn is_read(name: &str) -> bool {
        ["1", "\"x\"", "true", "{}", "[]"].iter().any(|value| {
            let (node, _) = json::read(format!(r#"{{"{name}": {value}}}"#).as_bytes()).unwrap();
            let member: &Member = &node.as_object().unwrap()[0];
            match SearchBody::default().section(member, Context::new(10)) {
                Err(BodyError::Parsing { reason, .. }) => !reason.starts_with("Unknown key"),
                _ => true,
            }
        })
    }

    #[test]
    fn what_a_search_is_said_to_hold_is_read() {
        let unread: Vec<_> =
            crate::search_shape().names().iter().copied().filter(|name| !is_read(name)).collect();
        assert!(unread.is_empty(), "{unread:?}");
        assert!(!is_read("qurey"));
    }

    #[test]
    fn what_a_retriever_is_said_to_hold_is_what_is_read() {
        let kinds = crate::retriever::kinds();
        let all: std::collections::BTreeSet<&str> =
            kinds.iter().flat_map(|(_, shape)| shape.names()).copied().collect();
        let mut wrong = Vec::new();
        for (kind, shape) in &kinds {
            for member in &all {
                let is_read = ["1", "\"x\"", "true", "{}", "[]"].iter().any(|value| {
                    let body = format!(r#"{{"retriever": {{"{kind}": {{"{member}": {value}}}}}}}"#);
                    match SearchBody::parse(body.as_bytes(), None) {
                        Err(BodyError::UnknownField { field, .. }) => field != *member,
                        _ => true,
                    }
                });
                if is_read != shape.names().contains(member) {
                    wrong.push(format!("{kind}: {member}"));
                }
            }
        }
        assert!(wrong.is_empty(), "{wrong:?}");
    }
}
