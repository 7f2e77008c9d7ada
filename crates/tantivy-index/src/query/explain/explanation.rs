//! The computation of a score, step by step.

/// One step of the computation of a score.
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation {
    /// Result of the step.
    pub value: f32,
    /// Words for what was computed.
    pub description: String,
    /// Steps that the result was computed from: the parts of a sum or the factors of a product.
    pub details: Vec<Explanation>,
    /// Field and token of a stored weight that was read, so that the caller can say which words it comes
    /// from.
    pub token: Option<(String, String)>,
    /// Whether the document does not match; the value is then meaningless.
    pub no_match: bool,
}

impl Explanation {
    /// A step without details.
    pub fn new(value: f32, description: impl Into<String>) -> Self {
        Self { value, description: description.into(), details: Vec::new(), token: None, no_match: false }
    }

    /// A step with its details.
    pub fn of(value: f32, description: impl Into<String>, details: Vec<Explanation>) -> Self {
        Self { details, ..Self::new(value, description) }
    }

    /// The explanation of a document that does not match.
    pub fn no_match(description: impl Into<String>) -> Self {
        Self { no_match: true, ..Self::new(0.0, description) }
    }

    /// Sets the value to the score that a search found, which may differ in the last bit because a sum was
    /// added up in another order.
    pub fn settle(&mut self, score: f32) {
        self.value = score;
        if let ("weight(", [inner]) = (self.description.get(..7).unwrap_or_default(), &mut self.details[..]) {
            inner.value = score;
        }
    }
}
