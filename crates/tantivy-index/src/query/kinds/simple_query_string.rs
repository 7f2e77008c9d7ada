//! `simple_query_string`: a lenient query syntax in which any text is valid. Modelled on Lucene's
//! `SimpleQueryParser`.

use rustc_hash::FxHashMap;
use tantivy::query::Weight;

use crate::query::compile::Compiler;
use crate::query::filters::Docs;
use crate::query::highlight::WantedWords;
use crate::query::kinds::Meaning;
use crate::query::kinds::query_string::{Clauses, Fields, quoted_field};
use sparrow_query::{
    BoolQuery, DisMaxQuery, FuzzyQuery, LenientQuery, MatchPhraseQuery, MatchQuery, Operator, PrefixQuery,
    Query, QueryKind, Rewrite, SimpleQueryStringQuery, simple_flags,
};
use sparrow_scoring::error::QueryError;

/// Deepest nesting of parentheses that is parsed; deeper ones are ignored as if they were not there.
const MAX_DEPTH: usize = 64;

/// Highest number of levels that alternating `+` and `|` may add, as each change puts the preceding clauses
/// one level deeper.
const MAX_LEVELS: usize = 64;

/// Parses a query text and rewrites it to a query tree.
///
/// # Errors
/// When analysis fails, or the text has too many clauses; never because of its syntax.
pub(crate) fn rewrite(query: &SimpleQueryStringQuery, fields: &dyn Fields) -> Result<Query, QueryError> {
    let everything = [("*".to_owned(), 1.0)];
    let stated: &[_] = if query.fields.is_empty() { &everything } else { &query.fields };
    if query.query.trim() == "*" && stated.iter().any(|(name, _)| name == "*") {
        return Ok(Query::match_all());
    }
    let targets = fields.expand(stated)?;
    let text: Vec<char> = query.query.chars().collect();
    let closings = closings(&text, query.flags & simple_flags::ESCAPE != 0);
    let mut parser = Parser { query, fields, targets, closings, clauses: Clauses::default() };
    let mut tree = parser.part(&text, 0, 0)?;
    if let Some(Query { kind: QueryKind::Bool(top), .. }) = &mut tree
        && top.must_not.is_empty()
    {
        top.minimum_should_match = query.minimum_should_match.clone();
    }
    Ok(tree.unwrap_or_else(|| QueryKind::MatchNone.into()))
}

struct Parser<'a> {
    query: &'a SimpleQueryStringQuery,
    fields: &'a dyn Fields,
    targets: Vec<(String, f32, bool)>,
    /// Position of the closing parenthesis for each opening one that is closed.
    closings: FxHashMap<usize, usize>,
    clauses: Clauses,
}

/// Finds the pairs of parentheses in a text, once for all: looking for the end of each of many that are never
/// closed would take quadratic time.
fn closings(text: &[char], escapes: bool) -> FxHashMap<usize, usize> {
    let (mut pairs, mut open, mut escaped) = (FxHashMap::default(), Vec::new(), false);
    for (at, next) in text.iter().enumerate() {
        match next {
            _ if escaped => escaped = false,
            '\\' if escapes => escaped = true,
            '(' => open.push(at),
            ')' => {
                if let Some(start) = open.pop() {
                    pairs.insert(start, at);
                }
            }
            _ => {}
        }
    }
    pairs
}

/// What has been parsed of a text, or of the content of a pair of parentheses.
#[derive(Default)]
struct State {
    at: usize,
    top: Option<Query>,
    operation: Option<Operator>,
    previous: Option<Operator>,
    negations: usize,
    /// Number of levels added by changes between `+` and `|`.
    levels: usize,
}

impl Parser<'_> {
    fn has(&self, flag: u16) -> bool {
        self.query.flags & flag != 0
    }

    /// Parses a part of the text, which begins at position `base` of the whole.
    fn part(&mut self, text: &[char], base: usize, depth: usize) -> Result<Option<Query>, QueryError> {
        let mut state = State::default();
        while let Some(&next) = text.get(state.at) {
            match next {
                '(' if self.has(simple_flags::PRECEDENCE) => self.group(text, base, depth, &mut state)?,
                // One too many.
                ')' if self.has(simple_flags::PRECEDENCE) => state.at += 1,
                '"' if self.has(simple_flags::PHRASE) => self.phrase(text, &mut state)?,
                '+' if self.has(simple_flags::AND) => state.operator(Operator::And),
                '|' if self.has(simple_flags::OR) => state.operator(Operator::Or),
                '-' if self.has(simple_flags::NOT) => {
                    state.negations += 1;
                    state.at += 1;
                    continue;
                }
                c if is_space(c) && self.has(simple_flags::WHITESPACE) => state.at += 1,
                _ => self.token(text, &mut state)?,
            }
            state.negations = 0;
        }
        Ok(state.top)
    }

    fn group(
        &mut self,
        text: &[char],
        base: usize,
        depth: usize,
        state: &mut State,
    ) -> Result<(), QueryError> {
        state.at += 1;
        let start = state.at;
        if depth >= MAX_DEPTH {
            return Ok(());
        }
        // Never closed, at least not in this part: as if it were not there.
        let closing = self.closings.get(&(base + start - 1)).map(|at| at - base);
        let Some(at) = closing.filter(|at| *at < text.len()) else { return Ok(()) };
        state.at = at + 1;
        if at == start {
            state.operation = None;
            return Ok(());
        }
        let inner = self.part(&text[start..at], base + start, depth + 1)?;
        self.add(state, inner)
    }

    fn phrase(&mut self, text: &[char], state: &mut State) -> Result<(), QueryError> {
        state.at += 1;
        let start = state.at;
        let mut phrase = String::new();
        let mut escaped = false;
        let mut at = start;
        while let Some(&next) = text.get(at) {
            if !escaped && next == '\\' && self.has(simple_flags::ESCAPE) {
                escaped = true;
                at += 1;
                continue;
            }
            if !escaped && next == '"' {
                break;
            }
            escaped = false;
            phrase.push(next);
            at += 1;
        }
        if at == text.len() {
            return Ok(());
        }
        state.at = at + 1;
        if phrase.is_empty() {
            state.operation = None;
            return Ok(());
        }
        let mut slop = 0;
        if self.has(simple_flags::NEAR) && text.get(state.at) == Some(&'~') {
            slop = self.number(text, state);
        }
        let clause = self.over_fields(&phrase, |parser, field| {
            let field = quoted_field(parser.fields, field, parser.query.quote_field_suffix.as_deref());
            Ok(QueryKind::MatchPhrase(MatchPhraseQuery {
                field,
                text: phrase.clone(),
                slop,
                analyzer: parser.query.analyzer.clone(),
                ..MatchPhraseQuery::default()
            }))
        })?;
        self.add(state, clause)
    }

    fn finished(&self, next: char) -> bool {
        match next {
            '"' => self.has(simple_flags::PHRASE),
            '|' => self.has(simple_flags::OR),
            '+' => self.has(simple_flags::AND),
            '(' | ')' => self.has(simple_flags::PRECEDENCE),
            c => is_space(c) && self.has(simple_flags::WHITESPACE),
        }
    }

    fn token(&mut self, text: &[char], state: &mut State) -> Result<(), QueryError> {
        let mut token = String::new();
        let (mut escaped, mut prefix, mut fuzzy) = (false, false, false);
        while let Some(&next) = text.get(state.at) {
            if !escaped {
                if next == '\\' && self.has(simple_flags::ESCAPE) {
                    escaped = true;
                    prefix = false;
                    state.at += 1;
                    continue;
                }
                if self.finished(next) {
                    break;
                }
                if !token.is_empty() && next == '~' && self.has(simple_flags::FUZZY) {
                    fuzzy = true;
                    break;
                }
                prefix = !token.is_empty() && next == '*' && self.has(simple_flags::PREFIX);
            }
            escaped = false;
            token.push(next);
            state.at += 1;
        }
        if token.is_empty() {
            // A lone escape at the end.
            return Ok(());
        }
        let edits = if fuzzy { self.number(text, state).min(2) } else { 0 };
        let clause = if edits > 0 {
            self.over_fields(&token, |parser, field| {
                Ok(QueryKind::Fuzzy(FuzzyQuery {
                    field: field.to_owned(),
                    value: parser.fields.normalize(field, &token),
                    fuzziness: edits.to_string(),
                    prefix_length: parser.query.fuzzy_prefix_length,
                    max_expansions: parser.query.fuzzy_max_expansions,
                    without_transpositions: parser.query.without_transpositions,
                    rewrite: None,
                }))
            })?
        } else if prefix {
            token.pop();
            self.over_fields(&token, |parser, field| {
                let analysed = match parser.query.analyze_wildcard && parser.fields.is_text(field) {
                    true => parser.fields.terms(field, &token, parser.query.analyzer.as_deref())?.pop(),
                    false => None,
                };
                Ok(QueryKind::Prefix(PrefixQuery {
                    field: field.to_owned(),
                    value: analysed.unwrap_or_else(|| parser.fields.normalize(field, &token)),
                    case_insensitive: false,
                    rewrite: Rewrite::Constant,
                }))
            })?
        } else {
            self.over_fields(&token, |parser, field| {
                Ok(QueryKind::Match(MatchQuery {
                    field: field.to_owned(),
                    text: token.clone(),
                    operator: parser.query.default_operator,
                    analyzer: parser.query.analyzer.clone(),
                    without_synonym_phrases: parser.query.without_synonym_phrases,
                    ..MatchQuery::default()
                }))
            })?
        };
        self.add(state, clause)
    }

    /// Parses the number after `~`: 2 if it is missing, 0 if it is not a number.
    fn number(&self, text: &[char], state: &mut State) -> u32 {
        state.at += 1;
        let start = state.at;
        while text.get(state.at).is_some_and(|next| !self.finished(*next)) {
            state.at += 1;
        }
        let digits: String = text[start..state.at].iter().collect();
        match digits.as_str() {
            "" => 2,
            digits => digits.parse::<i32>().map_or(0, |number| number.max(0) as u32),
        }
    }

    /// One clause for each field; `None` when analysis leaves nothing in any of them.
    fn over_fields(
        &self,
        text: &str,
        clause: impl Fn(&Self, &str) -> Result<QueryKind, QueryError>,
    ) -> Result<Option<Query>, QueryError> {
        let mut queries = Vec::with_capacity(self.targets.len());
        let mut left_out = 0;
        for (field, boost, by_pattern) in &self.targets {
            self.fields.check()?;
            let kind = clause(self, field)?;
            let analysed = matches!(kind, QueryKind::Match(_) | QueryKind::MatchPhrase(_));
            if analysed && !self.fields.has_terms(field, text, self.query.analyzer.as_deref())? {
                left_out += 1;
                continue;
            }
            self.clauses.count()?;
            let mut query = Query::new(kind);
            if self.query.lenient || *by_pattern {
                query = Query::new(QueryKind::Lenient(LenientQuery::new(query)));
            }
            queries.push(query.with_boost(*boost));
        }
        Ok(match queries.len() {
            0 if left_out > 0 => None,
            0 => {
                self.clauses.count()?;
                Some(QueryKind::MatchNone.into())
            }
            1 => queries.pop(),
            _ => Some(QueryKind::DisMax(DisMaxQuery { queries, tie_breaker: 1.0 }).into()),
        })
    }

    fn add(&self, state: &mut State, clause: Option<Query>) -> Result<(), QueryError> {
        let Some(mut clause) = clause else {
            state.operation = None;
            return Ok(());
        };
        if state.negations % 2 == 1 {
            let tree = BoolQuery {
                must_not: vec![clause],
                should: vec![Query::match_all()],
                ..BoolQuery::default()
            };
            clause = QueryKind::Bool(tree).into();
        }
        state.top = Some(match state.top.take() {
            None => clause,
            Some(top) => {
                let operation = state.operation.unwrap_or(self.query.default_operator);
                let mut tree = match top.kind {
                    QueryKind::Bool(tree) if state.previous == Some(operation) => tree,
                    _ => {
                        state.levels += 1;
                        if state.levels > MAX_LEVELS {
                            return Err(QueryError::TooManyLevels { limit: MAX_LEVELS });
                        }
                        let mut tree = BoolQuery::default();
                        side(&mut tree, operation).push(top);
                        tree
                    }
                };
                side(&mut tree, operation).push(clause);
                state.previous = Some(operation);
                QueryKind::Bool(tree).into()
            }
        });
        state.operation = None;
        Ok(())
    }
}

impl State {
    fn operator(&mut self, operator: Operator) {
        if self.operation.is_none() && self.top.is_some() {
            self.operation = Some(operator);
        }
        self.at += 1;
    }
}

fn side(tree: &mut BoolQuery, operation: Operator) -> &mut Vec<Query> {
    match operation {
        Operator::And => &mut tree.must,
        Operator::Or => &mut tree.should,
    }
}

fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r')
}

impl Meaning for SimpleQueryStringQuery {
    fn compile(&self, compiler: &mut Compiler<'_>, scoring: bool) -> Result<Box<dyn Weight>, QueryError> {
        let tree = rewrite(self, &*compiler)?;
        compiler.compile(&tree, scoring)
    }

    fn documents(&self, compiler: &mut Compiler<'_>) -> Result<Option<Docs>, QueryError> {
        let tree = rewrite(self, &*compiler)?;
        compiler.matching_docs(&tree).map(Some)
    }

    fn words(&self, wanted: &mut WantedWords<'_>) -> Result<(), QueryError> {
        let tree = rewrite(self, &wanted.compiler)?;
        wanted.of(&tree)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Test fields that leave texts unanalysed, except that a lone dot yields no term.
    struct One;

    impl Fields for One {
        fn expand(&self, fields: &[(String, f32)]) -> Result<Vec<(String, f32, bool)>, QueryError> {
            Ok(fields.iter().map(|(name, boost)| (name.clone(), *boost, false)).collect())
        }

        fn check(&self) -> Result<(), QueryError> {
            Ok(())
        }

        fn terms(
            &self,
            _field: &str,
            text: &str,
            _analyzer: Option<&str>,
        ) -> Result<Vec<String>, QueryError> {
            Ok(if text == "." { Vec::new() } else { vec![text.to_owned()] })
        }

        fn normalize(&self, _field: &str, text: &str) -> String {
            text.to_lowercase()
        }

        fn is_text(&self, _field: &str) -> bool {
            true
        }

        fn is_mapped(&self, _field: &str) -> bool {
            true
        }
    }

    fn show(query: &Query) -> String {
        let list = |sign: &str, queries: &[Query]| {
            queries.iter().map(|query| format!("{sign}{}", show(query))).collect::<Vec<_>>()
        };
        match &query.kind {
            QueryKind::MatchAll => "ALL".into(),
            QueryKind::MatchNone => "NONE".into(),
            QueryKind::Match(query) => query.text.clone(),
            QueryKind::MatchPhrase(query) => format!("'{}'{}", query.text, query.slop),
            QueryKind::Prefix(PrefixQuery { value, .. }) => format!("{value}*"),
            QueryKind::Fuzzy(query) => format!("{}~{}", query.value, query.fuzziness),
            QueryKind::Bool(tree) => {
                let parts =
                    [list("+", &tree.must), list("", &tree.should), list("-", &tree.must_not)].concat();
                format!("({})", parts.join(" "))
            }
            other => format!("{other:?}"),
        }
    }

    fn check_with(query: SimpleQueryStringQuery, expected: &str) {
        let shown = show(&rewrite(&query, &One).expect("never fails"));
        assert_eq!(shown, expected, "{}", query.query);
    }

    fn query(text: &str) -> SimpleQueryStringQuery {
        SimpleQueryStringQuery {
            query: text.to_owned(),
            fields: vec![("f".into(), 1.0)],
            ..SimpleQueryStringQuery::default()
        }
    }

    #[test]
    fn trees_as_lucenes_simple_parser_builds_them() {
        for (text, expected) in [
            ("", "NONE"),
            ("foo", "foo"),
            ("foo bar", "(foo bar)"),
            ("foo + bar", "(+foo +bar)"),
            ("foo | bar baz", "(foo bar baz)"),
            ("foo + bar | baz", "((+foo +bar) baz)"),
            ("foo | bar + baz", "(+(foo bar) +baz)"),
            ("-foo", "(ALL -foo)"),
            ("--foo", "foo"),
            ("foo -bar", "(foo (ALL -bar))"),
            ("foo +-bar", "(+foo +(ALL -bar))"),
            ("(foo bar) + baz", "(+(foo bar) +baz)"),
            ("\"foo bar\"", "'foo bar'0"),
            ("\"foo bar\"~3 x", "('foo bar'3 x)"),
            ("\"foo", "foo"),
            ("(foo", "foo"),
            ("foo)", "foo"),
            ("() foo", "foo"),
            ("\"\" foo", "foo"),
            ("fo* bar", "(fo* bar)"),
            ("*", "*"),
            ("*foo", "*foo"),
            ("fo\\* b\\|c", "(fo* b|c)"),
            ("Foo~ bar~1 baz~x", "(foo~2 bar~1 baz)"),
            ("foo~9", "foo~2"),
            ("foo-bar", "foo-bar"),
            ("| foo +", "foo"),
            ("a . b", "(a b)"),
            (".", "NONE"),
        ] {
            check_with(query(text), expected);
        }
    }

    #[test]
    fn flags_take_operators_their_meaning() {
        check_with(
            SimpleQueryStringQuery { flags: 0, ..query("foo + \"bar\" -(x|y)*~1") },
            "foo + \"bar\" -(x|y)*~1",
        );
        let flags = simple_flags::OR | simple_flags::WHITESPACE;
        check_with(SimpleQueryStringQuery { flags, ..query("foo | +bar") }, "(foo +bar)");
        let and = SimpleQueryStringQuery { default_operator: Operator::And, ..query("foo bar | x") };
        check_with(and, "((+foo +bar) x)");
        check_with(SimpleQueryStringQuery { fields: Vec::new(), ..query(" * ") }, "ALL");
    }

    proptest! {
        #[test]
        fn no_text_fails(text in "[ab. ()\"+|*~\\\\1-]{0,20}", flags in 0u16..1024) {
            let query = SimpleQueryStringQuery { flags, ..query(&text) };
            prop_assert!(rewrite(&query, &One).is_ok());
        }
    }

    #[test]
    fn deep_parentheses_end() {
        let text = format!("{}a{}", "(".repeat(10_000), ")".repeat(10_000));
        assert!(rewrite(&query(&text), &One).is_ok());
    }
}
