//! Formats floating-point numbers as Java does, because that is what API users are used to.

use std::io::Write;

/// Appends `value` as Java's `Float.toString` writes it: the shortest digits that read back to the same
/// number, at least one digit after the point, and an exponent below 0.001 and from 10 million on.
///
/// A value that is not finite, which JSON cannot hold, becomes `null`.
pub fn write_f32(out: &mut Vec<u8>, value: f32) {
    if !value.is_finite() {
        out.extend_from_slice(b"null");
        return;
    }
    let magnitude = value.abs();
    if magnitude == 0.0 || (1e-3..1e7).contains(&magnitude) {
        // `Debug` prints the shortest digits and always a point within this range.
        push(out, format_args!("{value:?}"));
        return;
    }
    let scientific = format!("{value:e}");
    match scientific.split_once('e') {
        Some((digits, exponent)) if digits.contains('.') => {
            push(out, format_args!("{digits}E{exponent}"));
        }
        Some((digits, exponent)) => push(out, format_args!("{digits}.0E{exponent}")),
        None => out.extend_from_slice(scientific.as_bytes()),
    }
}

/// Writes a score: one that boosts have made too large for a float as the largest float. What is not a number is
/// written as null.
pub fn write_score(out: &mut Vec<u8>, score: f32) {
    write_f32(out, score.clamp(f32::MIN, f32::MAX));
}

/// `value` as Java formats it; see [`write_f32`].
pub fn f32_text(value: f32) -> String {
    let mut out = Vec::new();
    write_f32(&mut out, value);
    String::from_utf8_lossy(&out).into_owned()
}

fn push(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    // Writing to a vector cannot fail.
    let _ = out.write_fmt(text);
}

#[cfg(test)]
mod tests {
    use super::f32_text;

    #[test]
    fn prints_as_java_does() {
        for (value, text) in [
            (1.0, "1.0"),
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (0.133_531_39, "0.13353139"),
            (1.505_956_6, "1.5059566"),
            (0.832_519_53, "0.83251953"),
            (0.001, "0.001"),
            (0.0001, "1.0E-4"),
            (0.000_123_4, "1.234E-4"),
            (9_999_999.0, "9999999.0"),
            (10_000_000.0, "1.0E7"),
            (12_345_678.0, "1.2345678E7"),
            (-2.5e10, "-2.5E10"),
            (f32::MAX, "3.4028235E38"),
            (f32::MIN_POSITIVE, "1.1754944E-38"),
            (f32::NAN, "null"),
            (f32::INFINITY, "null"),
        ] {
            assert_eq!(f32_text(value), text);
        }
    }
}
