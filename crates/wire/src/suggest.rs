//! "Did you mean" suggestions: the known names most similar to an unknown one.

/// Lowest similarity of a suggestion, 0 to 1.
const LEAST_SIMILARITY: f32 = 0.5;

/// Names of `known` that are similar to `name`, nearest first, equally near ones by name.
///
/// Similarity is one minus the edit distance as a share of the longer name.
pub fn suggestions<'a>(name: &str, known: &[&'a str]) -> Vec<&'a str> {
    // A name of a megabyte has no neighbours, and the distance costs its length.
    if name.len() > 100 {
        return Vec::new();
    }
    let mut near: Vec<(f32, &'a str)> = known
        .iter()
        .map(|candidate| (similarity(name, candidate), *candidate))
        .filter(|(similarity, _)| *similarity > LEAST_SIMILARITY)
        .collect();
    near.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1)));
    near.into_iter().map(|(_, candidate)| candidate).collect()
}

/// End of a message about an unknown name that lists suggestions.
pub fn did_you_mean(suggestions: &[&str]) -> String {
    match suggestions {
        [] => String::new(),
        [one] => format!(" did you mean [{one}]?"),
        several => format!(" did you mean any of [{}]?", several.join(", ")),
    }
}

/// End of a message about a name: those of `known` that are similar to it. Empty for a known name.
pub fn near(name: &str, known: &[&str]) -> String {
    if known.contains(&name) { String::new() } else { did_you_mean(&suggestions(name, known)) }
}

/// Most names that a message lists.
const MOST_LISTED: usize = 64;

/// End of a message about an unknown name: those that are similar to it, and those that there are.
pub fn there_are(name: &str, known: &[&str]) -> String {
    let similar = suggestions(name, known);
    let (known, others) = known.split_at(known.len().min(MOST_LISTED));
    let mut all = known.join(", ");
    if !others.is_empty() {
        all.push_str(&format!(" and {} more", others.len()));
    }
    match similar.as_slice() {
        _ if known.is_empty() => String::new(),
        [] => format!(": there are [{all}]"),
        similar => format!(":{} There are [{all}]", did_you_mean(similar)),
    }
}

fn similarity(a: &str, b: &str) -> f32 {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let longest = a.len().max(b.len());
    if longest == 0 {
        return 1.0;
    }
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, left) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, right) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(left != right);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    1.0 - row[b.len()] as f32 / longest as f32
}

#[cfg(test)]
mod tests {
    use super::{suggestions, there_are};

    #[test]
    fn nearest_names_come_first() {
        let known = ["match", "match_all", "range", "term", "terms"];
        assert_eq!(suggestions("mach", &known), ["match"]);
        assert_eq!(suggestions("termss", &known), ["terms", "term"]);
        assert!(suggestions("nope", &known).is_empty());
        assert!(suggestions(&"x".repeat(1_000_000), &known).is_empty());
    }

    #[test]
    fn what_there_is_follows_what_was_meant() {
        assert_eq!(
            there_are("elastcsearch", &["elasticsearch", "elser"]),
            ": did you mean [elasticsearch]? There are [elasticsearch, elser]"
        );
        assert_eq!(there_are("openai", &["elasticsearch", "elser"]), ": there are [elasticsearch, elser]");
        assert_eq!(there_are("openai", &[]), "");
    }
}
