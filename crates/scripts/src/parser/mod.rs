//! From tokens to the tree, in one pass: names are resolved while they are read.

mod expressions;
mod literals;
mod statements;

use std::sync::Arc;

use crate::context::Context;
use crate::lexer::{Refusal, Token, TokenKind, tokens};
use crate::tree::{Body, Code, Statement};
use crate::types::Type;

/// Deepest nesting of brackets, blocks and signs.
const MOST_LEVELS: usize = 200;
/// Most variables of a function.
const MOST_VARIABLES: usize = 10_000;
/// Most variables around it that a lambda uses.
const MOST_CAPTURES: usize = 200;

/// Names that are no variables.
const KEYWORDS: [&str; 28] = [
    "if",
    "else",
    "while",
    "do",
    "for",
    "in",
    "continue",
    "break",
    "return",
    "new",
    "try",
    "catch",
    "throw",
    "this",
    "instanceof",
    "true",
    "false",
    "null",
    "def",
    "void",
    "boolean",
    "byte",
    "short",
    "char",
    "int",
    "long",
    "float",
    "double",
];

/// Reads a script.
pub(crate) fn parse(source: &str, context: &Context) -> Result<Code, Refusal> {
    let tokens = tokens(source)?;
    let mut parser = Parser {
        source,
        closing: closing(&tokens),
        tokens,
        next: 0,
        context,
        code: Code {
            used: vec![false; context.variables.len() + 1],
            called: vec![false; context.functions.len()],
            ..Code::default()
        },
        functions: Vec::new(),
        scopes: Vec::new(),
        lambdas: Vec::new(),
        depth: 0,
        loops: 0,
    };
    parser.script()?;
    Ok(parser.code)
}

/// Finds what [`Parser::closing`] holds, in one pass: a script may have tens of thousands of brackets.
fn closing(tokens: &[Token]) -> Vec<usize> {
    let mut closing: Vec<usize> = (0..tokens.len()).collect();
    let mut open = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        match token.kind {
            TokenKind::Sign("(" | "[" | "{") => open.push(at),
            TokenKind::Sign(")" | "]" | "}") => {
                if let Some(opened) = open.pop() {
                    closing[opened] = at;
                }
            }
            _ => {}
        }
    }
    for opened in open {
        closing[opened] = tokens.len() - 1;
    }
    closing
}

struct Parser<'a> {
    source: &'a str,
    tokens: Vec<Token>,
    /// The token that closes the bracket at each token; the last token if none does, and the token itself if it opens none.
    closing: Vec<usize>,
    /// The next token to read.
    next: usize,
    context: &'a Context,
    code: Code,
    /// Names of the script's functions, and how many parameters they have.
    functions: Vec<(&'a str, usize)>,
    /// Variables of the function that is read, and of those around it.
    scopes: Vec<Scope<'a>>,
    /// Lambdas that were read; they come after the functions.
    lambdas: Vec<Body>,
    depth: usize,
    /// Loops around the statement, inside of its function.
    loops: usize,
}

/// The variables of one function.
#[derive(Default)]
struct Scope<'a> {
    variables: Vec<Variable<'a>>,
    slots: usize,
    captures: Vec<(u16, u16)>,
}

#[derive(Clone, Copy)]
struct Variable<'a> {
    name: &'a str,
    slot: u16,
    kind: Type,
    is_captured: bool,
}

impl<'a> Parser<'a> {
    fn script(&mut self) -> Result<(), Refusal> {
        self.find_functions();
        let mut bodies = Vec::new();
        for at in 0..self.functions.len() {
            let returns = self.type_of_declaration()?;
            self.next += 1;
            self.scopes.push(Scope::default());
            let parameters = self.parameters()?;
            let name = self.functions[at];
            if self.functions[..at].contains(&name) {
                let reason =
                    format!("Illegal duplicate functions [{}] with [{}] parameters.", name.0, name.1);
                return Err(self.refuse(reason));
            }
            let mut statements = self.block()?;
            if returns.name != "void" {
                return_last(&mut statements);
            }
            bodies.push(self.body(parameters, returns, statements));
        }
        self.scopes.push(Scope::default());
        let mut statements = Vec::new();
        while !self.is_end() {
            self.statement(&mut statements)?;
        }
        if statements.is_empty() {
            return Err(self.refuse("unexpected end of script."));
        }
        return_last(&mut statements);
        let script = self.body(Vec::new(), Type::DEF, statements);
        bodies.append(&mut self.lambdas);
        bodies.push(script);
        self.code.bodies = bodies;
        self.code.statements.sort_unstable();
        Ok(())
    }

    /// Finds the functions at the beginning of the script, so that they can call each other.
    fn find_functions(&mut self) {
        let mut at = 0;
        while let Some((_, after)) = self.type_at(at) {
            let name = &self.tokens[after];
            if name.kind != TokenKind::Word || !self.is_sign_at(after + 1, "(") {
                return;
            }
            let close = self.closing[after + 1];
            if !self.is_sign_at(close + 1, "{") {
                return;
            }
            let commas = (after + 1..close).filter(|at| self.is_sign_at(*at, ",")).count();
            let count = if close == after + 2 { 0 } else { commas + 1 };
            self.functions.push((&self.source[name.start..name.end], count));
            at = self.closing[close + 1] + 1;
        }
    }

    fn body(&mut self, parameters: Vec<Type>, returns: Type, statements: Vec<Statement>) -> Body {
        let scope = self.scopes.pop().unwrap_or_default();
        Body { parameters, slots: scope.slots, captures: scope.captures, returns, statements }
    }

    /// Reads `(int a, def b)`; the types of a lambda's parameters may be missing.
    fn parameters(&mut self) -> Result<Vec<Type>, Refusal> {
        let mut kinds = Vec::new();
        self.expect("(")?;
        while !self.sign(")") {
            if !kinds.is_empty() {
                self.expect(",")?;
            }
            let kind = if self.is_declaration() { self.type_of_declaration()? } else { Type::DEF };
            let name = self.name()?;
            self.declare(name, kind)?;
            kinds.push(kind);
        }
        Ok(kinds)
    }

    // Tokens.

    fn token(&self) -> &Token {
        &self.tokens[self.next.min(self.tokens.len() - 1)]
    }

    /// The byte at which the next token begins.
    fn at(&self) -> usize {
        self.token().start
    }

    #[expect(clippy::cast_possible_truncation, reason = "scripts have at most 65,535 characters")]
    fn place(&self) -> u32 {
        self.at() as u32
    }

    fn is_end(&self) -> bool {
        self.token().kind == TokenKind::End
    }

    fn is_sign_at(&self, at: usize, sign: &str) -> bool {
        matches!(self.tokens.get(at), Some(Token { kind: TokenKind::Sign(found), .. }) if *found == sign)
    }

    fn is_sign(&self, sign: &str) -> bool {
        self.is_sign_at(self.next, sign)
    }

    /// Reads a sign, if it is next.
    fn sign(&mut self, sign: &str) -> bool {
        let found = self.is_sign(sign);
        self.next += usize::from(found);
        found
    }

    fn expect(&mut self, sign: &str) -> Result<(), Refusal> {
        if self.sign(sign) {
            return Ok(());
        }
        if self.is_end() {
            return Err(self.unexpected());
        }
        let token = self.token();
        let found = &self.source[token.start..token.end];
        Err(self.refuse(format!("unexpected token ['{found}'] was expecting one of ['{sign}'].")))
    }

    fn word_at(&self, at: usize) -> Option<&'a str> {
        let token = self.tokens.get(at)?;
        (token.kind == TokenKind::Word).then(|| &self.source[token.start..token.end])
    }

    /// Reads a word, if it is next.
    fn word(&mut self, word: &str) -> bool {
        let found = self.word_at(self.next) == Some(word);
        self.next += usize::from(found);
        found
    }

    /// Reads the name of a variable or function.
    fn name(&mut self) -> Result<&'a str, Refusal> {
        match self.word_at(self.next) {
            Some(name) if !KEYWORDS.contains(&name) => {
                self.next += 1;
                Ok(name)
            }
            _ => Err(self.unexpected()),
        }
    }

    fn refuse(&self, reason: impl Into<String>) -> Refusal {
        Refusal::new(self.at(), reason)
    }

    fn unexpected(&self) -> Refusal {
        let token = self.token();
        if token.kind == TokenKind::End {
            return self.refuse("unexpected end of script.");
        }
        self.refuse(format!("invalid sequence of tokens near ['{}'].", &self.source[token.start..token.end]))
    }

    /// Counts one more level of nesting. The caller ends the level by `self.depth -= 1`.
    fn deeper(&mut self) -> Result<(), Refusal> {
        self.depth += 1;
        if self.depth > MOST_LEVELS {
            return Err(self.refuse(format!("the script is nested deeper than [{MOST_LEVELS}] levels")));
        }
        Ok(())
    }

    // Types.

    /// The type whose name begins at a token, and the token after it with its brackets: the longest name that is one.
    fn type_at(&self, at: usize) -> Option<(Type, usize)> {
        let first = self.word_at(at)?;
        let mut end = at + 1;
        let mut found = Type::named(first).map(|kind| (kind, end));
        let mut name = first.to_owned();
        while end < at + 8 && self.is_sign_at(end, ".") {
            let Some(word) = self.word_at(end + 1) else { break };
            name = name + "." + word;
            end += 2;
            found = Type::named(&name).map(|kind| (kind, end)).or(found);
        }
        let (mut kind, mut end) = found?;
        while self.is_sign_at(end, "[") && self.is_sign_at(end + 1, "]") && kind.dimensions < u8::MAX {
            kind.dimensions += 1;
            end += 2;
        }
        Some((kind, end))
    }

    /// Whether a type and a name are next.
    fn is_declaration(&self) -> bool {
        let end = match self.type_at(self.next) {
            Some((_, end)) => end,
            // A type that there is not: to be named in the error.
            None if self.word_at(self.next).is_some_and(|word| !KEYWORDS.contains(&word)) => self.next + 1,
            None => return false,
        };
        self.word_at(end).is_some_and(|name| !KEYWORDS.contains(&name))
    }

    fn type_of_declaration(&mut self) -> Result<Type, Refusal> {
        match self.type_at(self.next) {
            Some((kind, end)) => {
                self.next = end;
                Ok(kind)
            }
            None => match self.word_at(self.next) {
                Some(name) => Err(self.refuse(format!("cannot resolve type [{name}]"))),
                None => Err(self.unexpected()),
            },
        }
    }

    // Variables.

    fn declare(&mut self, name: &'a str, kind: Type) -> Result<u16, Refusal> {
        self.check_new(name, self.next.saturating_sub(1))?;
        self.slot(name, kind, false)
    }

    /// Refuses the name, at a token, of a variable that there is already.
    fn check_new(&self, name: &str, token: usize) -> Result<(), Refusal> {
        let at = self.tokens[token].start;
        let hidden =
            self.scopes.iter().any(|scope| scope.variables.iter().any(|variable| variable.name == name));
        if hidden || name == "params" || self.context.variables.contains(&name) {
            return Err(Refusal::new(at, format!("variable [{name}] is already defined")));
        }
        Ok(())
    }

    fn slot(&mut self, name: &'a str, kind: Type, is_captured: bool) -> Result<u16, Refusal> {
        let at = self.at();
        let Some(scope) = self.scopes.last_mut() else { return Err(Refusal::new(at, "no scope")) };
        match u16::try_from(scope.slots) {
            Ok(slot) if scope.slots < MOST_VARIABLES => {
                scope.variables.push(Variable { name, slot, kind, is_captured });
                scope.slots += 1;
                Ok(slot)
            }
            _ => Err(Refusal::new(at, format!("the script has more than [{MOST_VARIABLES}] variables"))),
        }
    }

    /// The variable of this name in the function that is read; a lambda captures those around it.
    fn variable(&mut self, name: &str) -> Result<Option<Variable<'a>>, Refusal> {
        let find =
            |scope: &Scope<'a>| scope.variables.iter().rfind(|variable| variable.name == name).copied();
        let Some(level) = self.scopes.iter().rposition(|scope| find(scope).is_some()) else {
            return Ok(None);
        };
        let Some(mut found) = find(&self.scopes[level]) else { return Ok(None) };
        let inner = self.scopes.split_off(level + 1);
        for scope in inner {
            self.scopes.push(scope);
            let slot = self.slot(found.name, found.kind, true)?;
            if let Some(scope) = self.scopes.last_mut() {
                if scope.captures.len() >= MOST_CAPTURES {
                    let reason = format!("a lambda uses more than [{MOST_CAPTURES}] variables around it");
                    return Err(Refusal::new(self.at(), reason));
                }
                scope.captures.push((found.slot, slot));
                // It belongs to the whole lambda, and not only to the block in which it is first used.
                let captured = scope.variables.pop();
                scope.variables.splice(0..0, captured);
            }
            found = Variable { slot, is_captured: true, ..found };
        }
        Ok(Some(found))
    }

    fn text(&mut self, text: &str) -> u32 {
        index_of(&mut self.code.texts, text)
    }

    fn field(&mut self, name: &str) -> u32 {
        index_of(&mut self.code.fields, name)
    }
}

/// Position of a text, which is added if it is not there.
#[expect(clippy::cast_possible_truncation, reason = "scripts have at most 65,535 characters")]
fn index_of(texts: &mut Vec<Arc<str>>, text: &str) -> u32 {
    let found = texts.iter().position(|known| **known == *text).unwrap_or_else(|| {
        texts.push(text.into());
        texts.len() - 1
    });
    found as u32
}

/// Makes the last expression the result, as Painless does it.
fn return_last(statements: &mut Vec<Statement>) {
    match statements.pop() {
        Some(Statement::Expression(value)) => statements.push(Statement::Return(Some(value))),
        Some(mut other) => {
            match &mut other {
                Statement::Block(block) => return_last(block),
                Statement::If { cases, otherwise } => {
                    cases.iter_mut().for_each(|(_, block)| return_last(block));
                    return_last(otherwise);
                }
                Statement::Try { body, catches } => {
                    return_last(body);
                    catches.iter_mut().for_each(|(_, _, block)| return_last(block));
                }
                _ => {}
            }
            statements.push(other);
        }
        None => {}
    }
}
