//! Parses `minimum_should_match` as Elasticsearch defines it.

use crate::error::QueryError;

/// How many of `optional` clauses must match: `2`, `-1`, `75%`, `-25%`, or conditions such as `2<-25% 9<-3`,
/// of which the last one whose bound lies below `optional` counts.
///
/// The result may exceed `optional`, in which case nothing matches.
///
/// # Errors
/// [`QueryError::NumberFormat`] when a number cannot be read.
pub fn minimum_should_match(optional: usize, spec: &str) -> Result<usize, QueryError> {
    let spec = spec.trim();
    let mut result = None;
    if spec.contains('<') {
        // "2 < 75%" may be written with spaces around the sign.
        let joined = spec.split('<').map(str::trim).collect::<Vec<_>>().join("<");
        for condition in joined.split_whitespace() {
            let (bound, value) = condition.split_once('<').unwrap_or((condition, ""));
            if (optional as i64) <= integer(bound)? {
                break;
            }
            result = Some(minimum_should_match(optional, value)?);
        }
        return Ok(result.unwrap_or(optional));
    }
    let optional = optional as i64;
    let value = match spec.strip_suffix('%') {
        Some(percent) => {
            // Single precision and truncation, so that borderline percentages agree with Lucene.
            let share = (optional * integer(percent)?) as f32 * (1.0 / 100.0);
            share as i64
        }
        None => integer(spec)?,
    };
    let negative = value < 0 || spec.starts_with('-');
    Ok((if negative { optional + value } else { value }).max(0) as usize)
}

fn integer(text: &str) -> Result<i64, QueryError> {
    text.parse::<i32>().map(i64::from).map_err(|_| QueryError::NumberFormat { input: text.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::minimum_should_match;

    #[test]
    fn forms() {
        for (optional, spec, expected) in [
            (5, "2", 2),
            (5, "7", 7),
            (5, "-1", 4),
            (5, "-9", 0),
            (4, "75%", 3),
            (5, "75%", 3),
            (4, "-25%", 3),
            (3, "-25%", 3),
            (5, "0%", 0),
            (3, "3<90%", 3),
            (4, "3<90%", 3),
            (10, "2<-25% 9<-3", 7),
            (9, "2 < -25%  9 < -3", 7),
            (2, "2<-25% 9<-3", 2),
        ] {
            assert_eq!(minimum_should_match(optional, spec).unwrap(), expected, "{spec}");
        }
        assert!(minimum_should_match(3, "x").is_err());
        assert!(minimum_should_match(3, "2<x").is_err());
    }
}
