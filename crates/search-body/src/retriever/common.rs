//! What retrievers that hold others have in common: their parameters, and the errors of these.

use sparrow_query::Query;
use sparrow_query::dsl::{self, Context, value};
use sparrow_wire::json::{Location, Member, Node};
use sparrow_wire::{BodyError, glob};

use super::super::fusion::{Method, Normalizer};
use super::super::rank;
use super::super::shape::{self, Named, list, num, query, several, text};
use super::super::window::Window;
use super::simplified::{self, Simplified};
use super::{DEFAULT_WINDOW, Form, Fusion, Input, Retriever};

/// Normalizer of the short form of `linear` where the request names none: the one that ranks best in `docs/hybrid-search.md`.
/// Elasticsearch refuses such a request.
const SHORT_FORM: Normalizer = Normalizer::ZScore;

/// Parameters that `rrf` and `linear` share.
#[derive(Default)]
pub struct Common {
    pub inputs: Option<Vec<Input>>,
    simplified: Simplified,
    /// Whether the request sets a `rank_constant`.
    pub names_constant: bool,
    pub window: Option<usize>,
    filters: Vec<Query>,
    min_score: Option<f32>,
    name: Option<String>,
}

/// What every retriever has.
pub fn named() -> [Named; 3] {
    [("filter", several(query())), ("min_score", num().about("hits of less are left out")), ("_name", text())]
}

/// What the short form has in place of retrievers.
pub fn short_form() -> [Named; 2] {
    let about = "a question: the words of all fields and every kind of vector of the `semantic_text` fields are searched";
    let fields = "names or patterns, with weights as `title^2`; all if nothing is said";
    [("query", text().about(about)), ("fields", list(text()).about(fields))]
}

/// A retriever inside another.
pub fn inner_shape() -> Named {
    ("retriever", shape::named("Retriever"))
}

impl Common {
    /// Reads `member` if it is a shared parameter; returns whether it is.
    pub fn take(
        &mut self,
        parser: &'static str,
        member: &Member,
        context: Context,
    ) -> Result<bool, BodyError> {
        let node = &member.value;
        match &*member.name {
            "query" => self.simplified.query = Some(value::text(node)?),
            "fields" => self.simplified.fields = Some(glob::distinct("fields", value::texts(node)?)?),
            "rank_window_size" => self.window = Some(rank::window(parser, value::int(node)?)?),
            "filter" => self.filters = queries(node, context)?,
            "min_score" => self.min_score = Some(least(value::float(node)?)?),
            "_name" => self.name = value::name(node)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Sets the single list of a retriever that has just one.
    pub fn set_list(&mut self, input: Input) {
        self.inputs = Some(vec![input]);
    }

    pub fn build(
        self,
        method: Method,
        normalizer: Option<Normalizer>,
        context: Context,
    ) -> Result<Fusion, BodyError> {
        let mut fusion = Fusion {
            method,
            inputs: self.inputs.unwrap_or_default(),
            window: match self.window {
                Some(window) => Window::Given(window),
                None => Window::Default(DEFAULT_WINDOW.max(context.size)),
            },
            min_score: self.min_score,
            name: self.name,
            form: Form::Retriever,
            stage: None,
        };
        let messages = self.simplified.problems(&fusion, normalizer);
        if !messages.is_empty() {
            return Err(BodyError::Validation { messages });
        }
        let constant = self.names_constant;
        let by_default = method == Method::Linear && normalizer.is_none();
        if let Some(standard) =
            simplified::list(fusion.kind(), &self.simplified, constant, by_default, context)?
        {
            let standard = Retriever::Standard(standard);
            // Ranks need none.
            let least = if by_default { SHORT_FORM } else { Normalizer::None };
            fusion.inputs = vec![Input { normalizer: normalizer.unwrap_or(least), ..Input::new(standard) }];
        }
        fusion.inputs.iter_mut().for_each(|input| input.retriever.restrict(&self.filters));
        Ok(fusion)
    }
}

/// Reads one query, or an array of queries.
pub fn queries(node: &Node, context: Context) -> Result<Vec<Query>, BodyError> {
    match node.as_array() {
        Some(items) => items.iter().map(|item| dsl::parse_query(item, context)).collect(),
        None => Ok(vec![dsl::parse_query(node, context)?]),
    }
}

fn least(score: f32) -> Result<f32, BodyError> {
    if score < 0.0 {
        return Err(BodyError::illegal(format!(
            "[min_score] must be greater than or equal to 0, was: [{score:?}]"
        )));
    }
    Ok(score)
}

/// Reads every member of a retriever. Errors name the member in which they occurred.
pub fn each<'m>(
    parser: &'static str,
    members: &'m [Member],
    mut read: impl FnMut(&'m Member) -> Result<(), BodyError>,
) -> Result<(), BodyError> {
    members.iter().try_for_each(|member| read(member).map_err(|error| within(error, parser, member)))
}

/// The error for parameters that are required and not given; `parameters` are names with whether each is missing.
pub fn required(end: Location, parameters: &[(&str, bool)]) -> BodyError {
    let missing: Vec<&str> =
        parameters.iter().filter(|(_, is_missing)| *is_missing).map(|(name, _)| *name).collect();
    BodyError::parsing(end, format!("Required [{}]", missing.join(", ")))
}

/// Wraps an error in the name of the field it occurred in, unless it is about the field itself or about the
/// whole retriever.
pub fn within(error: BodyError, parser: &'static str, member: &Member) -> BodyError {
    match error {
        BodyError::UnknownField { parser: of, .. } if of == parser => error,
        BodyError::Validation { .. } => error,
        other => other.within(parser, &member.name, member.value.at),
    }
}
