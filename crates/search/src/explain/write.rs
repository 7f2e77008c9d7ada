//! Writes explanations of scores as JSON.

use std::io::Write;

use sparrow_tantivy_index::query::Explanation;

use sparrow_wire::java_float::write_score;

/// Writes an explanation; counts are whole numbers, everything else is a float as Java prints it.
pub fn write(explanation: &Explanation, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"value\":");
    let value = explanation.value;
    if is_count(&explanation.description) && value.fract() == 0.0 {
        // Writing to a vector cannot fail.
        let _ = write!(out, "{value:.0}");
    } else {
        write_score(out, value);
    }
    out.extend_from_slice(b",\"description\":");
    let _ = serde_json::to_writer(&mut *out, &explanation.description);
    out.extend_from_slice(b",\"details\":[");
    for (number, detail) in explanation.details.iter().enumerate() {
        if number > 0 {
            out.push(b',');
        }
        write(detail, out);
    }
    out.extend_from_slice(b"]}");
}

fn is_count(description: &str) -> bool {
    description.starts_with("n, number of")
        || description.starts_with("N, total number")
        || description.contains("], for rank [")
}
