//! What a whole mapping is checked for: limits, and names that the settings of its index have to define.

use sparrow_analysis::Analysis;
use sparrow_runtime::work;
use sparrow_wire::suggest::there_are;

use super::completion_contexts::{Context, ContextKind};
use super::{FieldType, LONGEST_NAME, Limits, Mapping, MappingError, values};

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

    /// Checks the lengths of names, in a mapping of files that may come from anywhere.
    ///
    /// # Errors
    /// [`MappingError::Limit`] for a name with more than [`LONGEST_NAME`] characters.
    pub fn check_names(&self) -> Result<(), MappingError> {
        let limits = Limits { field_name: LONGEST_NAME, ..Limits::default() };
        let names = self.by_path.keys().map(|path| path.rsplit('.').next().unwrap_or(path));
        let problem = names.filter_map(|name| limits.name_problem(name)).min();
        problem.map_or(Ok(()), |reason| Err(MappingError::Limit { reason }))
    }

    /// Checks that fields of numbers, dates and booleans can take what stands for a null: otherwise each document with a null would be
    /// refused.
    ///
    /// # Errors
    /// [`MappingError::BadValue`] for the first that cannot.
    pub(crate) fn check_null_values(&self) -> Result<(), MappingError> {
        let refused = |path: &str, field_type: &FieldType| {
            let of_number =
                field_type.is_integer() || field_type.is_float() || field_type.date_formats().is_some();
            if !of_number && !matches!(field_type, FieldType::Boolean) {
                return None;
            }
            let causes = values::number(field_type, true, self.parameter(path, "null_value")?, None).err()?;
            let (_, reason) = causes.into_iter().next()?;
            Some(format!("Error parsing [null_value] on field [{path}]: {reason}"))
        };
        // The fields come in no order, and the same request gets the same error.
        let first = self.leaf_fields().filter_map(|(path, field_type)| refused(path, field_type)).min();
        first.map_or(Ok(()), |reason| Err(MappingError::BadValue { reason }))
    }

    /// Checks that all analyzers and normalizers that fields name are there.
    ///
    /// # Errors
    /// [`MappingError::UnknownAnalyzer`], or that there is no such normalizer.
    pub fn check_analyzers(&self, analysis: &Analysis) -> Result<(), MappingError> {
        let mut fields: Vec<(&str, &FieldType)> = self.leaf_fields().collect();
        fields.sort_unstable_by_key(|(path, _)| *path);
        let unknown = |name: &str| MappingError::UnknownAnalyzer {
            analyzer: name.to_owned(),
            instead: there_are(name, &analysis.all_names()),
        };
        for (path, field_type) in fields {
            work::check()?;
            match field_type {
                FieldType::Text { options } => {
                    let search = options.search_analyzer.iter().chain(&options.search_quote_analyzer);
                    for name in std::iter::once(&options.analyzer).chain(search) {
                        if analysis.analyzer(name).is_none() {
                            return Err(unknown(name));
                        }
                    }
                }
                FieldType::TokenCount { analyzer, .. } if analysis.analyzer(analyzer).is_none() => {
                    return Err(unknown(analyzer));
                }
                FieldType::Completion(field) => {
                    for name in [&*field.analyzer, field.search_analyzer()] {
                        if analysis.analyzer(name).is_none() {
                            return Err(unknown(name));
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

    /// Checks that the fields whose values contexts have can have such values. A field of categories may come later.
    ///
    /// # Errors
    /// The first context whose field cannot.
    pub(crate) fn check_contexts(&self) -> Result<(), MappingError> {
        let refused = |path: &str, context: &Context| {
            let of = context.path.as_deref()?;
            let needed = match (context.kind, self.field(of)) {
                (ContextKind::Geo { .. }, Some(FieldType::GeoPoint))
                | (ContextKind::Category, None | Some(FieldType::Keyword { .. } | FieldType::Text { .. })) => {
                    let concrete = self.concrete(of);
                    if self.nested_around(&concrete).is_none() || self.is_included(&concrete) {
                        return None;
                    }
                    "is not inside a [nested] one"
                }
                (ContextKind::Geo { .. }, _) => "is there and is a [geo_point]",
                (ContextKind::Category, _) => "is a [keyword] or a [text]",
            };
            let name = &context.name;
            Some(format!(
                "Invalid [path] value [{of}] of the context [{name}] of field [{path}]: it takes a field that {needed}"
            ))
        };
        let of_field = |(path, field_type): (&str, &FieldType)| match field_type {
            FieldType::Completion(field) => {
                field.contexts.iter().filter_map(|context| refused(path, context)).min()
            }
            _ => None,
        };
        // The fields come in no order, and the same request gets the same error.
        self.leaf_fields()
            .filter_map(of_field)
            .min()
            .map_or(Ok(()), |reason| Err(MappingError::BadValue { reason }))
    }
}
