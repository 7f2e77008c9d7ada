//! `inner_hits`: searches whose hits are shown inside a hit: those of a collapsed group, and the objects of a nested field that match.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use sparrow_call::error::EngineError;
use sparrow_index::DocAddress;
use sparrow_index::query::TotalHits;
use sparrow_query::dsl::{Context, value};
use sparrow_query::{NestedQuery, Query, QueryKind, walk};
use sparrow_wire::BodyError;
use sparrow_wire::json::Node;
use sparrow_wire::suggest::suggestions;

use super::body::SearchBody;
use super::collapse;
use super::execute;
use super::hits;
use super::response;
use super::target::Target;
use super::uri::Presentation;
use crate::service::SearchService;

/// Default number of hits.
const DEFAULT_SIZE: usize = 3;

/// Most bytes of a name, as it is repeated with every hit.
const MOST_NAME: usize = 1000;

/// One `inner_hits` section.
#[derive(Debug, Clone, PartialEq)]
pub struct InnerHits {
    /// Name in the answer.
    pub name: String,
    /// The search for the hits, without its query, which is that of the group or of the objects.
    pub body: Box<SearchBody>,
}

/// The `inner_hits` of a `nested` clause.
#[derive(Debug)]
pub struct NestedHits<'q> {
    /// The clause.
    pub clause: &'q NestedQuery,
    pub hits: InnerHits,
}

/// What every section may have; `collapse` only that of a group.
const KEYS: &[&str] = &[
    "name",
    "ignore_unmapped",
    "from",
    "size",
    "sort",
    "_source",
    "fields",
    "docvalue_fields",
    "stored_fields",
    "version",
    "seq_no_primary_term",
    "track_scores",
    "highlight",
    "explain",
    "collapse",
];

impl InnerHits {
    /// Reads a section of a `collapse`.
    ///
    /// # Errors
    /// On unknown keys and values, and without a name.
    pub fn of_group(node: &Node, context: Context) -> Result<Self, BodyError> {
        let (name, body) = parse(node, context, true)?;
        let name = name.ok_or_else(|| {
            BodyError::illegal("inner_hits must have a [name] set for each instance in collapse context")
        })?;
        Ok(Self { name, body })
    }
}

fn parse(
    node: &Node,
    context: Context,
    of_group: bool,
) -> Result<(Option<String>, Box<SearchBody>), BodyError> {
    let Some(members) = node.as_object() else {
        return Err(BodyError::parsing(
            node.at,
            format!("Expected [START_OBJECT] but found [{}]", node.token()),
        ));
    };
    let mut body = SearchBody { size: DEFAULT_SIZE, ..SearchBody::default() };
    let mut name = None;
    for member in members {
        match &*member.name {
            "name" => {
                let given = value::text(&member.value)?;
                value::check_length("name", &given, MOST_NAME)?;
                name = Some(given);
            }
            "ignore_unmapped" => {
                value::boolean(&member.value)?;
            }
            "size" => body.size = value::unsigned(&member.value, "size")?,
            "collapse" if of_group => {
                let second = collapse::parse(&member.value, context)?;
                if !second.inner_hits.is_empty() {
                    return Err(BodyError::parsing(
                        member.at,
                        "[inner_hits] of a [collapse] within [inner_hits] is not supported by this server",
                    ));
                }
                body.collapse = Some(second);
            }
            "highlight" | "explain" if of_group => return Err(unknown(member)),
            "collapse" => return Err(unknown(member)),
            key if KEYS.contains(&key) => body.section(member, context)?,
            _ => return Err(unknown(member)),
        }
    }
    Ok((name, Box::new(body)))
}

fn unknown(member: &sparrow_wire::json::Member) -> BodyError {
    BodyError::UnknownField {
        parser: "inner_hits",
        field: member.name.to_string(),
        suggestions: suggestions(&member.name, KEYS),
        at: member.at,
    }
}

/// Checks that no two sections have the same name.
///
/// # Errors
/// The first name that is there twice.
pub fn check_names<'n>(names: impl Iterator<Item = &'n str>) -> Result<(), BodyError> {
    let mut seen = std::collections::HashSet::new();
    for name in names {
        if !seen.insert(name) {
            return Err(BodyError::illegal(format!(
                "[inner_hits] already contains an entry for key [{name}]"
            )));
        }
    }
    Ok(())
}

impl SearchBody {
    /// The `inner_hits` of the nested clauses of its queries. Those of clauses inside another one that has some are shown inside
    /// these.
    ///
    /// # Errors
    /// As [`InnerHits::of_group`].
    pub fn nested_hits(&self) -> Result<Vec<NestedHits<'_>>, BodyError> {
        let mut found = Vec::new();
        for query in self.matching_queries() {
            collect(query, &mut found)?;
        }
        check_names(found.iter().map(|nested: &NestedHits<'_>| &*nested.hits.name))?;
        Ok(found)
    }
}

fn collect<'q>(query: &'q Query, found: &mut Vec<NestedHits<'q>>) -> Result<(), BodyError> {
    if let QueryKind::Nested(clause) = &query.kind
        && let Some(node) = &clause.inner_hits
    {
        let (name, body) = parse(node, Context::new(DEFAULT_SIZE), false)?;
        let name = name.unwrap_or_else(|| clause.path.clone());
        found.push(NestedHits { clause, hits: InnerHits { name, body } });
        return Ok(());
    }
    walk::children(&query.kind).into_iter().try_for_each(|child| collect(child, found))
}

/// The `inner_hits` member of a hit, while it is written.
#[derive(Default)]
pub struct Written(Vec<u8>);

impl Written {
    /// Adds the hits of one search.
    ///
    /// # Errors
    /// When a document cannot be read, or the request has to stop.
    pub fn search(
        &mut self,
        service: &SearchService,
        name: &str,
        targets: &[Target],
        search: &SearchBody,
        shown: Presentation,
        cancel: &Arc<AtomicBool>,
    ) -> Result<(), EngineError> {
        let search = SearchBody { track_total_hits: Some(TotalHits::Exact), ..search.clone() };
        let outcome = execute::execute(targets, &search, cancel).map_err(EngineError::from)?;
        let hits = hits::read(service, targets, &search, shown, &outcome, None, cancel)?;
        self.0.push(if self.0.is_empty() { b'{' } else { b',' });
        self.0.extend_from_slice(serde_json::Value::from(name).to_string().as_bytes());
        self.0.extend_from_slice(b":{\"hits\":");
        response::write_hits(&mut self.0, &search, shown, targets.len(), &outcome, &hits)?;
        self.0.push(b'}');
        Ok(())
    }

    /// Adds the objects of a document that match a nested clause.
    ///
    /// # Errors
    /// As [`Written::search`].
    pub fn nested(
        &mut self,
        service: &SearchService,
        nested: &NestedHits<'_>,
        target: &Target,
        addr: DocAddress,
        shown: Presentation,
        cancel: &Arc<AtomicBool>,
    ) -> Result<(), EngineError> {
        let objects = Arc::new(target.snapshot.inside_of(addr, &nested.clause.path));
        let target = Target { snapshot: objects, ..target.clone() };
        let search =
            SearchBody { query: Some((*nested.clause.query).clone()), ..(*nested.hits.body).clone() };
        self.search(service, &nested.hits.name, &[target], &search, shown, cancel)
    }

    /// The member, as JSON; `None` without any search.
    pub fn finish(mut self) -> Option<Vec<u8>> {
        if self.0.is_empty() {
            return None;
        }
        self.0.push(b'}');
        Some(self.0)
    }
}
