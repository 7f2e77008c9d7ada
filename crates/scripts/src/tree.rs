//! A script after it was read: names are places in frames and tables.
//!
//! What a script can make long without brackets (`1 + 1 + …`, `a.b.c…`, `else if`) is a list here, so that the depth of the tree
//! is that of the brackets, which the parser bounds.

use std::sync::Arc;

use crate::regexes::Pattern;
use crate::types::Type;

/// What a script compiles to.
#[derive(Debug, Default)]
pub(crate) struct Code {
    /// The script's functions and lambdas; the last is the script itself.
    pub bodies: Vec<Body>,
    pub texts: Vec<Arc<str>>,
    pub patterns: Vec<Pattern>,
    /// Names of fields that are read as `doc['name']`.
    pub fields: Vec<Arc<str>>,
    /// Which variables of the context are used; the last one is `params`.
    pub used: Vec<bool>,
    /// Which functions of the context are called.
    pub called: Vec<bool>,
    pub reads_other_fields: bool,
    /// Bytes at which statements begin, ascending.
    pub statements: Vec<usize>,
}

/// A function, a lambda, or the script.
#[derive(Debug)]
pub(crate) struct Body {
    /// Types of the parameters, which are in the first slots.
    pub parameters: Vec<Type>,
    /// Slots of a frame.
    pub slots: usize,
    /// For a lambda, slots of the enclosing frame, and where their values go.
    pub captures: Vec<(u16, u16)>,
    pub returns: Type,
    pub statements: Vec<Statement>,
}

#[derive(Debug)]
pub(crate) enum Statement {
    Expression(Node),
    Declare {
        slot: u16,
        kind: Type,
        value: Option<Node>,
    },
    If {
        cases: Vec<(Node, Vec<Statement>)>,
        otherwise: Vec<Statement>,
    },
    /// `while` and `for`, whose beginning is in a block around it.
    Loop {
        condition: Option<Node>,
        update: Vec<Statement>,
        body: Vec<Statement>,
    },
    Do {
        body: Vec<Statement>,
        condition: Node,
    },
    Each {
        slot: u16,
        kind: Type,
        of: Node,
        body: Vec<Statement>,
    },
    Block(Vec<Statement>),
    Break,
    Continue,
    Return(Option<Node>),
    Throw(Node),
    Try {
        body: Vec<Statement>,
        catches: Vec<(Type, u16, Vec<Statement>)>,
    },
}

/// An expression, and the byte at which it is reported.
#[derive(Debug)]
pub(crate) struct Node {
    pub at: u32,
    pub kind: Kind,
}

#[derive(Debug)]
pub(crate) enum Kind {
    Null,
    Bool(bool),
    Int(i32),
    Long(i64),
    Float(f32),
    Double(f64),
    Char(u16),
    Text(u32),
    Pattern(u32),
    /// A named constant, such as `ChronoUnit.DAYS`.
    Named(&'static str, &'static str),
    Local(u16),
    Global(u16),
    /// `doc['name']`.
    Doc(u32),
    /// `doc['name'].value`.
    DocValue(u32),
    /// `field(name)`, or with a default `$(name, default)`.
    Field(Box<Node>, Option<Box<Node>>),
    Chain(Box<Node>, Vec<(Operator, Node)>),
    All(Vec<Node>),
    Any(Vec<Node>),
    Not(Box<Node>),
    Negative(Box<Node>),
    Positive(Box<Node>),
    Flipped(Box<Node>),
    Choice {
        cases: Vec<(Node, Node)>,
        otherwise: Box<Node>,
    },
    /// The first that is not null.
    Elvis(Vec<Node>),
    Access(Box<Node>, Vec<Step>),
    Assign {
        to: Box<Node>,
        operator: Option<Operator>,
        value: Box<Node>,
        kind: Type,
    },
    /// `++` and `--`.
    Bump {
        to: Box<Node>,
        by: i32,
        before: bool,
        kind: Type,
    },
    List(Vec<Node>),
    Map(Vec<(Node, Node)>),
    NewArray {
        of: Type,
        lengths: Vec<Node>,
    },
    ArrayOf {
        of: Type,
        items: Vec<Node>,
    },
    New(Type, Vec<Node>),
    /// The class, the byte of the point, the method, and the arguments.
    Static(&'static str, u32, Arc<str>, Vec<Node>),
    Call(usize, Vec<Node>),
    HostCall(usize, Vec<Node>),
    Lambda(usize),
    /// `Class::method` or `value::method`.
    Reference(Option<&'static str>, Option<Box<Node>>, Arc<str>),
    Cast(Type, Box<Node>),
    IsA(Box<Node>, Type),
}

/// One step of an access: `.name`, `[index]`, `.name(arguments)`.
#[derive(Debug)]
pub(crate) struct Step {
    pub at: u32,
    /// Whether it is skipped on null: `?.`.
    pub is_safe: bool,
    pub kind: StepKind,
}

#[derive(Debug)]
pub(crate) enum StepKind {
    Member(Arc<str>),
    Index(Node),
    Method(Arc<str>, Vec<Node>),
}

/// An operator between two values; those up to `AtLeast` are for numbers and booleans.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
pub(crate) enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    Left,
    Right,
    UnsignedRight,
    And,
    Or,
    Xor,
    Less,
    AtMost,
    Greater,
    AtLeast,
    Equal,
    NotEqual,
    Same,
    NotSame,
    Find,
    Match,
}

impl Operator {
    pub(crate) fn sign(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::Remainder => "%",
            Self::Left => "<<",
            Self::Right => ">>",
            Self::UnsignedRight => ">>>",
            Self::And => "&",
            Self::Or => "|",
            Self::Xor => "^",
            Self::Less => "<",
            Self::AtMost => "<=",
            Self::Greater => ">",
            Self::AtLeast => ">=",
            Self::Equal => "==",
            Self::NotEqual => "!=",
            Self::Same => "===",
            Self::NotSame => "!==",
            Self::Find => "=~",
            Self::Match => "==~",
        }
    }
}
