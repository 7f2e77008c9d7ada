//! Statements and calls.

use super::Run;
use super::evaluate::default_of;
use super::numbers::coerce;
use crate::error::Fault;
use crate::tree::{Body, Statement};
use crate::types::{catches, exception};
use crate::value::Value;
use crate::value::object::Object;

/// How a statement ended.
pub(crate) enum Flow {
    Next,
    Break,
    Continue,
    Return(Value),
}

impl<'s> Run<'s> {
    /// Calls a function.
    pub(crate) fn enter(
        &mut self,
        body: &'s Body,
        arguments: Vec<Value>,
        captured: &[Value],
    ) -> Result<Value, Fault> {
        self.tick(1)?;
        self.check_depth()?;
        if arguments.len() != body.parameters.len() {
            let (needed, given) = (body.parameters.len(), arguments.len());
            return Err(Fault::illegal(format!(
                "a function of [{needed}] parameters is called with [{given}] arguments"
            )));
        }
        let base = self.state.stack.len();
        for (value, kind) in arguments.into_iter().zip(&body.parameters) {
            match coerce(value, *kind, false) {
                Ok(value) => self.state.stack.push(value),
                Err(fault) => {
                    self.state.stack.truncate(base);
                    return Err(fault);
                }
            }
        }
        self.state.stack.resize(base + body.slots, Value::Null);
        for ((_, slot), value) in body.captures.iter().zip(captured) {
            self.state.stack[base + usize::from(*slot)] = value.clone();
        }
        let before = std::mem::replace(&mut self.state.base, base);
        let flow = self.block(&body.statements);
        self.state.base = before;
        self.state.stack.truncate(base);
        match flow? {
            Flow::Return(value) => coerce(value, body.returns, false),
            _ => Ok(Value::Null),
        }
    }

    pub(crate) fn block(&mut self, statements: &'s [Statement]) -> Result<Flow, Fault> {
        self.tick(statements.len() / 8)?;
        for statement in statements {
            match self.statement(statement)? {
                Flow::Next => {}
                other => return Ok(other),
            }
        }
        Ok(Flow::Next)
    }

    fn statement(&mut self, statement: &'s Statement) -> Result<Flow, Fault> {
        match statement {
            Statement::Expression(node) => {
                self.value(node)?;
            }
            Statement::Declare { slot, kind, value } => {
                let value = match value {
                    Some(node) => {
                        coerce(self.value(node)?, *kind, false).map_err(|fault| fault.at(node.at))?
                    }
                    None => default_of(*kind),
                };
                self.set_local(*slot, value);
            }
            Statement::Return(None) => return Ok(Flow::Return(Value::Null)),
            Statement::Return(Some(node)) => return Ok(Flow::Return(self.value(node)?)),
            Statement::Break => return Ok(Flow::Break),
            Statement::Continue => return Ok(Flow::Continue),
            Statement::Throw(node) => {
                let value = self.value(node)?;
                return Err(thrown(&value).at(node.at));
            }
            compound => {
                self.check_depth()?;
                return self.compound(compound);
            }
        }
        Ok(Flow::Next)
    }

    fn compound(&mut self, statement: &'s Statement) -> Result<Flow, Fault> {
        match statement {
            Statement::Block(block) => return self.block(block),
            Statement::If { cases, otherwise } => {
                for (condition, block) in cases {
                    if self.truth(condition)? {
                        return self.block(block);
                    }
                }
                return self.block(otherwise);
            }
            Statement::Loop { condition, update, body } => {
                while match condition {
                    Some(condition) => self.truth(condition)?,
                    None => true,
                } {
                    self.tick(1)?;
                    match self.block(body)? {
                        Flow::Next | Flow::Continue => {}
                        Flow::Break => break,
                        result @ Flow::Return(_) => return Ok(result),
                    }
                    self.block(update)?;
                }
            }
            Statement::Do { body, condition } => loop {
                self.tick(1)?;
                match self.block(body)? {
                    Flow::Next | Flow::Continue => {}
                    Flow::Break => break,
                    result @ Flow::Return(_) => return Ok(result),
                }
                if !self.truth(condition)? {
                    break;
                }
            },
            Statement::Each { slot, kind, of, body } => {
                let all = self.value(of)?;
                let cursor = self.cursor(&all).map_err(|fault| fault.at(of.at))?;
                while cursor.has_next() {
                    self.tick(1)?;
                    let element = cursor.advance().and_then(|element| coerce(element, *kind, false));
                    self.set_local(*slot, element.map_err(|fault| fault.at(of.at))?);
                    match self.block(body)? {
                        Flow::Next | Flow::Continue => {}
                        Flow::Break => break,
                        result @ Flow::Return(_) => return Ok(result),
                    }
                }
            }
            Statement::Try { body, catches: handlers } => {
                let (base, height) = (self.state.base, self.state.stack.len());
                let fault = match self.block(body) {
                    Err(fault) if fault.0.stopped.is_none() => fault,
                    other => return other,
                };
                let kind = fault.0.kind;
                let Some((_, slot, block)) = handlers.iter().find(|(class, ..)| catches(class.name, kind))
                else {
                    return Err(fault);
                };
                debug_assert_eq!((base, height), (self.state.base, self.state.stack.len()));
                let class = crate::types::class_of(kind);
                self.set_local(*slot, Object::Exception(class, fault.0.reason).into());
                return self.block(block);
            }
            _ => {}
        }
        Ok(Flow::Next)
    }

    /// Calls a lambda, a method reference or a comparator.
    pub(crate) fn invoke(&mut self, function: &Value, arguments: &[Value]) -> Result<Value, Fault> {
        let Value::Object(object) = function else {
            if function.is_null() {
                return Err(Fault::null("apply"));
            }
            return Err(Fault::cast(function.class_name(), "java.util.function.Function"));
        };
        match &**object {
            Object::Lambda(body, captured) => {
                let code = self.code;
                let captured = captured.all();
                self.enter(&code.bodies[*body], arguments.to_vec(), &captured)
            }
            Object::Reference(class, bound, name) => {
                self.tick(1)?;
                if let Some(bound) = bound.first() {
                    return self.call_method(&bound, name, arguments);
                }
                let class = class.unwrap_or_default();
                if &**name == "new" {
                    return self.construct(class, arguments);
                }
                if crate::tables::has_static(class, name, arguments.len()) {
                    return self.call_static(class, name, arguments);
                }
                match arguments.split_first() {
                    Some((target, arguments)) => self.call_method(target, name, arguments),
                    None => Err(Fault::no_method(class, name, 0)),
                }
            }
            Object::Recipe(..) if arguments.len() == 2 => {
                Ok(Value::Int(self.compare_by(function, &arguments[0], &arguments[1])? as i32))
            }
            _ => Err(Fault::cast(function.class_name(), "java.util.function.Function")),
        }
    }
}

/// The fault that throwing a value makes.
fn thrown(value: &Value) -> Fault {
    match value {
        Value::Object(object) => match &**object {
            Object::Exception(class, reason) => {
                let mut fault = Fault::bare(exception(class).unwrap_or("exception"));
                fault.0.reason.clone_from(reason);
                fault
            }
            _ => Fault::cast(value.class_name(), "java.lang.Exception"),
        },
        Value::Null => Fault::null("throw"),
        _ => Fault::cast(value.class_name(), "java.lang.Exception"),
    }
}
