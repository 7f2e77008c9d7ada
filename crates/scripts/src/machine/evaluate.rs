//! Expressions.

use std::rc::Rc;

use super::Run;
use super::numbers::{self, coerce, is_a};
use crate::error::Fault;
use crate::tree::{Kind, Node, Operator, Step, StepKind};
use crate::types::{Sort, Type};
use crate::value::Value;
use crate::value::collection::{Form, Name};
use crate::value::object::{Kept, Object};

impl<'s> Run<'s> {
    /// The value of an expression. A fault says where it happened.
    pub(crate) fn value(&mut self, node: &'s Node) -> Result<Value, Fault> {
        match &node.kind {
            Kind::Null => Ok(Value::Null),
            Kind::Bool(truth) => Ok(Value::Bool(*truth)),
            Kind::Int(int) => Ok(Value::Int(*int)),
            Kind::Long(long) => Ok(Value::Long(*long)),
            Kind::Float(float) => Ok(Value::Float(*float)),
            Kind::Double(double) => Ok(Value::Double(*double)),
            Kind::Char(unit) => Ok(Value::Char(*unit)),
            Kind::Text(text) => Ok(self.state.texts[*text as usize].clone()),
            Kind::Pattern(pattern) => Ok(self.state.patterns[*pattern as usize].clone()),
            Kind::Local(slot) => Ok(self.local(*slot).clone()),
            Kind::Global(place) => Ok(self.state.globals[usize::from(*place)].clone()),
            Kind::DocValue(place) => {
                let field = Rc::clone(&self.state.fields[*place as usize]);
                self.first_of(&field).map_err(|fault| fault.at(node.at))
            }
            Kind::Chain(first, rest) => self.chain(first, rest).map_err(|fault| fault.at(node.at)),
            _ => self.composite(node).map_err(|fault| fault.at(node.at)),
        }
    }

    fn local(&mut self, slot: u16) -> &mut Value {
        &mut self.state.stack[self.state.base + usize::from(slot)]
    }

    pub(crate) fn set_local(&mut self, slot: u16, value: Value) {
        *self.local(slot) = value;
    }

    fn chain(&mut self, first: &'s Node, rest: &'s [(Operator, Node)]) -> Result<Value, Fault> {
        self.check_depth()?;
        self.tick(rest.len() / 8)?;
        let mut left = self.value(first)?;
        for (operator, right) in rest {
            let right = self.value(right)?;
            left = self.combined(*operator, left, &right)?;
        }
        Ok(left)
    }

    /// The result of an operator.
    fn combined(&mut self, operator: Operator, left: Value, right: &Value) -> Result<Value, Fault> {
        if let (
            Value::Int(_) | Value::Long(_) | Value::Double(_),
            Value::Int(_) | Value::Long(_) | Value::Double(_),
        ) = (&left, right)
            && operator <= Operator::AtLeast
        {
            return numbers::combine(operator, &left, right);
        }
        match operator {
            Operator::Equal => Ok(Value::Bool(self.equal(&left, right)?)),
            Operator::NotEqual => Ok(Value::Bool(!self.equal(&left, right)?)),
            Operator::Same => Ok(Value::Bool(self.same(&left, right))),
            Operator::NotSame => Ok(Value::Bool(!self.same(&left, right))),
            Operator::Find | Operator::Match => {
                let text = self.shown(&left)?;
                let Value::Object(object) = right else {
                    return Err(Fault::cast(right.class_name(), "java.util.regex.Pattern"));
                };
                let Object::Pattern(pattern) = &**object else {
                    return Err(Fault::cast(right.class_name(), "java.util.regex.Pattern"));
                };
                self.tick(1 + text.len() / 16)?;
                let regex = if operator == Operator::Match { &pattern.whole } else { &pattern.regex };
                Ok(Value::Bool(regex.is_match(&text)))
            }
            Operator::Add if matches!(left, Value::Text(_)) || matches!(right, Value::Text(_)) => {
                let mut text = String::new();
                self.show(&left, &mut text, 0)?;
                self.show(right, &mut text, 0)?;
                self.text(text)
            }
            operator => numbers::combine(operator, &left, right),
        }
    }

    /// `===`: plain values are the same if they are equal.
    fn same(&self, a: &Value, b: &Value) -> bool {
        match (a, b) {
            (Value::Null, Value::Null) => true,
            (Value::Bool(a), Value::Bool(b)) => a == b,
            (Value::Text(a), Value::Text(b)) => ***a == ***b,
            _ => a.is_same(b) || numbers::equal(a, b).unwrap_or_default(),
        }
    }

    /// Whether a condition holds.
    pub(crate) fn truth(&mut self, node: &'s Node) -> Result<bool, Fault> {
        let value = self.value(node)?;
        self.as_truth(&value).map_err(|fault| fault.at(node.at))
    }

    pub(crate) fn as_truth(&self, value: &Value) -> Result<bool, Fault> {
        match value {
            Value::Bool(truth) => Ok(*truth),
            Value::Null => Err(Fault::null("boolean")),
            other => Err(Fault::cast(other.class_name(), "boolean")),
        }
    }

    pub(crate) fn values(&mut self, nodes: &'s [Node]) -> Result<Vec<Value>, Fault> {
        self.tick(nodes.len() / 8)?;
        nodes.iter().map(|node| self.value(node)).collect()
    }

    fn composite(&mut self, node: &'s Node) -> Result<Value, Fault> {
        self.check_depth()?;
        match &node.kind {
            Kind::All(all) => {
                for node in all {
                    if !self.truth(node)? {
                        return Ok(Value::Bool(false));
                    }
                }
                Ok(Value::Bool(true))
            }
            Kind::Any(any) => {
                for node in any {
                    if self.truth(node)? {
                        return Ok(Value::Bool(true));
                    }
                }
                Ok(Value::Bool(false))
            }
            Kind::Not(inner) => Ok(Value::Bool(!self.truth(inner)?)),
            Kind::Negative(inner) => numbers::unary('-', &self.value(inner)?),
            Kind::Positive(inner) => numbers::unary('+', &self.value(inner)?),
            Kind::Flipped(inner) => numbers::unary('~', &self.value(inner)?),
            Kind::Choice { cases, otherwise } => {
                for (condition, value) in cases {
                    if self.truth(condition)? {
                        return self.value(value);
                    }
                }
                self.value(otherwise)
            }
            Kind::Elvis(nodes) => {
                let mut value = Value::Null;
                for node in nodes {
                    value = self.value(node)?;
                    if !value.is_null() {
                        break;
                    }
                }
                Ok(value)
            }
            Kind::Access(base, steps) => {
                let (mut value, steps) = match self.peeked(base, steps) {
                    Some(value) => (value, &steps[1..]),
                    None => (self.value(base)?, &steps[..]),
                };
                for step in steps {
                    if step.is_safe && value.is_null() {
                        continue;
                    }
                    value = self.step(value, &step.kind).map_err(|fault| fault.at(step.at))?;
                }
                Ok(value)
            }
            Kind::Assign { to, operator, value, kind } => self.assign(to, *operator, value, *kind),
            Kind::Bump { to, by, before, kind } => self.bump(to, *by, *before, *kind),
            Kind::List(items) => {
                let items = self.values(items)?;
                self.list(items)
            }
            Kind::Map(entries) => {
                let map = Value::map([]);
                if let Value::Map(table) = &map {
                    for (key, value) in entries {
                        let (key, value) = (self.value(key)?, self.value(value)?);
                        let key = self.key(&key)?;
                        self.put(table, key, value)?;
                    }
                }
                Ok(map)
            }
            Kind::NewArray { of, lengths } => {
                let lengths = self.values(lengths)?;
                self.new_array(*of, &lengths)
            }
            Kind::ArrayOf { of, items } => {
                let items = self.values(items)?;
                let items: Result<Vec<Value>, Fault> =
                    items.into_iter().map(|item| coerce(item, *of, false)).collect();
                Ok(Value::Listed(items?, Form::Array(*of)))
            }
            Kind::New(class, arguments) => {
                let arguments = self.values(arguments)?;
                self.construct(class.name, &arguments)
            }
            Kind::Static(class, _, name, arguments) => {
                let arguments = self.values(arguments)?;
                self.call_static(class, name, &arguments)
            }
            Kind::Call(body, arguments) => {
                let arguments = self.values(arguments)?;
                self.enter(&self.code.bodies[*body], arguments, &[])
            }
            Kind::HostCall(function, arguments) => {
                let arguments = self.values(arguments)?;
                self.tick(1)?;
                self.host.call(*function, &arguments)
            }
            Kind::Lambda(body) => {
                let captures = &self.code.bodies[*body].captures;
                let captured = captures.iter().map(|(from, _)| self.local(*from).clone()).collect();
                self.tick(1)?;
                Ok(Object::Lambda(*body, Kept::new(captured)).into())
            }
            Kind::Reference(class, of, name) => {
                let of = match of {
                    Some(of) => vec![self.value(of)?],
                    None => Vec::new(),
                };
                self.tick(1)?;
                Ok(Object::Reference(*class, Kept::new(of), name.clone()).into())
            }
            Kind::Named(class, name) => Ok(Object::Named(class, name).into()),
            Kind::Cast(kind, inner) => coerce(self.value(inner)?, *kind, true),
            Kind::IsA(inner, kind) => Ok(Value::Bool(is_a(&self.value(inner)?, *kind))),
            Kind::Doc(place) => {
                let field = Rc::clone(&self.state.fields[*place as usize]);
                self.doc(field)
            }
            Kind::Field(name, default) => {
                let name = self.value(name)?;
                let name = self.name_of(&name)?;
                let field = self.field_named(&name);
                match default {
                    None => Ok(Object::Field(field).into()),
                    Some(default) => {
                        let default = self.value(default)?;
                        self.field_or(&field, 0, default)
                    }
                }
            }
            // The rest has been evaluated already.
            _ => self.value(node),
        }
    }

    /// The member of a map in a variable, which need not be copied for that.
    fn peeked(&self, base: &Node, steps: &[Step]) -> Option<Value> {
        let variable = match &base.kind {
            Kind::Global(place) => &self.state.globals[usize::from(*place)],
            Kind::Local(slot) => &self.state.stack[self.state.base + usize::from(*slot)],
            _ => return None,
        };
        match (variable, &steps.first()?.kind) {
            (Value::Map(table), StepKind::Member(name)) if &**name != "empty" => {
                Some(table.get(&Name(name)).unwrap_or_default())
            }
            _ => None,
        }
    }

    fn step(&mut self, value: Value, step: &'s StepKind) -> Result<Value, Fault> {
        match step {
            StepKind::Member(name) => self.member(&value, name),
            StepKind::Index(index) => {
                let index = self.value(index)?;
                self.element(&value, &index)
            }
            StepKind::Method(name, arguments) => {
                let arguments = self.values(arguments)?;
                self.call_method(&value, name, &arguments)
            }
        }
    }

    /// The collection of an access, evaluated up to its last step.
    fn target(&mut self, to: &'s Node) -> Result<(Value, &'s StepKind, u32), Fault> {
        let Kind::Access(base, steps) = &to.kind else { return Err(Fault::illegal("not assignable")) };
        let Some((last, steps)) = steps.split_last() else { return Err(Fault::illegal("not assignable")) };
        let mut value = self.value(base)?;
        for step in steps {
            if !(step.is_safe && value.is_null()) {
                value = self.step(value, &step.kind).map_err(|fault| fault.at(step.at))?;
            }
        }
        Ok((value, &last.kind, last.at))
    }

    fn assign(
        &mut self,
        to: &'s Node,
        operator: Option<Operator>,
        value: &'s Node,
        kind: Type,
    ) -> Result<Value, Fault> {
        if let Kind::Local(slot) = &to.kind {
            let value = match operator {
                None => coerce(self.value(value)?, kind, false)?,
                Some(operator) => {
                    let left = self.local(*slot).clone();
                    coerce(self.updated(operator, left, value)?, kind, true)?
                }
            };
            self.set_local(*slot, value.clone());
            return Ok(value);
        }
        let (target, step, at) = self.target(to)?;
        let mut assign = || match step {
            StepKind::Index(index) => {
                let index = self.value(index)?;
                let value = match operator {
                    None => self.value(value)?,
                    Some(operator) => {
                        let left = self.element(&target, &index)?;
                        self.updated(operator, left, value)?
                    }
                };
                self.set_element(&target, &index, value.clone())?;
                Ok(value)
            }
            StepKind::Member(name) | StepKind::Method(name, _) => {
                let value = match operator {
                    None => self.value(value)?,
                    Some(operator) => {
                        let left = self.member(&target, name)?;
                        self.updated(operator, left, value)?
                    }
                };
                self.set_member(&target, name, value.clone())?;
                Ok(value)
            }
        };
        assign().map_err(|fault: Fault| fault.at(at))
    }

    /// The result of `left += value` and the like, which keeps the type of what is on the left: 4 becomes 5 by `+= 1.5`.
    fn updated(&mut self, operator: Operator, left: Value, value: &'s Node) -> Result<Value, Fault> {
        let right = self.value(value)?;
        let sort = left.sort();
        if operator == Operator::Add
            && matches!(right, Value::Text(_))
            && !matches!(left, Value::Text(_) | Value::Null)
        {
            return Err(numbers::not_implicit(&left, "java.lang.String"));
        }
        let combined = self.combined(operator, left, &right).map_err(|fault| fault.at(value.at))?;
        Ok(numbers::converted(&combined, sort).unwrap_or(combined))
    }

    fn bump(&mut self, to: &'s Node, by: i32, before: bool, kind: Type) -> Result<Value, Fault> {
        let bumped = |old: &Value| numbers::combine(Operator::Add, old, &Value::Int(by));
        let (old, new) = if let Kind::Local(slot) = &to.kind {
            let old = self.local(*slot).clone();
            let new = coerce(bumped(&old)?, kind, true)?;
            self.set_local(*slot, new.clone());
            (old, new)
        } else {
            let (target, step, at) = self.target(to)?;
            let mut bump = || match step {
                StepKind::Index(index) => {
                    let index = self.value(index)?;
                    let old = self.element(&target, &index)?;
                    let new = bumped(&old)?;
                    self.set_element(&target, &index, new.clone())?;
                    Ok((old, new))
                }
                StepKind::Member(name) | StepKind::Method(name, _) => {
                    let old = self.member(&target, name)?;
                    let new = bumped(&old)?;
                    self.set_member(&target, name, new.clone())?;
                    Ok((old, new))
                }
            };
            bump().map_err(|fault: Fault| fault.at(at))?
        };
        Ok(if before { new } else { old })
    }

    /// An array whose elements are the default of their type.
    fn new_array(&mut self, of: Type, lengths: &[Value]) -> Result<Value, Fault> {
        let Some((length, inner)) = lengths.split_first() else { return Ok(Value::Null) };
        let Value::Int(length) = coerce(length.clone(), Type::INT, false)? else {
            return Err(Fault::null("int"));
        };
        let length = usize::try_from(length)
            .map_err(|_| Fault::new("negative_array_size_exception", length.to_string()))?;
        self.room(length.saturating_mul(size_of::<Value>()))?;
        self.tick(1 + length / 8)?;
        let mut items = Vec::with_capacity(length);
        for _ in 0..length {
            items.push(if inner.is_empty() { default_of(of) } else { self.new_array(of, inner)? });
        }
        let dimensions = u8::try_from(inner.len()).unwrap_or(u8::MAX);
        Ok(Value::Listed(items, Form::Array(Type { dimensions, ..of })))
    }
}

/// The value of a variable that was given none.
pub(crate) fn default_of(kind: Type) -> Value {
    let is_primitive =
        kind.dimensions == 0 && kind.name.starts_with(|first: char| first.is_ascii_lowercase());
    match kind.name {
        "boolean" if is_primitive => Value::Bool(false),
        name if is_primitive => numbers::converted(&Value::Int(0), Sort::of(name)).unwrap_or_default(),
        _ => Value::Null,
    }
}
