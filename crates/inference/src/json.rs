//! JSON form of vectors, in responses and in documents.

use serde_json::{Value, json};
use sparrow_encoder::Output;

/// Converts a vector to the JSON stored in documents: an object of weights by token, or an array of numbers; an object of both for two vectors.
pub fn vector_to_json(output: &Output) -> Value {
    let of_pairs = |pairs: &[(Box<str>, f32)]| {
        let weights = pairs.iter();
        Value::Object(weights.map(|(token, weight)| (token.to_string(), weight_to_json(*weight))).collect())
    };
    let of_numbers =
        |vector: &[f32]| Value::Array(vector.iter().map(|number| weight_to_json(*number)).collect());
    match output {
        Output::Sparse(tokens) => of_pairs(tokens.pairs()),
        Output::Dense(vector) => of_numbers(vector),
        Output::Hybrid { sparse, dense } => {
            json!({"sparse_embedding": of_pairs(sparse.pairs()), "text_embedding": of_numbers(dense)})
        }
    }
}

/// A single-precision number with as few digits as tell it apart from its neighbours. (A plain conversion to double
/// would write 0.1 as 0.10000000149011612.)
pub fn weight_to_json(weight: f32) -> Value {
    let shortest = few_decimals(weight)
        .unwrap_or_else(|| weight.to_string().parse().unwrap_or_else(|_| f64::from(weight)));
    serde_json::Number::from_f64(shortest).map_or(Value::Null, Value::Number)
}

/// The shortest decimal of a weight of a usual size, found by rounding to ever more decimals: many times faster than
/// printing it and reading that. A number below 2^53 divided by a power of ten below 10^22 is the double nearest to
/// that decimal, which is what reading it would give.
fn few_decimals(weight: f32) -> Option<f64> {
    let exact = f64::from(weight);
    if !(1e-3..8.0).contains(&exact) {
        return None;
    }
    let mut scale = 1e4;
    // Fewer decimals than five are found among five just the same, as zeros at the end: below 8, numbers of single
    // precision are nearer to one another than those.
    for _ in 5..=11 {
        scale *= 10.0;
        let short = (exact * scale).round() / scale;
        #[expect(clippy::cast_possible_truncation, reason = "the round trip is what is asked")]
        if short as f32 == weight {
            return Some(short);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::weight_to_json;
    use proptest::prelude::*;

    #[test]
    fn weights_are_written_short() {
        for (weight, text) in [(0.1_f32, "0.1"), (1.0, "1.0"), (2.345_678_8, "2.3456788"), (1e-8, "1e-8")] {
            let value = weight_to_json(weight);
            assert_eq!(value.to_string(), text);
            #[expect(clippy::cast_possible_truncation, reason = "the round trip is what is tested")]
            let back = value.as_f64().unwrap() as f32;
            assert_eq!(back.to_bits(), weight.to_bits());
        }
    }

    proptest! {
        #[test]
        fn any_weight_is_the_decimal_that_printing_gives(bits in any::<u32>(), usual in 0.0_f32..8.0) {
            for weight in [f32::from_bits(bits), usual] {
                prop_assume!(weight.is_finite());
                let printed: f64 = weight.to_string().parse().unwrap();
                prop_assert_eq!(weight_to_json(weight).as_f64().unwrap().to_bits(), printed.to_bits());
            }
        }
    }
}
