//! Structure-aware mutations of JSON.

use serde_json::{Map, Value};

use crate::mutation::{EDGES, WORDS};
use crate::random::Random;

/// The text of a good value with some of its parts changed, taken away, doubled, nested, or replaced by parts of another.
pub fn mutated(random: &mut Random, seeds: &[Value]) -> Vec<u8> {
    let mut root = random.pick(seeds).cloned().unwrap_or_default();
    for _ in 0..=random.below(3) {
        let count = count(&root);
        let mut place = random.below(count);
        change_at(random, &mut root, &mut place, seeds);
    }
    let mut text = root.to_string();
    // Numbers that a value cannot hold.
    if random.once_in(4) {
        let digits: Vec<usize> =
            text.char_indices().filter(|(_, c)| c.is_ascii_digit()).map(|(at, _)| at).collect();
        if let (Some(&at), Some(edge)) = (random.pick(&digits), random.pick(EDGES)) {
            text.replace_range(at..=at, edge);
        }
    }
    text.into_bytes()
}

/// Values in a value, itself included.
fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Object(members) => members.values().map(count).sum(),
        _ => 0,
    }
}

fn change_at(random: &mut Random, value: &mut Value, place: &mut usize, seeds: &[Value]) -> bool {
    if *place == 0 {
        change(random, value, seeds);
        return true;
    }
    *place -= 1;
    match value {
        Value::Array(items) => items.iter_mut().any(|item| change_at(random, item, place, seeds)),
        Value::Object(members) => members.values_mut().any(|member| change_at(random, member, place, seeds)),
        _ => false,
    }
}

fn change(random: &mut Random, value: &mut Value, seeds: &[Value]) {
    let old = value.take();
    *value = match (random.below(9), old) {
        (0 | 1, Value::String(text)) => Value::String(other_text(random, &text)),
        (0..=2, Value::Object(mut members)) => {
            let names: Vec<String> = members.keys().cloned().collect();
            if let Some(name) = random.pick(&names) {
                let member = members.remove(name).unwrap_or_default();
                if random.once_in(2) {
                    members.insert(other_text(random, name), member);
                }
            }
            Value::Object(members)
        }
        (0..=1, Value::Array(mut items)) => {
            if !items.is_empty() {
                let at = random.below(items.len());
                if random.once_in(2) {
                    let again = items[at].clone();
                    items.push(again);
                } else {
                    items.remove(at);
                }
            }
            Value::Array(items)
        }
        (3, old) => Value::Array(vec![old.clone(), old]),
        (4, old) => {
            let name = random.pick(WORDS).map_or_else(String::new, |word| (*word).to_owned());
            Value::Object(Map::from_iter([(name, old)]))
        }
        (5, _) => part(random, seeds),
        (6, _) => random.pick(EDGES).and_then(|edge| serde_json::from_str(edge).ok()).unwrap_or(Value::Null),
        (7, old) => {
            let mut nested = old;
            for _ in 0..[2, 8, 40][random.below(3)] {
                nested = Value::Array(vec![nested]);
            }
            nested
        }
        (_, old) => match random.below(6) {
            0 => Value::Null,
            1 => Value::Bool(random.once_in(2)),
            2 => Value::Array(Vec::new()),
            3 => Value::Object(Map::new()),
            4 => Value::String(other_text(random, old.as_str().unwrap_or_default())),
            _ => old,
        },
    };
}

/// A random part of a random seed.
fn part(random: &mut Random, seeds: &[Value]) -> Value {
    let mut at = random.pick(seeds).cloned().unwrap_or_default();
    loop {
        let parts: Vec<Value> = match &at {
            Value::Array(items) => items.clone(),
            Value::Object(members) => members.values().cloned().collect(),
            _ => Vec::new(),
        };
        if parts.is_empty() || random.once_in(3) {
            return at;
        }
        at = parts[random.below(parts.len())].clone();
    }
}

fn other_text(random: &mut Random, text: &str) -> String {
    let word = random.pick(WORDS).copied().unwrap_or_default();
    let end =
        text.char_indices().map(|(at, _)| at).nth(random.below(text.len().max(1))).unwrap_or(text.len());
    match random.below(6) {
        0 => word.to_owned(),
        1 => format!("{text}{word}"),
        2 => format!("{word}{text}"),
        3 => text[..end].to_owned(),
        4 => format!("{}{word}{}", &text[..end], &text[end..]),
        _ => text.repeat([1, 2, 50][random.below(3)]),
    }
}
