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

/// Whether `name` matches a pattern of a key's role: `*` stands for any characters, `?` for one. A `*` in `name` is for whatever
/// may stand there: the pattern has to match all of it, which no `?` does.
pub fn matches_role(pattern: &str, name: &str) -> bool {
    if !pattern.contains('?') {
        return matches(pattern, name);
    }
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    let (mut at, mut read) = (0, 0);
    // Where the last `*` stood, and how much of the name it has taken.
    let mut star: Option<(usize, usize)> = None;
    while read < name.len() {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, read));
                at += 1;
            }
            Some(one) if (*one == '?' && name[read] != '*') || *one == name[read] => {
                at += 1;
                read += 1;
            }
            _ => {
                let Some((place, taken)) = star else { return false };
                star = Some((place, taken + 1));
                at = place + 1;
                read = taken + 1;
            }
        }
    }
    pattern[at..].iter().all(|rest| *rest == '*')
}

#[cfg(test)]
mod tests {
    use super::{matches, matches_role};

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

    #[test]
    fn patterns_of_roles() {
        for (pattern, name, expected) in [
            ("logs-?", "logs-1", true),
            ("logs-?", "logs-12", false),
            ("l*-?", "logs-a-b", true),
            ("l*-?x", "logs-a-b", false),
            ("*", "any", true),
            ("?*", "", false),
            ("logs-*", "logs-*", true),
            ("l*", "logs-*-a", true),
            ("logs-*-a", "logs-*", false),
            ("logs-?", "logs-*", false),
            ("?ogs-*", "*", false),
            ("*?", "logs-*", false),
            ("logs-a", "logs-*", false),
        ] {
            assert_eq!(matches_role(pattern, name), expected, "{pattern} {name}");
        }
    }
}
