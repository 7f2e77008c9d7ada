//! Scripts of `script_score`: a small expression language, as much of Painless as exact vector search is written in.
//!
//! ```text
//! script     := (type name '=' expression ';')* ('if' '(' expression ')' ('{' return '}' | return))* return
//! return     := 'return' expression ';'?      the last one may be an expression alone
//! expression := comparison ('?' expression ':' expression)?
//! comparison := sum (('<' | '<=' | '>' | '>=' | '==' | '!=') sum)?
//! sum        := product (('+' | '-') product)*
//! product    := unary (('*' | '/') unary)*
//! unary      := '-' unary | number | '_score' | name | 'params.' name | '(' expression ')'
//!             | function '(' arguments ')' | "doc['" field "']" ('.size()' | '.empty' | '.isEmpty()')
//! ```
//!
//! All values are numbers of double precision; a comparison is 1 or 0. There are no loops, so a script ends after as many
//! steps as it has signs.

mod parse;

pub use parse::{Params, parse};

/// A parsed script that computes the score of a document.
#[derive(Debug, Clone, PartialEq)]
pub struct Script {
    /// The script's text as the request wrote it.
    pub source: String,
    /// The expression for the score, with local variables replaced by their values.
    pub score: Expression,
    /// Paths of the fields whose vectors or values the script uses, each once; expressions refer to them by position.
    pub fields: Vec<String>,
    /// The vectors from the script that documents are compared with; expressions refer to them by position.
    pub vectors: Vec<Vec<f32>>,
}

/// An expression of a script.
#[derive(Debug, Clone, PartialEq)]
pub enum Expression {
    /// A number.
    Number(f64),
    /// The score of the query inside the `script_score`.
    Score,
    /// Number of values that a document has in the field at this position.
    Size(usize),
    /// A comparison of a vector of the script with the one in a document's field, both by position.
    Vector { function: VectorFunction, vector: usize, field: usize },
    /// `-x`.
    Negative(Box<Expression>),
    /// Two numbers combined by an operator.
    Binary { operator: Operator, left: Box<Expression>, right: Box<Expression> },
    /// `condition ? yes : no`.
    Choice { condition: Box<Expression>, yes: Box<Expression>, no: Box<Expression> },
    /// A function of numbers.
    Call { function: Function, arguments: Vec<Expression> },
}

/// A function that compares two vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VectorFunction {
    /// The cosine of the angle between the two vectors.
    CosineSimilarity,
    /// Dot product of the two vectors.
    DotProduct,
    /// Sum of the absolute differences of the components.
    L1Norm,
    /// Euclidean distance of the two vectors.
    L2Norm,
}

impl VectorFunction {
    /// Name of the function in scripts.
    pub fn name(self) -> &'static str {
        match self {
            Self::CosineSimilarity => "cosineSimilarity",
            Self::DotProduct => "dotProduct",
            Self::L1Norm => "l1norm",
            Self::L2Norm => "l2norm",
        }
    }

    /// Value of the function for two vectors of the same length, summed in double precision.
    pub fn of(self, a: &[f32], b: &[f32]) -> f64 {
        let pairs = || a.iter().zip(b).map(|(a, b)| (f64::from(*a), f64::from(*b)));
        let dot = |pairs: &mut dyn Iterator<Item = (f64, f64)>| pairs.map(|(a, b)| a * b).sum::<f64>();
        let length =
            |vector: &[f32]| vector.iter().map(|x| f64::from(*x) * f64::from(*x)).sum::<f64>().sqrt();
        match self {
            Self::CosineSimilarity => dot(&mut pairs()) / (length(a) * length(b)),
            Self::DotProduct => dot(&mut pairs()),
            Self::L1Norm => pairs().map(|(a, b)| (a - b).abs()).sum(),
            Self::L2Norm => pairs().map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt(),
        }
    }
}

/// An operator between two numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Equal,
    NotEqual,
}

/// A function of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Function {
    Sigmoid,
    Saturation,
    Abs,
    Exp,
    Log,
    Log10,
    Max,
    Min,
    Pow,
    Sqrt,
}

impl Function {
    /// Name in scripts, function, and number of arguments of each function.
    pub(crate) const ALL: [(&'static str, Self, usize); 10] = [
        ("sigmoid", Self::Sigmoid, 3),
        ("saturation", Self::Saturation, 2),
        ("Math.abs", Self::Abs, 1),
        ("Math.exp", Self::Exp, 1),
        ("Math.log", Self::Log, 1),
        ("Math.log10", Self::Log10, 1),
        ("Math.max", Self::Max, 2),
        ("Math.min", Self::Min, 2),
        ("Math.pow", Self::Pow, 2),
        ("Math.sqrt", Self::Sqrt, 1),
    ];

    fn of(self, x: &[f64]) -> f64 {
        match (self, x) {
            // As Elasticsearch has it: value^a / (k^a + value^a).
            (Self::Sigmoid, [value, k, a]) => value.powf(*a) / (k.powf(*a) + value.powf(*a)),
            (Self::Saturation, [value, k]) => value / (k + value),
            (Self::Abs, [x]) => x.abs(),
            (Self::Exp, [x]) => x.exp(),
            (Self::Log, [x]) => x.ln(),
            (Self::Log10, [x]) => x.log10(),
            (Self::Max, [a, b]) => a.max(*b),
            (Self::Min, [a, b]) => a.min(*b),
            (Self::Pow, [x, y]) => x.powf(*y),
            (Self::Sqrt, [x]) => x.sqrt(),
            _ => f64::NAN,
        }
    }
}

/// Gives an expression the values of one document.
pub trait Values {
    /// The error for a value that is not available.
    type Error;

    /// The document's score for the query inside the `script_score`.
    fn score(&mut self) -> f64;

    /// Number of values that the document has in the field at this position.
    ///
    /// # Errors
    /// When they cannot be counted.
    fn size(&mut self, field: usize) -> Result<f64, Self::Error>;

    /// Result of comparing the script's vector at this position with the vector in the document's field.
    ///
    /// # Errors
    /// When the document has none, or one of another length.
    fn compared(&mut self, function: VectorFunction, vector: usize, field: usize)
    -> Result<f64, Self::Error>;
}

impl Expression {
    /// Evaluates the expression for a document.
    ///
    /// # Errors
    /// The first value that is not available. Branches that are not taken need none.
    pub fn value<V: Values>(&self, of: &mut V) -> Result<f64, V::Error> {
        Ok(match self {
            Self::Number(number) => *number,
            Self::Score => of.score(),
            Self::Size(field) => of.size(*field)?,
            Self::Vector { function, vector, field } => of.compared(*function, *vector, *field)?,
            Self::Negative(inner) => -inner.value(of)?,
            Self::Binary { operator, left, right } => {
                let (left, right) = (left.value(of)?, right.value(of)?);
                let truth = |holds: bool| f64::from(u8::from(holds));
                match operator {
                    Operator::Add => left + right,
                    Operator::Subtract => left - right,
                    Operator::Multiply => left * right,
                    Operator::Divide => left / right,
                    Operator::Less => truth(left < right),
                    Operator::LessOrEqual => truth(left <= right),
                    Operator::Greater => truth(left > right),
                    Operator::GreaterOrEqual => truth(left >= right),
                    Operator::Equal => truth(left == right),
                    Operator::NotEqual => truth(left != right),
                }
            }
            Self::Choice { condition, yes, no } => match condition.value(of)? != 0.0 {
                true => yes.value(of)?,
                false => no.value(of)?,
            },
            Self::Call { function, arguments } => {
                let arguments: Vec<f64> =
                    arguments.iter().map(|argument| argument.value(of)).collect::<Result<_, _>>()?;
                function.of(&arguments)
            }
        })
    }

    /// Whether the expression uses the score of the query inside the `script_score`.
    pub fn needs_score(&self) -> bool {
        match self {
            Self::Score => true,
            Self::Number(_) | Self::Size(_) | Self::Vector { .. } => false,
            Self::Negative(inner) => inner.needs_score(),
            Self::Binary { left, right, .. } => left.needs_score() || right.needs_score(),
            Self::Choice { condition, yes, no } => {
                condition.needs_score() || yes.needs_score() || no.needs_score()
            }
            Self::Call { arguments, .. } => arguments.iter().any(Self::needs_score),
        }
    }
}
