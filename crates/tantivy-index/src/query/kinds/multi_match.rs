//! Clauses that search analysed text in several fields: `multi_match` and `combined_fields`.

use tantivy::query::Weight;

use crate::query::compile::Compiler;
use crate::query::highlight::WantedWords;
use crate::query::kinds::Meaning;
use crate::query::kinds::text::{any, boosted, dis_max, join, should};
use sparrow_mapping::FieldType;
use sparrow_query::{
    CombinedFieldsQuery, LenientQuery, MatchBoolPrefixQuery, MatchPhrasePrefixQuery, MatchPhraseQuery,
    MatchQuery, MultiMatchQuery, MultiMatchType, Query, QueryKind,
};
use sparrow_scoring::analyzed::{Section, sections};
use sparrow_scoring::bm25::term_weight;
use sparrow_scoring::error::QueryError;
use sparrow_scoring::fields::StringTerms;
use sparrow_scoring::scored::{Bm25, SummedWeight};
use sparrow_scoring::statistics::FieldStatistics;
use sparrow_scoring::weights;

/// A field of a `cross_fields` query, with its boost and statistics.
struct CrossField {
    terms: StringTerms,
    boost: f32,
    statistics: Option<FieldStatistics>,
}

impl Compiler<'_> {
    pub(crate) fn multi_match(
        &mut self,
        query: &MultiMatchQuery,
        scoring: bool,
    ) -> Result<Box<dyn Weight>, QueryError> {
        match self.fields_of(query)? {
            Some((queries, tie_breaker)) => self.dis_max(&queries, tie_breaker, scoring),
            None => self.cross_fields(query, scoring),
        }
    }

    /// One clause for each field, of which the best counts, and the factor for the scores of the others;
    /// `None` for `cross_fields`, which does not search the fields one by one.
    ///
    /// # Errors
    /// As [`Compiler::searched_fields`].
    pub(crate) fn fields_of(&self, query: &MultiMatchQuery) -> Result<Option<(Vec<Query>, f32)>, QueryError> {
        if query.kind == MultiMatchType::CrossFields {
            return Ok(None);
        }
        let mut queries = Vec::new();
        for field in self.searched_fields(query)? {
            // Each clause has the whole text.
            self.check_cancelled()?;
            queries.push(one_field(query, field));
        }
        Ok(Some((queries, query.tie_breaker.unwrap_or(query.kind.tie_breaker()))))
    }

    /// The fields of this index that the query searches, with their boosts and whether each comes from a
    /// pattern.
    ///
    /// # Errors
    /// As [`Compiler::expand_fields`].
    pub(crate) fn searched_fields(
        &self,
        query: &MultiMatchQuery,
    ) -> Result<Vec<(String, f32, bool)>, QueryError> {
        let defaults = [("*".to_owned(), 1.0)];
        let mut fields =
            self.expand_fields(if query.fields.is_empty() { &defaults } else { &query.fields })?;
        if query.words_only {
            let mapping = self.snapshot.mapping();
            fields.retain(|(path, ..)| !matches!(mapping.field(path), Some(FieldType::SemanticText(_))));
        }
        Ok(fields)
    }

    /// Compiles `cross_fields`: each term of the text may be in any field. Fields with the same analyzer form
    /// a group.
    fn cross_fields(
        &mut self,
        query: &MultiMatchQuery,
        scoring: bool,
    ) -> Result<Box<dyn Weight>, QueryError> {
        let tie_breaker = query.tie_breaker.unwrap_or(query.kind.tie_breaker());
        let analyzer = query.template.analyzer.as_deref();
        let mut groups: Vec<(String, Vec<CrossField>)> = Vec::new();
        let mut ways = Vec::new();
        for (path, boost, by_pattern) in self.searched_fields(query)? {
            self.check_cancelled()?;
            let Some(terms) = self.string_terms(&path) else {
                let other = one_field(query, (path, boost, by_pattern));
                ways.push(self.compile(&other, scoring)?);
                continue;
            };
            let name = self.analyzer_name(&path, analyzer, "multi_match")?;
            let statistics = self.statistics(&terms, scoring)?;
            let field = CrossField { terms, boost, statistics };
            match groups.iter_mut().find(|(known, _)| *known == name) {
                Some((_, group)) => group.push(field),
                None => groups.push((name, vec![field])),
            }
        }
        let template = &query.template;
        for (_, group) in &groups {
            let tokens = self.analyze(&group[0].terms, &template.text, analyzer, "multi_match")?;
            let mut clauses = Vec::new();
            for section in sections(tokens)? {
                clauses.push(match section {
                    Section::Terms { terms, .. } => {
                        let mut alternatives = Vec::with_capacity(terms.len());
                        for value in &terms {
                            alternatives.push(self.blended(group, value, tie_breaker, scoring)?);
                        }
                        any(alternatives, scoring)
                    }
                    Section::Paths(paths) => {
                        let mut alternatives = Vec::with_capacity(paths.len());
                        for path in paths {
                            let mut words = Vec::with_capacity(path.len());
                            for value in &path {
                                words.push(self.blended(group, value, tie_breaker, scoring)?);
                            }
                            alternatives.push(match words.len() {
                                1 => words.remove(0),
                                count => should(words, count, scoring),
                            });
                        }
                        any(alternatives, scoring)
                    }
                });
            }
            let minimum = template.minimum_should_match.as_deref();
            ways.push(join(clauses, template.operator, minimum, template.zero_terms_query, scoring)?);
        }
        Ok(dis_max(ways, tie_breaker, scoring))
    }

    /// The weight of a term in the best of several fields, with about the same document frequency in all:
    /// that of the field that has the term most often. With its own frequency it would score highest in a
    /// field where it is rare, which is usually the wrong field.
    fn blended(
        &mut self,
        group: &[CrossField],
        value: &str,
        tie_breaker: f32,
        scoring: bool,
    ) -> Result<Box<dyn Weight>, QueryError> {
        let mut frequencies = Vec::with_capacity(group.len());
        for field in group {
            self.count_clause()?;
            frequencies.push(self.searcher().doc_freq(&field.terms.term(value))?);
        }
        let blended = blend(&frequencies, self.max_doc(), fewest_tokens(group));
        let mut clauses = Vec::with_capacity(group.len());
        for (field, doc_freq) in group.iter().zip(blended) {
            let weight = term_weight(self.searcher(), field.statistics, &field.terms, value, doc_freq)?;
            clauses.push(boosted(weight, field.boost, scoring));
        }
        Ok(dis_max(clauses, tie_breaker, scoring))
    }

    /// Number of documents in all segments, deleted ones included.
    fn max_doc(&self) -> u64 {
        self.searcher().segment_readers().iter().map(|reader| u64::from(reader.max_doc())).sum()
    }

    /// Compiles `combined_fields`: the fields are scored as if they were one (BM25F).
    pub(crate) fn combined_fields(
        &mut self,
        query: &CombinedFieldsQuery,
        scoring: bool,
    ) -> Result<Box<dyn Weight>, QueryError> {
        const CLAUSE: &str = "combined_fields";
        let mut fields: Vec<(StringTerms, f32)> = Vec::new();
        let mut analyzer: Option<(String, String)> = None;
        for (path, boost, by_pattern) in self.expand_fields(&query.fields)? {
            match self.snapshot.mapping().field(&path) {
                Some(FieldType::Text { .. }) => {}
                Some(other) if !by_pattern => {
                    return Err(QueryError::CombinedFieldType { field: path, actual: other.name() });
                }
                _ => continue,
            }
            let name = self.analyzer_name(&path, None, CLAUSE)?;
            match &analyzer {
                Some((first, known)) if *known != name => {
                    return Err(QueryError::CombinedAnalyzers { fields: [first.clone(), path] });
                }
                _ => analyzer = Some((path.clone(), name)),
            }
            fields.extend(self.string_terms(&path).map(|terms| (terms, boost)));
        }
        let Some((first, _)) = fields.first() else { return Ok(weights::none()) };
        let tokens = self.analyze(first, &query.text, None, CLAUSE)?;
        let mut statistics = FieldStatistics { docs: 0, tokens: 0, explain: self.explaining };
        for (terms, boost) in &fields {
            if let Some(field) = self.statistics(terms, scoring)? {
                statistics.docs = statistics.docs.max(field.docs);
                statistics.tokens += (field.tokens as f64 * f64::from(*boost)) as u64;
            }
        }
        let statistics = scoring.then_some(statistics);
        let mut clauses = Vec::new();
        for section in sections(tokens)? {
            clauses.push(match section {
                Section::Terms { terms, .. } => self.combined_term(&fields, &terms, statistics)?,
                Section::Paths(paths) => {
                    let mut ways = Vec::with_capacity(paths.len());
                    for path in paths {
                        let mut words = Vec::with_capacity(path.len());
                        for value in path {
                            words.push(self.combined_term(&fields, &[value], statistics)?);
                        }
                        let count = words.len();
                        ways.push(should(words, count, scoring));
                    }
                    any(ways, scoring)
                }
            });
        }
        let minimum = query.minimum_should_match.as_deref();
        join(clauses, query.operator, minimum, query.zero_terms_query, scoring)
    }

    fn combined_term(
        &mut self,
        fields: &[(StringTerms, f32)],
        values: &[String],
        statistics: Option<FieldStatistics>,
    ) -> Result<Box<dyn Weight>, QueryError> {
        self.count_clause()?;
        let mut terms = Vec::with_capacity(fields.len() * values.len());
        let mut most = 0;
        for (field, boost) in fields {
            for value in values {
                let term = field.term(value);
                let doc_freq = self.searcher().doc_freq(&term)?;
                most = most.max(doc_freq);
                if doc_freq > 0 {
                    terms.push((term, *boost));
                }
            }
        }
        if terms.is_empty() {
            return Ok(weights::none());
        }
        Ok(Box::new(SummedWeight {
            terms,
            fields: fields.iter().map(|(terms, boost)| (terms.field, *boost)).collect(),
            bm25: statistics.map(|statistics| Bm25::new(statistics, &[most])),
        }))
    }
}

/// The clause that searches one of the fields.
fn one_field(query: &MultiMatchQuery, (path, boost, by_pattern): (String, f32, bool)) -> Query {
    let lenient = query.template.lenient || by_pattern;
    let phrase = |path: String| MatchPhraseQuery {
        field: path,
        text: query.template.text.clone(),
        slop: query.slop,
        analyzer: query.template.analyzer.clone(),
        zero_terms_query: query.template.zero_terms_query,
    };
    let kind = match query.kind {
        MultiMatchType::Phrase => QueryKind::MatchPhrase(phrase(path)),
        MultiMatchType::PhrasePrefix => QueryKind::MatchPhrasePrefix(MatchPhrasePrefixQuery {
            phrase: phrase(path),
            max_expansions: query.template.max_expansions,
        }),
        MultiMatchType::BoolPrefix => QueryKind::MatchBoolPrefix(MatchBoolPrefixQuery(MatchQuery {
            field: path,
            lenient,
            ..query.template.clone()
        })),
        MultiMatchType::BestFields | MultiMatchType::MostFields | MultiMatchType::CrossFields => {
            QueryKind::Match(MatchQuery { field: path, lenient, ..query.template.clone() })
        }
    };
    let mut clause = Query::new(kind);
    if lenient {
        clause = Query::new(QueryKind::Lenient(LenientQuery::new(clause)));
    }
    clause.with_boost(boost)
}

fn fewest_tokens(group: &[CrossField]) -> u64 {
    group.iter().filter_map(|field| field.statistics).map(|field| field.tokens).min().unwrap_or(u64::MAX)
}

/// The document frequencies that a term is scored with in each field, blended as in Elasticsearch: the
/// highest one, plus one for each step down to a field that has it less often. `None` for fields that do not
/// have the term.
fn blend(frequencies: &[u64], max_doc: u64, fewest_tokens: u64) -> Vec<Option<u64>> {
    let most = frequencies.iter().copied().max().unwrap_or(0);
    let limit = max_doc.min(fewest_tokens);
    let mut order: Vec<usize> = (0..frequencies.len()).collect();
    order.sort_by_key(|field| std::cmp::Reverse(frequencies[*field]));
    let mut blended = vec![None; frequencies.len()];
    let (mut actual, mut previous) = (most.min(limit), most);
    for field in order {
        let frequency = frequencies[field];
        if frequency == 0 {
            break;
        }
        actual += u64::from(previous > frequency);
        blended[field] = Some(actual.min(limit).max(1));
        previous = frequency;
    }
    blended
}

impl Meaning for MultiMatchQuery {
    fn compile(&self, compiler: &mut Compiler<'_>, scoring: bool) -> Result<Box<dyn Weight>, QueryError> {
        compiler.multi_match(self, scoring)
    }

    fn no_match(&self) -> Option<&'static str> {
        Some("No matching clause")
    }

    fn words(&self, wanted: &mut WantedWords<'_>) -> Result<(), QueryError> {
        let prefix = matches!(self.kind, MultiMatchType::PhrasePrefix | MultiMatchType::BoolPrefix);
        for (field, _, _) in wanted.compiler.searched_fields(self)? {
            wanted.compiler.check_cancelled()?;
            if matches!(self.kind, MultiMatchType::Phrase | MultiMatchType::PhrasePrefix) {
                let phrase = MatchPhraseQuery {
                    field,
                    text: self.template.text.clone(),
                    slop: self.slop,
                    analyzer: self.template.analyzer.clone(),
                    ..MatchPhraseQuery::default()
                };
                wanted.phrase(&phrase, prefix)?;
            } else {
                wanted.text(&MatchQuery { field, ..self.template.clone() }, prefix)?;
            }
        }
        Ok(())
    }
}

impl Meaning for CombinedFieldsQuery {
    fn compile(&self, compiler: &mut Compiler<'_>, scoring: bool) -> Result<Box<dyn Weight>, QueryError> {
        compiler.combined_fields(self, scoring)
    }

    fn words(&self, wanted: &mut WantedWords<'_>) -> Result<(), QueryError> {
        for (field, _, _) in wanted.compiler.expand_fields(&self.fields)? {
            wanted.compiler.check_cancelled()?;
            wanted.text(&MatchQuery { field, text: self.text.clone(), ..MatchQuery::default() }, false)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::blend;

    #[test]
    fn frequencies_blend_to_the_highest() {
        assert_eq!(blend(&[3, 10, 0], 100, 100), [Some(11), Some(10), None]);
        assert_eq!(blend(&[3, 3], 100, 100), [Some(3), Some(3)]);
        assert_eq!(blend(&[1, 2, 3], 3, 100), [Some(3), Some(3), Some(3)]);
        assert_eq!(blend(&[5, 4], 100, 5), [Some(5), Some(5)]);
        assert_eq!(blend(&[], 0, 0), []);
    }
}
