//! What the options of all suggesters are read with.

use sparrow_query::dsl::value;
use sparrow_wire::BodyError;
use sparrow_wire::json::Node;

/// Highest number of suggestions.
const MAX_SIZE: usize = 1_000;

/// What a suggester is asked about, as it stands beside its options.
#[derive(Debug, Default)]
pub struct Texts {
    pub text: Option<String>,
    pub prefix: Option<String>,
    pub regex: Option<String>,
}

impl Texts {
    /// The text that stands beside the options, under whichever name, or that of all suggesters.
    pub fn any(self, common: Option<&str>) -> Option<String> {
        self.text.or(self.prefix).or(self.regex).or_else(|| common.map(str::to_owned))
    }
}

/// Checks that the options of a suggester name a field.
pub fn required_field(field: &str, options: &Node) -> Result<(), BodyError> {
    if field.is_empty() {
        return Err(BodyError::parsing(options.end, "the required field option [field] is missing"));
    }
    Ok(())
}

/// Reads a number of suggestions or of letters, which has a bound.
pub fn positive(node: &Node, name: &str) -> Result<usize, BodyError> {
    match value::int(node)? {
        number @ 1.. if number as usize <= MAX_SIZE => Ok(number as usize),
        1.. => Err(BodyError::illegal(format!("{name} must be at most {MAX_SIZE}"))),
        _ => Err(BodyError::illegal(format!("{name} must be positive"))),
    }
}

/// Reads a number of letters or of terms.
pub fn not_negative(node: &Node, name: &str) -> Result<usize, BodyError> {
    usize::try_from(value::int(node)?).map_err(|_| BodyError::illegal(format!("{name} must be positive")))
}
