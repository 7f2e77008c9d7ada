//! Ids of models and endpoints.

/// Whether something may be the id of a model or an endpoint: lowercase letters, digits and `_-.`, a letter or digit
/// at both ends, at most 64 bytes. Such an id is also a safe name of a file.
pub fn is_valid_id(id: &str) -> bool {
    let ends = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    (1..=64).contains(&id.len())
        && id.starts_with(ends)
        && id.ends_with(ends)
        && id.chars().all(|c| ends(c) || matches!(c, '_' | '-' | '.'))
}
