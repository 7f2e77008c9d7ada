//! Parser for scripts.

use std::collections::BTreeMap;

use super::{Expression, Function, Operator, Script, VectorFunction};

/// Longest script in bytes, ten times as long as any useful one.
const MAX_LENGTH: usize = 8 * 1024;
/// Deepest nesting of an expression.
const MAX_DEPTH: usize = 64;
/// Most levels of a script's expression; each operator of a chain such as `a + b + c` is one. A script's query may itself have a
/// script, whose levels are on the stack at the same time: there has to be room for thirty times as many.
const MAX_HEIGHT: usize = 128;
/// Most parts of a script's expression once variables are replaced, so that a few variables cannot multiply without end.
const MAX_PARTS: usize = 4096;
/// Most components of a vector: as many as a document's may have. Each comparison in a script copies the script's vector.
const MAX_COMPONENTS: usize = 4096;
const TYPES: [&str; 5] = ["double", "float", "int", "long", "def"];

/// The `params` of a script: a number is a list of one, a vector a list of its components.
pub type Params = BTreeMap<String, Vec<f64>>;

/// Parses a script.
///
/// # Errors
/// A message that names the part of the script that is not understood.
pub fn parse(source: &str, params: &Params) -> Result<Script, String> {
    if source.len() > MAX_LENGTH {
        return Err(format!("the script is longer than [{MAX_LENGTH}] bytes"));
    }
    let mut reader = Reader {
        rest: source,
        params,
        locals: Vec::new(),
        fields: Vec::new(),
        vectors: Vec::new(),
        depth: 0,
        parts: 0,
    };
    let score = reader.script()?;
    if height(&score) > MAX_HEIGHT {
        return Err(format!("it joins more than [{MAX_HEIGHT}] numbers one after the other"));
    }
    Ok(Script { source: source.to_owned(), score, fields: reader.fields, vectors: reader.vectors })
}

struct Reader<'a> {
    rest: &'a str,
    params: &'a Params,
    locals: Vec<(&'a str, Expression)>,
    fields: Vec<String>,
    vectors: Vec<Vec<f32>>,
    depth: usize,
    parts: usize,
}

impl<'a> Reader<'a> {
    fn script(&mut self) -> Result<Expression, String> {
        self.deeper()?;
        if let Some(name) = self.declared() {
            self.expect("=")?;
            let value = self.expression()?;
            self.expect(";")?;
            self.locals.push((name, value));
            let score = self.script()?;
            self.depth -= 1;
            return Ok(score);
        }
        let score = if self.word("if") {
            self.expect("(")?;
            let condition = Box::new(self.expression()?);
            self.expect(")")?;
            let braces = self.sign("{");
            let yes = Box::new(self.returned()?);
            if braces {
                self.expect("}")?;
            }
            let no = Box::new(self.script()?);
            Expression::Choice { condition, yes, no }
        } else {
            let score = match self.peek_word("return") {
                true => self.returned()?,
                false => self.expression()?,
            };
            self.sign(";");
            self.skip();
            if !self.rest.is_empty() {
                return Err(self.unexpected());
            }
            score
        };
        self.depth -= 1;
        Ok(score)
    }

    fn returned(&mut self) -> Result<Expression, String> {
        if !self.word("return") {
            return Err(self.unexpected());
        }
        let value = self.expression()?;
        self.sign(";");
        Ok(value)
    }

    /// Parses the beginning of a variable's declaration and gives its name; none if there is no declaration.
    fn declared(&mut self) -> Option<&'a str> {
        let before = self.rest;
        let name = TYPES.iter().any(|name| self.word(name)).then(|| self.name()).flatten();
        if name.is_none() {
            self.rest = before;
        }
        name
    }

    fn expression(&mut self) -> Result<Expression, String> {
        self.deeper()?;
        let condition = self.comparison()?;
        let read = if self.sign("?") {
            let yes = Box::new(self.expression()?);
            self.expect(":")?;
            Expression::Choice { condition: Box::new(condition), yes, no: Box::new(self.expression()?) }
        } else {
            condition
        };
        self.depth -= 1;
        Ok(read)
    }

    fn comparison(&mut self) -> Result<Expression, String> {
        const SIGNS: [(&str, Operator); 6] = [
            ("<=", Operator::LessOrEqual),
            (">=", Operator::GreaterOrEqual),
            ("==", Operator::Equal),
            ("!=", Operator::NotEqual),
            ("<", Operator::Less),
            (">", Operator::Greater),
        ];
        let left = self.sum()?;
        match SIGNS.iter().find(|(sign, _)| self.sign(sign)) {
            None => Ok(left),
            Some((_, operator)) => Ok(binary(*operator, left, self.sum()?)),
        }
    }

    fn sum(&mut self) -> Result<Expression, String> {
        let mut left = self.product()?;
        loop {
            // The second sign is looked for only without the first: in `1 + -2` the minus belongs to the number.
            let operator = if self.sign("+") {
                Operator::Add
            } else if self.sign("-") {
                Operator::Subtract
            } else {
                return Ok(left);
            };
            self.more()?;
            left = binary(operator, left, self.product()?);
        }
    }

    fn product(&mut self) -> Result<Expression, String> {
        let mut left = self.unary()?;
        loop {
            let operator = if self.sign("*") {
                Operator::Multiply
            } else if self.sign("/") {
                Operator::Divide
            } else {
                return Ok(left);
            };
            self.more()?;
            left = binary(operator, left, self.unary()?);
        }
    }

    fn unary(&mut self) -> Result<Expression, String> {
        self.deeper()?;
        let read = if self.sign("-") {
            Expression::Negative(Box::new(self.unary()?))
        } else if self.sign("(") {
            let inner = self.expression()?;
            self.expect(")")?;
            inner
        } else if let Some(number) = self.number()? {
            Expression::Number(number)
        } else {
            self.named()?
        };
        self.depth -= 1;
        Ok(read)
    }

    /// Parses an expression that begins with a name: a variable, a function, `_score`, `params` or `doc`.
    fn named(&mut self) -> Result<Expression, String> {
        let before = self.rest;
        let Some(name) = self.name() else { return Err(self.unexpected()) };
        match name {
            "_score" => return Ok(Expression::Score),
            "params" => {
                let name = self.param()?;
                return match self.params.get(name).map(Vec::as_slice) {
                    Some([number]) => Ok(Expression::Number(*number)),
                    Some(_) => Err(format!("[params.{name}] is a vector where a number is needed")),
                    None => Err(format!("[params.{name}] is not given, or neither a number nor a vector")),
                };
            }
            "doc" => return self.doc_values(),
            "cosineSimilarity" => return self.vector_function(VectorFunction::CosineSimilarity),
            "dotProduct" => return self.vector_function(VectorFunction::DotProduct),
            "l1norm" => return self.vector_function(VectorFunction::L1Norm),
            "l2norm" => return self.vector_function(VectorFunction::L2Norm),
            _ => {}
        }
        if let Some((_, value)) = self.locals.iter().find(|(known, _)| *known == name) {
            let value = value.clone();
            self.parts += parts(&value);
            self.more()?;
            return Ok(value);
        }
        let name = match name == "Math" && self.sign(".") {
            true => format!("Math.{}", self.name().unwrap_or_default()),
            false => name.to_owned(),
        };
        match name.as_str() {
            "Math.E" => return Ok(Expression::Number(std::f64::consts::E)),
            "Math.PI" => return Ok(Expression::Number(std::f64::consts::PI)),
            _ => {}
        }
        let Some((_, function, count)) = Function::ALL.iter().find(|(known, ..)| *known == name) else {
            self.rest = before;
            return Err(self.unexpected());
        };
        self.expect("(")?;
        let mut arguments = vec![self.expression()?];
        while self.sign(",") {
            arguments.push(self.expression()?);
        }
        self.expect(")")?;
        if arguments.len() != *count {
            return Err(format!("[{name}] takes [{count}] arguments, not [{}]", arguments.len()));
        }
        Ok(Expression::Call { function: *function, arguments })
    }

    /// Parses the name after `params`: `.name` or `['name']`.
    fn param(&mut self) -> Result<&'a str, String> {
        if self.sign(".") {
            return self.name().ok_or_else(|| self.unexpected());
        }
        self.expect("[")?;
        let name = self.text()?;
        self.expect("]")?;
        Ok(name)
    }

    /// Parses the rest of `doc['field'].size()` and the like, after `doc`.
    fn doc_values(&mut self) -> Result<Expression, String> {
        self.expect("[")?;
        let name = self.text()?;
        self.expect("]")?;
        self.expect(".")?;
        let field = self.field(name);
        let size = Expression::Size(field);
        match self.name() {
            Some(asked @ ("size" | "length" | "isEmpty")) => {
                // `length` is a property, the others are called.
                if asked != "length" || self.rest.trim_start().starts_with('(') {
                    self.expect("(")?;
                    self.expect(")")?;
                }
                Ok(match asked {
                    "isEmpty" => binary(Operator::Equal, size, Expression::Number(0.0)),
                    _ => size,
                })
            }
            Some("empty") => Ok(binary(Operator::Equal, size, Expression::Number(0.0))),
            _ => Err(format!(
                "of [doc['{name}']] only [size()], [length], [empty] and [isEmpty()] can be asked"
            )),
        }
    }

    fn vector_function(&mut self, function: VectorFunction) -> Result<Expression, String> {
        self.expect("(")?;
        let components = if self.word("params") {
            let name = self.param()?;
            let known = self.params.get(name);
            let known = known.ok_or_else(|| format!("[params.{name}] is not given, or no vector"))?;
            if known.len() > MAX_COMPONENTS {
                return Err(format!(
                    "[params.{name}] has [{}] components, and a vector at most [{MAX_COMPONENTS}]",
                    known.len()
                ));
            }
            known.clone()
        } else {
            self.expect("[")?;
            let mut components = Vec::new();
            while !self.sign("]") {
                if !components.is_empty() {
                    self.expect(",")?;
                }
                let negative = self.sign("-");
                let number = self.number()?.ok_or_else(|| self.unexpected())?;
                components.push(if negative { -number } else { number });
            }
            components
        };
        self.expect(",")?;
        let name = match self.word("doc") {
            false => self.text()?,
            true => {
                self.expect("[")?;
                let name = self.text()?;
                self.expect("]")?;
                name
            }
        };
        self.expect(")")?;
        let components: Vec<f32> = components.into_iter().map(|number| number as f32).collect();
        let place = self.vectors.iter().position(|known| *known == components);
        let vector = place.unwrap_or_else(|| {
            self.vectors.push(components);
            self.vectors.len() - 1
        });
        Ok(Expression::Vector { function, vector, field: self.field(name) })
    }

    fn field(&mut self, name: &str) -> usize {
        self.fields.iter().position(|known| known == name).unwrap_or_else(|| {
            self.fields.push(name.to_owned());
            self.fields.len() - 1
        })
    }

    fn skip(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn sign(&mut self, sign: &str) -> bool {
        self.skip();
        match self.rest.strip_prefix(sign) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, sign: &str) -> Result<(), String> {
        if self.sign(sign) { Ok(()) } else { Err(format!("expected [{sign}], {}", self.unexpected())) }
    }

    fn name(&mut self) -> Option<&'a str> {
        self.skip();
        let letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let end = self.rest.find(|c| !letter(c)).unwrap_or(self.rest.len());
        let (name, rest) = self.rest.split_at(end);
        if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
            return None;
        }
        self.rest = rest;
        Some(name)
    }

    fn peek_word(&mut self, word: &str) -> bool {
        let before = self.rest;
        let found = self.word(word);
        self.rest = before;
        found
    }

    fn word(&mut self, word: &str) -> bool {
        let before = self.rest;
        if self.name() == Some(word) {
            return true;
        }
        self.rest = before;
        false
    }

    /// A text in single or double quotation marks, without any escape.
    fn text(&mut self) -> Result<&'a str, String> {
        self.skip();
        let quote = self.rest.chars().next().filter(|c| matches!(c, '\'' | '"'));
        let Some(quote) = quote else { return Err(self.unexpected()) };
        let inner = &self.rest[1..];
        let end = inner.find(quote).ok_or_else(|| "a text does not end".to_owned())?;
        self.rest = &inner[end + 1..];
        Ok(&inner[..end])
    }

    fn number(&mut self) -> Result<Option<f64>, String> {
        self.skip();
        let digits = |text: &str| text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let mut end = digits(self.rest);
        let whole = end;
        if self.rest[end..].starts_with('.') {
            end += 1 + digits(&self.rest[end + 1..]);
        }
        if end == 0 || (whole == 0 && end == 1) {
            return Ok(None);
        }
        if self.rest[end..].starts_with(['e', 'E']) {
            let sign = usize::from(self.rest[end + 1..].starts_with(['+', '-']));
            let exponent = digits(&self.rest[end + 1 + sign..]);
            if exponent > 0 {
                end += 1 + sign + exponent;
            }
        }
        let text = &self.rest[..end];
        self.rest = &self.rest[end..];
        if self.rest.starts_with(['d', 'D', 'f', 'F', 'l', 'L']) {
            self.rest = &self.rest[1..];
        }
        if self.rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_') {
            return Err(self.unexpected());
        }
        text.parse().map(Some).map_err(|_| format!("[{text}] is not a number"))
    }

    fn deeper(&mut self) -> Result<(), String> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(format!("it is nested deeper than [{MAX_DEPTH}] levels"));
        }
        self.more()
    }

    fn more(&mut self) -> Result<(), String> {
        self.parts += 1;
        if self.parts > MAX_PARTS {
            return Err(format!("it has more than [{MAX_PARTS}] parts"));
        }
        Ok(())
    }

    fn unexpected(&self) -> String {
        let rest = self.rest.trim_start();
        match rest.char_indices().nth(24) {
            None if rest.is_empty() => "it ends too soon".to_owned(),
            None => format!("[{rest}] is not understood"),
            Some((end, _)) => format!("[{}…] is not understood", &rest[..end]),
        }
    }
}

fn binary(operator: Operator, left: Expression, right: Expression) -> Expression {
    Expression::Binary { operator, left: Box::new(left), right: Box::new(right) }
}

/// Number of nested levels of an expression.
fn height(expression: &Expression) -> usize {
    1 + match expression {
        Expression::Number(_) | Expression::Score | Expression::Size(_) | Expression::Vector { .. } => 0,
        Expression::Negative(inner) => height(inner),
        Expression::Binary { left, right, .. } => height(left).max(height(right)),
        Expression::Choice { condition, yes, no } => height(condition).max(height(yes)).max(height(no)),
        Expression::Call { arguments, .. } => arguments.iter().map(height).max().unwrap_or(0),
    }
}

fn parts(expression: &Expression) -> usize {
    1 + match expression {
        Expression::Number(_) | Expression::Score | Expression::Size(_) | Expression::Vector { .. } => 0,
        Expression::Negative(inner) => parts(inner),
        Expression::Binary { left, right, .. } => parts(left) + parts(right),
        Expression::Choice { condition, yes, no } => parts(condition) + parts(yes) + parts(no),
        Expression::Call { arguments, .. } => arguments.iter().map(parts).sum(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Values;
    use super::*;

    struct Doc(Option<Vec<f32>>, Script);

    impl Values for Doc {
        type Error = &'static str;

        fn score(&mut self) -> f64 {
            3.0
        }

        fn size(&mut self, _: usize) -> Result<f64, Self::Error> {
            Ok(f64::from(u8::from(self.0.is_some())))
        }

        fn compared(
            &mut self,
            function: VectorFunction,
            vector: usize,
            _: usize,
        ) -> Result<f64, Self::Error> {
            Ok(function.of(&self.1.vectors[vector], self.0.as_ref().ok_or("no vector")?))
        }
    }

    fn params() -> Params {
        [
            ("v".to_owned(), vec![3.0, 4.0]),
            ("query_vector".to_owned(), vec![3.0, 4.0]),
            ("n".to_owned(), vec![0.5]),
        ]
        .into()
    }

    fn value(source: &str, vector: Option<Vec<f32>>) -> Result<f64, &'static str> {
        let script = parse(source, &params()).unwrap_or_else(|error| panic!("{source}: {error}"));
        let score = script.score.clone();
        score.value(&mut Doc(vector, script))
    }

    #[test]
    fn scripts_that_clients_send_are_understood() {
        let e = std::f64::consts::E;
        for (source, expected) in [
            ("cosineSimilarity(params.query_vector, 'vector') + 1.0", 1.6),
            ("cosineSimilarity(params['query_vector'], doc['vector']) + 1.0", 1.6),
            ("1 / (1 + l2norm(params.query_vector, 'vector'))", 1.0 / (1.0 + 20_f64.sqrt())),
            ("1 / (1 + l1norm(params.query_vector, \"vector\"))", 1.0 / 7.0),
            ("dotProduct(params.query_vector,'vector') + 1000", 1003.0),
            (
                "\n double value = dotProduct(params.query_vector, 'vector');\n return sigmoid(1, Math.E, -value);\n",
                1.0 / (1.0 + e.powi(-3)),
            ),
            (
                "double value = dotProduct(params.v, 'vector'); if (value < 0) { return 1 / (1 + -1 * value); } \
                 return value + 1;",
                4.0,
            ),
            ("doc['vector'].size() == 0 ? 0 : cosineSimilarity([3, -4.0e0], 'vector') + 1", 1.6),
            ("doc['vector'].empty ? 0 : _score * params.n + 2d", 3.5),
            ("2 - 1 - 1 + 6 / 3 / 2 * -(-4) ", 4.0),
            ("10 + -3", 7.0),
            ("10 - -3 + - 2", 11.0),
            ("double value = -3; if (value < 0) { return 1 / (1 + -1 * value); } return value + 1;", 0.25),
            ("Math.max(1, Math.sqrt(16)) - Math.log(Math.E)", 3.0),
            ("return saturation(_score, 3);", 0.5),
        ] {
            let found = value(source, Some(vec![1.0, 0.0])).unwrap();
            assert!((found - expected).abs() < 1e-9, "{source}: {found}, not {expected}");
        }
    }

    #[test]
    fn a_branch_that_is_not_taken_asks_for_nothing() {
        let guarded = "doc['v'].size() == 0 ? 0 : dotProduct(params.v, 'v')";
        assert_eq!(value(guarded, None), Ok(0.0));
        assert_eq!(value("dotProduct(params.v, 'v')", None), Err("no vector"));
    }

    #[test]
    fn other_scripts_are_refused() {
        for (source, reason) in [
            ("", "it ends too soon"),
            ("for (int i = 0; i < 3; i++) {}", "[for (int i = 0; i < 3; i…] is not understood"),
            ("doc['price'].value * 2", "of [doc['price']] only"),
            ("params.gone", "[params.gone] is not given"),
            ("params.v + 1", "[params.v] is a vector"),
            ("cosineSimilarity(params.v)", "expected [,]"),
            ("1 2", "[2] is not understood"),
            ("1 +", "it ends too soon"),
            ("2 * / 3", "[/ 3] is not understood"),
            ("Math.random()", "[Math.random()] is not understood"),
            ("Math.max(1)", "[Math.max] takes [2] arguments, not [1]"),
            ("cosineSimilarity(params.v, 'v", "a text does not end"),
            ("'a' == 'a'", "is not understood"),
        ] {
            let found = parse(source, &params()).unwrap_err();
            assert!(found.contains(reason), "{source}: {found}");
        }
        assert!(parse(&"(".repeat(5000), &params()).unwrap_err().contains("nested deeper"));
        assert!(parse(&"1+".repeat(4000), &params()).unwrap_err().contains("parts"));
        let chain = |numbers: usize| vec!["_score"; numbers].join("+");
        assert!(parse(&chain(MAX_HEIGHT), &params()).is_ok());
        assert!(parse(&chain(MAX_HEIGHT + 1), &params()).unwrap_err().contains("one after the other"));
        // Nor by way of variables.
        let longer = format!("double a = {}; return a + {}", chain(60), chain(70));
        assert!(parse(&longer, &params()).unwrap_err().contains("one after the other"));
        assert!(parse(&" ".repeat(10_000), &params()).unwrap_err().contains("longer"));
        // A vector longer than any document's, hundreds of times, would be copied as often.
        let long: Params = [("long".to_owned(), vec![1.0; 4097])].into();
        let refused = parse("l2norm(params.long, 'v')", &long).unwrap_err();
        assert_eq!(refused, "[params.long] has [4097] components, and a vector at most [4096]");
        assert!(parse("l2norm(params.v, 'v')", &[("v".to_owned(), vec![1.0; 4096])].into()).is_ok());
        // Each variable is the one before it, twice.
        let mut bomb = "double a0 = _score;".to_owned();
        for n in 1..40 {
            bomb += &format!("double a{n} = a{} + a{};", n - 1, n - 1);
        }
        assert!(parse(&(bomb + "a39"), &params()).is_err());
    }
}
