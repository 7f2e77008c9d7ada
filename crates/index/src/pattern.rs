//! Patterns with `*`, as names of fields, indices, models and tasks are chosen by.

/// Whether `name` matches a pattern in which `*` stands for any characters.
pub fn matches(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn patterns() {
        for (pattern, name, expected) in [
            ("*", "books", true),
            ("boo*", "books", true),
            ("*ks", "books", true),
            ("b*o*s", "books", true),
            ("b*z*s", "books", false),
            ("books", "books", true),
            ("book", "books", false),
            ("books*", "books", true),
            ("*o*o*o*", "books", false),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }
}
