//! Statements.

use super::{Parser, return_last};
use crate::lexer::Refusal;
use crate::tree::{Body, Statement};
use crate::types::{Type, exception};

impl Parser<'_> {
    /// Reads a block in braces.
    pub(super) fn block(&mut self) -> Result<Vec<Statement>, Refusal> {
        self.expect("{")?;
        let variables = self.known();
        let mut statements = Vec::new();
        while !self.sign("}") {
            self.statement(&mut statements)?;
        }
        self.forget(variables);
        Ok(statements)
    }

    /// Reads a block, or one statement in place of it.
    fn block_or_statement(&mut self) -> Result<Vec<Statement>, Refusal> {
        if self.is_sign("{") {
            return self.block();
        }
        let mut statements = Vec::new();
        let variables = self.known();
        if !self.sign(";") {
            self.statement(&mut statements)?;
        }
        self.forget(variables);
        Ok(statements)
    }

    /// How many variables are known, other than those that were captured.
    fn known(&self) -> usize {
        self.scopes
            .last()
            .map_or(0, |scope| scope.variables.iter().filter(|variable| !variable.is_captured).count())
    }

    /// Forgets the variables of a block.
    fn forget(&mut self, known: usize) {
        if let Some(scope) = self.scopes.last_mut() {
            let captured = scope.captures.len();
            scope.variables.truncate(captured + known);
        }
    }

    pub(super) fn statement(&mut self, into: &mut Vec<Statement>) -> Result<(), Refusal> {
        self.deeper()?;
        self.code.statements.push(self.at());
        match self.word_at(self.next) {
            Some("if") => into.push(self.branches()?),
            Some("while") => {
                self.next += 1;
                let condition = self.condition()?;
                let body = self.loop_body()?;
                into.push(Statement::Loop { condition: Some(condition), update: Vec::new(), body });
            }
            Some("do") => {
                self.next += 1;
                let body = self.loop_body()?;
                if !self.word("while") {
                    return Err(self.unexpected());
                }
                into.push(Statement::Do { body, condition: self.condition()? });
                self.end()?;
            }
            Some("for") => into.push(self.for_loop()?),
            Some("try") => into.push(self.try_block()?),
            Some(word @ ("break" | "continue")) => {
                if self.loops == 0 {
                    return Err(self.refuse(format!("invalid {word} statement: not inside loop")));
                }
                self.next += 1;
                self.end()?;
                into.push(if word == "break" { Statement::Break } else { Statement::Continue });
            }
            Some("return") => {
                self.next += 1;
                let ends = self.is_sign(";") || self.is_sign("}") || self.is_end();
                let value = if ends { None } else { Some(self.expression()?) };
                self.end()?;
                into.push(Statement::Return(value));
            }
            Some("throw") => {
                self.next += 1;
                let value = self.expression()?;
                self.end()?;
                into.push(Statement::Throw(value));
            }
            _ if self.is_sign("{") => {
                let block = self.block()?;
                into.push(Statement::Block(block));
            }
            _ => {
                self.simple(into)?;
                self.end()?;
            }
        }
        self.depth -= 1;
        Ok(())
    }

    /// Reads the end of a statement: a semicolon, which may be missing before a brace and at the end.
    fn end(&mut self) -> Result<(), Refusal> {
        if self.sign(";") || self.is_sign("}") || self.is_end() {
            return Ok(());
        }
        let token = self.token();
        let found = &self.source[token.start..token.end];
        Err(self.refuse(format!("unexpected token ['{found}'] was expecting one of [{{<EOF>, ';'}}].")))
    }

    /// Reads a declaration or an expression.
    fn simple(&mut self, into: &mut Vec<Statement>) -> Result<(), Refusal> {
        if !self.is_declaration() {
            into.push(Statement::Expression(self.expression()?));
            return Ok(());
        }
        let kind = self.type_of_declaration()?;
        if let Some(start) = self.code.statements.last_mut() {
            // Elasticsearch has a declaration begin at the variable.
            *start = self.tokens[self.next].start;
        }
        loop {
            let start = self.next;
            let name = self.name()?;
            self.check_new(name, start)?;
            let value = if self.sign("=") { Some(self.expression()?) } else { None };
            let slot = self.declare(name, kind)?;
            into.push(Statement::Declare { slot, kind, value });
            if !self.sign(",") {
                return Ok(());
            }
        }
    }

    fn condition(&mut self) -> Result<crate::tree::Node, Refusal> {
        self.expect("(")?;
        let condition = self.expression()?;
        self.expect(")")?;
        Ok(condition)
    }

    fn branches(&mut self) -> Result<Statement, Refusal> {
        let (mut cases, mut otherwise) = (Vec::new(), Vec::new());
        loop {
            // The word `if`.
            self.next += 1;
            let condition = self.condition()?;
            let block = self.block_or_statement()?;
            cases.push((condition, block));
            if !self.word("else") {
                break;
            }
            if self.word_at(self.next) != Some("if") {
                otherwise = self.block_or_statement()?;
                break;
            }
            self.code.statements.push(self.at());
        }
        Ok(Statement::If { cases, otherwise })
    }

    fn loop_body(&mut self) -> Result<Vec<Statement>, Refusal> {
        self.loops += 1;
        let body = self.block_or_statement()?;
        self.loops -= 1;
        Ok(body)
    }

    fn for_loop(&mut self) -> Result<Statement, Refusal> {
        self.next += 1;
        self.expect("(")?;
        let variables = self.known();
        let start = self.next;
        let kind = if self.is_declaration() { self.type_of_declaration()? } else { Type::DEF };
        if let Some(name) = self.word_at(self.next)
            && (self.is_sign_at(self.next + 1, ":") || self.word_at(self.next + 1) == Some("in"))
        {
            self.next += 2;
            let of = self.expression()?;
            self.expect(")")?;
            let slot = self.declare(name, kind)?;
            let body = self.loop_body()?;
            self.forget(variables);
            return Ok(Statement::Each { slot, kind, of, body });
        }
        self.next = start;
        let mut statements = Vec::new();
        if !self.is_sign(";") {
            self.simple(&mut statements)?;
        }
        self.expect(";")?;
        let condition = if self.is_sign(";") { None } else { Some(self.expression()?) };
        self.expect(";")?;
        let mut update = Vec::new();
        while !self.sign(")") {
            if !update.is_empty() {
                self.expect(",")?;
            }
            update.push(Statement::Expression(self.expression()?));
        }
        let body = self.loop_body()?;
        self.forget(variables);
        statements.push(Statement::Loop { condition, update, body });
        Ok(Statement::Block(statements))
    }

    fn try_block(&mut self) -> Result<Statement, Refusal> {
        self.next += 1;
        let body = self.block()?;
        let mut catches = Vec::new();
        while self.word("catch") {
            self.expect("(")?;
            let kind = self.type_of_declaration()?;
            if exception(kind.name).is_none() {
                return Err(
                    self.refuse(format!("cannot catch [{}], which is no exception", kind.full_name()))
                );
            }
            let variables = self.known();
            let name = self.name()?;
            let slot = self.declare(name, kind)?;
            self.expect(")")?;
            let block = self.block()?;
            self.forget(variables);
            catches.push((kind, slot, block));
        }
        if catches.is_empty() {
            return Err(self.unexpected());
        }
        Ok(Statement::Try { body, catches })
    }

    /// Reads a lambda: its parameters, an arrow, and an expression or a block.
    pub(super) fn lambda(&mut self) -> Result<usize, Refusal> {
        self.scopes.push(super::Scope::default());
        let parameters = match self.is_sign("(") {
            true => self.parameters()?,
            false => {
                let name = self.name()?;
                self.declare(name, Type::DEF)?;
                vec![Type::DEF]
            }
        };
        self.expect("->")?;
        let loops = std::mem::take(&mut self.loops);
        let statements = if self.is_sign("{") {
            let mut block = self.block()?;
            return_last(&mut block);
            block
        } else {
            vec![Statement::Return(Some(self.expression()?))]
        };
        self.loops = loops;
        let body: Body = self.body(parameters, Type::DEF, statements);
        self.lambdas.push(body);
        Ok(self.functions.len() + self.lambdas.len() - 1)
    }
}
