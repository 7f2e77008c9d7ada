//! What a whole mapping is checked for: limits, and names that the settings of its index have to define.

use sparrow_analysis::Analysis;
use sparrow_types::work;

use super::{FieldType, Limits, Mapping, MappingError};

impl Mapping {
    /// Checks an explicit mapping against `index.mapping.total_fields.limit`.
    ///
    /// # Errors
    /// [`MappingError::TotalFields`].
    pub fn check_total_fields(&self, limit: usize) -> Result<(), MappingError> {
        if self.field_count() > limit {
            return Err(MappingError::TotalFields { limit });
        }
        Ok(())
    }

    /// Checks an explicit mapping against all limits of the index.
    ///
    /// # Errors
    /// [`MappingError::TotalFields`], or the object or name that goes beyond another limit.
    pub fn check_limits(&self, limits: &Limits) -> Result<(), MappingError> {
        self.check_total_fields(limits.total_fields)?;
        if self.nested.len() > limits.nested_fields {
            return Err(MappingError::Limit {
                reason: format!("Limit of nested fields [{}] has been exceeded", limits.nested_fields),
            });
        }
        let mut paths: Vec<(&String, &FieldType)> = self.by_path.iter().collect();
        paths.sort_unstable_by_key(|(path, _)| *path);
        for (path, field_type) in paths {
            work::check()?;
            let depth = path.matches('.').count() + 2;
            if matches!(field_type, FieldType::Object { .. }) && depth > limits.depth {
                return Err(MappingError::Limit {
                    reason: format!(
                        "Limit of mapping depth [{}] has been exceeded due to object field [{path}]",
                        limits.depth
                    ),
                });
            }
            let name = path.rsplit('.').next().unwrap_or(path);
            if let Some(reason) = limits.name_problem(name) {
                return Err(MappingError::Limit { reason });
            }
        }
        Ok(())
    }

    /// Checks that all analyzers and normalizers that fields name are there.
    ///
    /// # Errors
    /// [`MappingError::UnknownAnalyzer`], or that there is no such normalizer.
    pub fn check_analyzers(&self, analysis: &Analysis) -> Result<(), MappingError> {
        let mut fields: Vec<(&str, &FieldType)> = self.leaf_fields().collect();
        fields.sort_unstable_by_key(|(path, _)| *path);
        for (path, field_type) in fields {
            work::check()?;
            match field_type {
                FieldType::Text { options } => {
                    let search = options.search_analyzer.iter().chain(&options.search_quote_analyzer);
                    for name in std::iter::once(&options.analyzer).chain(search) {
                        if analysis.analyzer(name).is_none() {
                            return Err(MappingError::UnknownAnalyzer { analyzer: name.clone() });
                        }
                    }
                }
                FieldType::Keyword { normalizer: Some(name), .. } if analysis.normalizer(name).is_none() => {
                    return Err(MappingError::Malformed {
                        reason: format!("normalizer [{name}] not found for field [{path}]"),
                    });
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Checks that the similarities which fields name are `defined` by the index's settings.
    ///
    /// # Errors
    /// A similarity that is not defined, in Elasticsearch's words.
    pub fn check_similarities(&self, defined: impl Fn(&str) -> bool) -> Result<(), MappingError> {
        for (path, field_type) in self.leaf_fields() {
            if let FieldType::Text { options } = field_type
                && let Some(name) = &options.similarity
                && !defined(name)
            {
                return Err(MappingError::Malformed {
                    reason: format!("Unknown Similarity type [{name}] for field [{path}]"),
                });
            }
        }
        Ok(())
    }
}
