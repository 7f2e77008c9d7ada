//! Expressions.

use super::{KEYWORDS, Parser};
use crate::lexer::{Refusal, TokenKind};
use crate::tables::{constant, has_constructor, has_static};
use crate::tree::{Kind, Node, Operator, Step, StepKind};
use crate::types::Type;

/// Operators between two values, those that bind more loosely first.
const LEVELS: [&[(&str, Operator)]; 12] = [
    // Elvis, `||` and `&&` are lists of their own.
    &[("?:", Operator::Same)],
    &[("||", Operator::Or)],
    &[("&&", Operator::And)],
    &[("|", Operator::Or)],
    &[("^", Operator::Xor)],
    &[("&", Operator::And)],
    &[
        ("===", Operator::Same),
        ("!==", Operator::NotSame),
        ("==", Operator::Equal),
        ("!=", Operator::NotEqual),
    ],
    &[("<=", Operator::AtMost), (">=", Operator::AtLeast), ("<", Operator::Less), (">", Operator::Greater)],
    &[("<<", Operator::Left), (">>>", Operator::UnsignedRight), (">>", Operator::Right)],
    &[("=~", Operator::Find), ("==~", Operator::Match)],
    &[("+", Operator::Add), ("-", Operator::Subtract)],
    &[("*", Operator::Multiply), ("/", Operator::Divide), ("%", Operator::Remainder)],
];
/// Where `instanceof` stands among them.
const INSTANCE: usize = 6;

const ASSIGNMENTS: [(&str, Operator); 11] = [
    ("+=", Operator::Add),
    ("-=", Operator::Subtract),
    ("*=", Operator::Multiply),
    ("/=", Operator::Divide),
    ("%=", Operator::Remainder),
    ("<<=", Operator::Left),
    (">>=", Operator::Right),
    (">>>=", Operator::UnsignedRight),
    ("&=", Operator::And),
    ("|=", Operator::Or),
    ("^=", Operator::Xor),
];

impl Parser<'_> {
    pub(super) fn expression(&mut self) -> Result<Node, Refusal> {
        self.deeper()?;
        let at = self.place();
        let node = if self.is_lambda() {
            Node { at, kind: Kind::Lambda(self.lambda()?) }
        } else {
            self.assignment()?
        };
        self.depth -= 1;
        Ok(node)
    }

    /// Whether `x ->` or `(…) ->` is next.
    fn is_lambda(&self) -> bool {
        let arrow = match self.is_sign("(") {
            true => self.closing[self.next] + 1,
            false if self.word_at(self.next).is_some() => self.next + 1,
            false => return false,
        };
        self.is_sign_at(arrow, "->")
    }

    fn assignment(&mut self) -> Result<Node, Refusal> {
        let at = self.place();
        let first = self.binary(0)?;
        if self.sign("?") {
            let mut cases = Vec::new();
            let mut condition = first;
            loop {
                let value = self.expression()?;
                self.expect(":")?;
                cases.push((condition, value));
                let next = if self.is_lambda() { self.expression()? } else { self.binary(0)? };
                if !self.sign("?") {
                    // An assignment may be the last branch.
                    let otherwise = Box::new(self.assigned(next, at)?);
                    return Ok(Node { at, kind: Kind::Choice { cases, otherwise } });
                }
                condition = next;
            }
        }
        self.assigned(first, at)
    }

    /// Reads the rest of an assignment to `to`, if there is one.
    fn assigned(&mut self, to: Node, at: u32) -> Result<Node, Refusal> {
        let operator = match ASSIGNMENTS.iter().find(|(sign, _)| self.is_sign(sign)) {
            Some((_, operator)) => Some(*operator),
            None if self.is_sign("=") => None,
            None => return Ok(to),
        };
        let kind = self.assignable(&to)?;
        self.next += 1;
        let value = Box::new(self.expression()?);
        Ok(Node { at, kind: Kind::Assign { to: Box::new(to), operator, value, kind } })
    }

    /// The type of what can be assigned to.
    fn assignable(&self, to: &Node) -> Result<Type, Refusal> {
        match &to.kind {
            Kind::Local(slot) => {
                let variables = self.scopes.last().map_or(&[][..], |scope| &scope.variables);
                match variables.iter().find(|variable| variable.slot == *slot) {
                    Some(variable) if variable.is_captured => Err(self.refuse(format!(
                        "invalid assignment: variable [{}] is captured by a lambda, and cannot be changed there",
                        variable.name
                    ))),
                    found => Ok(found.map_or(Type::DEF, |variable| variable.kind)),
                }
            }
            Kind::Access(_, steps)
                if steps
                    .last()
                    .is_some_and(|step| !step.is_safe && !matches!(step.kind, StepKind::Method(..))) =>
            {
                Ok(Type::DEF)
            }
            _ => Err(self.refuse(
                "invalid assignment: cannot assign a value to what is not a variable, a field or an element",
            )),
        }
    }

    /// Reads operators of a level and of those that bind closer.
    fn binary(&mut self, least: usize) -> Result<Node, Refusal> {
        let at = self.place();
        let mut left = self.unary()?;
        while let Some((level, _)) = self.operator(least) {
            if level == INSTANCE && self.word("instanceof") {
                let kind = self.type_of_declaration()?;
                left = Node { at, kind: Kind::IsA(Box::new(left), kind) };
                continue;
            }
            let mut rest = Vec::new();
            while let Some((same, operator)) = self.operator(level)
                && same == level
                && let Some(operator) = operator
            {
                self.next += 1;
                rest.push((operator, self.binary(level + 1)?));
            }
            let all = |left: Node, rest: Vec<(Operator, Node)>| {
                std::iter::once(left).chain(rest.into_iter().map(|(_, node)| node)).collect()
            };
            let kind = match level {
                0 => Kind::Elvis(all(left, rest)),
                1 => Kind::Any(all(left, rest)),
                2 => Kind::All(all(left, rest)),
                _ => Kind::Chain(Box::new(left), rest),
            };
            left = Node { at, kind };
        }
        Ok(left)
    }

    /// The level of the operator that is next, if it is at least this one; no operator for `instanceof`.
    fn operator(&self, least: usize) -> Option<(usize, Option<Operator>)> {
        if least <= INSTANCE && self.word_at(self.next) == Some("instanceof") {
            return Some((INSTANCE, None));
        }
        let TokenKind::Sign(sign) = self.token().kind else { return None };
        LEVELS.iter().enumerate().skip(least).find_map(|(level, operators)| {
            let (_, operator) = operators.iter().find(|(known, _)| *known == sign)?;
            Some((level, Some(*operator)))
        })
    }

    fn unary(&mut self) -> Result<Node, Refusal> {
        self.deeper()?;
        let at = self.place();
        let is_number =
            matches!(self.tokens.get(self.next + 1), Some(token) if token.kind == TokenKind::Number);
        let node = if self.is_sign("-") && is_number {
            self.next += 1;
            let kind = self.number(true)?;
            self.steps(Node { at, kind })?
        } else if self.is_sign("++") || self.is_sign("--") {
            let by = if self.is_sign("++") { 1 } else { -1 };
            self.next += 1;
            let to = Box::new(self.unary()?);
            let kind = self.assignable(&to)?;
            Node { at, kind: Kind::Bump { to, by, before: true, kind } }
        } else if let Some(make) = self.prefix() {
            self.next += 1;
            let value = Box::new(self.unary()?);
            Node { at, kind: make(value) }
        } else if let Some((kind, after)) = self.cast() {
            self.next = after;
            let value = if self.is_lambda() { self.expression()? } else { self.unary()? };
            Node { at, kind: Kind::Cast(kind, Box::new(value)) }
        } else {
            let value = self.primary()?;
            let to = self.steps(value)?;
            match [("++", 1), ("--", -1)].iter().find(|(sign, _)| self.is_sign(sign)) {
                None => to,
                Some((_, by)) => {
                    let kind = self.assignable(&to)?;
                    self.next += 1;
                    Node { at, kind: Kind::Bump { to: Box::new(to), by: *by, before: false, kind } }
                }
            }
        };
        self.depth -= 1;
        Ok(node)
    }

    fn prefix(&self) -> Option<fn(Box<Node>) -> Kind> {
        match self.token().kind {
            TokenKind::Sign("!") => Some(Kind::Not),
            TokenKind::Sign("-") => Some(Kind::Negative),
            TokenKind::Sign("+") => Some(Kind::Positive),
            TokenKind::Sign("~") => Some(Kind::Flipped),
            _ => None,
        }
    }

    /// The type of a cast that is next, and the token after it.
    fn cast(&self) -> Option<(Type, usize)> {
        if !self.is_sign("(") {
            return None;
        }
        let (kind, end) = self.type_at(self.next + 1)?;
        self.is_sign_at(end, ")").then_some((kind, end + 1))
    }

    pub(super) fn arguments(&mut self) -> Result<Vec<Node>, Refusal> {
        self.expect("(")?;
        self.items(")")
    }

    /// Reads expressions with commas between them, and the sign after them.
    pub(super) fn items(&mut self, close: &str) -> Result<Vec<Node>, Refusal> {
        let mut items = Vec::new();
        while !self.sign(close) {
            if !items.is_empty() {
                self.expect(",")?;
            }
            items.push(self.expression()?);
        }
        Ok(items)
    }

    /// Reads the accesses behind a value.
    fn steps(&mut self, value: Node) -> Result<Node, Refusal> {
        let at = value.at;
        let mut steps: Vec<Step> = Vec::new();
        loop {
            let place = self.place();
            let is_safe = self.is_sign("?.");
            if self.sign("[") {
                let index = self.expression()?;
                self.expect("]")?;
                steps.push(Step { at: place, is_safe, kind: StepKind::Index(index) });
            } else if is_safe || self.is_sign(".") {
                self.next += 1;
                let token = self.token();
                if !matches!(token.kind, TokenKind::Word | TokenKind::Number) {
                    return Err(self.unexpected());
                }
                let name = self.source[token.start..token.end].into();
                self.next += 1;
                let kind = match self.is_sign("(") {
                    true => StepKind::Method(name, self.arguments()?),
                    false => StepKind::Member(name),
                };
                steps.push(Step { at: place, is_safe, kind });
            } else if self.is_sign("::") && !matches!(value.kind, Kind::Lambda(_)) {
                self.next += 1;
                let name = self.method_name()?.into();
                let of = self.accessed(value, steps)?;
                return Ok(Node { at, kind: Kind::Reference(None, Some(Box::new(of)), name) });
            } else {
                return self.accessed(value, steps);
            }
        }
    }

    pub(super) fn method_name(&mut self) -> Result<&str, Refusal> {
        match self.word_at(self.next) {
            Some(name) => {
                self.next += 1;
                Ok(name)
            }
            None => Err(self.unexpected()),
        }
    }

    /// Joins a value and its accesses; those to `doc` lead to fields.
    fn accessed(&mut self, value: Node, mut steps: Vec<Step>) -> Result<Node, Refusal> {
        let at = value.at;
        let is_doc = matches!(&value.kind, Kind::Global(place) if self.context.variables.get(usize::from(*place)) == Some(&"doc"));
        let base = if is_doc {
            let field = match steps.first().map(|step| &step.kind) {
                Some(StepKind::Index(Node { kind: Kind::Text(text), .. })) => {
                    self.code.texts.get(*text as usize).cloned()
                }
                Some(StepKind::Member(name)) => Some(std::sync::Arc::clone(name)),
                Some(StepKind::Method(name, arguments)) => match (&**name, &arguments[..]) {
                    ("get", [Node { kind: Kind::Text(text), .. }]) => {
                        self.code.texts.get(*text as usize).cloned()
                    }
                    ("containsKey", _) => None,
                    _ => {
                        self.code.reads_other_fields = true;
                        None
                    }
                },
                _ => {
                    self.code.reads_other_fields = true;
                    None
                }
            };
            match field {
                Some(name) => {
                    let place = self.field(&name);
                    let at = steps.remove(0).at;
                    let is_value = |step: &Step| match &step.kind {
                        StepKind::Member(name) => &**name == "value",
                        StepKind::Method(name, arguments) => &**name == "getValue" && arguments.is_empty(),
                        StepKind::Index(_) => false,
                    };
                    match steps.first().is_some_and(is_value) {
                        true => {
                            let at = steps.remove(0).at;
                            Node { at, kind: Kind::DocValue(place) }
                        }
                        false => Node { at, kind: Kind::Doc(place) },
                    }
                }
                None => value,
            }
        } else {
            value
        };
        if steps.is_empty() {
            return Ok(base);
        }
        Ok(Node { at, kind: Kind::Access(Box::new(base), steps) })
    }

    fn primary(&mut self) -> Result<Node, Refusal> {
        let at = self.place();
        let kind = match self.token().kind.clone() {
            TokenKind::Number => self.number(false)?,
            TokenKind::Text(text) => {
                self.next += 1;
                Kind::Text(self.text(&text))
            }
            TokenKind::Regex(source, flags) => self.regex(&source, &flags)?,
            TokenKind::Sign("(") => {
                self.next += 1;
                let inner = self.expression()?;
                self.expect(")")?;
                return Ok(inner);
            }
            TokenKind::Sign("[") => self.collection()?,
            TokenKind::Sign("$") if self.is_sign_at(self.next + 1, "(") => self.field_function()?,
            TokenKind::Word => {
                let kind = self.worded()?;
                // A static method is reported at its point, as other methods are.
                let place = if let Kind::Static(_, point, ..) = &kind { *point } else { at };
                return Ok(Node { at: place, kind });
            }
            _ => return Err(self.unexpected()),
        };
        Ok(Node { at, kind })
    }

    /// Reads what begins with a word: a constant, a variable, a function, a class.
    fn worded(&mut self) -> Result<Kind, Refusal> {
        let Some(word) = self.word_at(self.next) else { return Err(self.unexpected()) };
        let simple = match word {
            "null" => Some(Kind::Null),
            "true" => Some(Kind::Bool(true)),
            "false" => Some(Kind::Bool(false)),
            _ => None,
        };
        if let Some(kind) = simple {
            self.next += 1;
            return Ok(kind);
        }
        if word == "new" {
            self.next += 1;
            return self.creation();
        }
        if self.is_sign_at(self.next + 1, "(") && !KEYWORDS.contains(&word) {
            return self.call(word);
        }
        if let Some(variable) = self.variable(word)? {
            self.next += 1;
            return Ok(Kind::Local(variable.slot));
        }
        let variables = self.context.variables;
        if let Some(place) = variables.iter().chain(&["params"]).position(|name| *name == word)
            && let Ok(slot) = u16::try_from(place)
        {
            self.next += 1;
            self.code.used[place] = true;
            return Ok(Kind::Global(slot));
        }
        match self.type_at(self.next) {
            Some((kind, end)) => self.of_class(kind, end),
            None if KEYWORDS.contains(&word) => Err(self.unexpected()),
            None => Err(self.refuse(format!("cannot resolve symbol [{word}]"))),
        }
    }

    fn call(&mut self, name: &str) -> Result<Kind, Refusal> {
        let at = self.at();
        self.next += 1;
        let host = self.context.functions.iter().position(|function| function.name == name);
        let has_doc = self.context.variables.contains(&"doc");
        if host.is_none() && name == "field" && has_doc && !self.functions.iter().any(|(own, _)| *own == name)
        {
            self.next -= 1;
            return self.field_function();
        }
        let arguments = self.arguments()?;
        if let Some(own) = self.functions.iter().position(|own| *own == (name, arguments.len())) {
            return Ok(Kind::Call(own, arguments));
        }
        match host {
            Some(place) if self.context.functions[place].arguments.contains(&arguments.len()) => {
                self.code.called[place] = true;
                Ok(Kind::HostCall(place, arguments))
            }
            _ => {
                Err(Refusal::new(at, format!("Unknown call [{name}] with [{}] arguments.", arguments.len())))
            }
        }
    }

    /// Reads `field('name')` or `$('name', default)`.
    fn field_function(&mut self) -> Result<Kind, Refusal> {
        let at = self.at();
        self.next += 1;
        let mut arguments = self.arguments()?;
        let default = if arguments.len() == 2 { arguments.pop().map(Box::new) } else { None };
        let (Some(name), true, true) =
            (arguments.pop(), arguments.is_empty(), self.context.variables.contains(&"doc"))
        else {
            return Err(Refusal::new(
                at,
                "Unknown call [field], which takes the name of a field where there is [doc].",
            ));
        };
        match &name.kind {
            Kind::Text(text) => {
                if let Some(name) = self.code.texts.get(*text as usize).cloned() {
                    self.field(&name);
                }
            }
            _ => self.code.reads_other_fields = true,
        }
        Ok(Kind::Field(Box::new(name), default))
    }

    /// Reads what follows a class: `.method(…)`, `.CONSTANT`, `::method`.
    fn of_class(&mut self, kind: Type, end: usize) -> Result<Kind, Refusal> {
        let at = self.at();
        let class = kind.full_name();
        if self.is_sign_at(end, "::") {
            self.next = end + 1;
            let name: std::sync::Arc<str> = self.method_name()?.into();
            if &*name == "new"
                && kind.dimensions == 0
                && !(0..3).any(|count| has_constructor(kind.name, count))
            {
                return Err(Refusal::new(
                    at,
                    format!("function reference [{class}::new/0] matching not found"),
                ));
            }
            return Ok(Kind::Reference(Some(kind.name), None, name));
        }
        let (true, Some(name)) = (self.is_sign_at(end, "."), self.word_at(end + 1)) else {
            return Err(self.refuse(format!("value required: instead found unexpected type [{class}]")));
        };
        self.next = end;
        let (point, at) = (self.place(), self.at());
        self.next = end + 2;
        if !self.is_sign("(") {
            let unknown = || Refusal::new(at, format!("static getter [{class}, {name}] not found"));
            return constant(kind.name, name).ok_or_else(unknown);
        }
        let arguments = self.arguments()?;
        if !has_static(kind.name, name, arguments.len()) {
            let count = arguments.len();
            return Err(Refusal::new(at, format!("static method [{class}, {name}/{count}] not found")));
        }
        Ok(Kind::Static(kind.name, point, name.into(), arguments))
    }
}
