//! Vectors as strings: in Base64, as clients of Elasticsearch 9.3 and later send them, or in hexadecimal digits.

use base64::Engine as _;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use sparrow_vectors::Element;

/// Base64 with or without padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Decodes the vector of a document: Base64 of 32-bit big-endian floats, or for bytes and bits two hexadecimal digits for each byte,
/// or Base64 of the bytes. A string of hexadecimal digits is never Base64: one that has too few would become another vector.
///
/// # Errors
/// A message about text that is neither.
pub(crate) fn vector(text: &str, element: Element, dims: Option<usize>) -> Result<Vec<f32>, String> {
    if element == Element::Float {
        return floats(text);
    }
    let bytes = dims.map(|dims| if element == Element::Bit { dims / 8 } else { dims });
    hex(text).or_else(|problem| match BASE64.decode(text) {
        Ok(decoded) if bytes.is_none_or(|bytes| bytes == decoded.len()) => Ok(signed(&decoded)),
        _ => Err(problem),
    })
}

/// Decodes the vector of a query, whose field is not known yet: two hexadecimal digits for each component of one byte, or else Base64
/// of 32-bit big-endian floats.
///
/// # Errors
/// A message about text that is neither.
pub fn query_vector(text: &str) -> Result<Vec<f32>, String> {
    hex(text).or_else(|problem| floats(text).map_err(|_| problem))
}

fn signed(bytes: &[u8]) -> Vec<f32> {
    bytes.iter().map(|byte| f32::from(byte.cast_signed())).collect()
}

fn floats(text: &str) -> Result<Vec<f32>, String> {
    let bytes = BASE64.decode(text).map_err(|error| {
        format!("a vector as a string must be Base64 of 32-bit big-endian floats: {error}")
    })?;
    let (floats, rest) = bytes.as_chunks::<4>();
    if floats.is_empty() || !rest.is_empty() {
        return Err(format!(
            "a vector as a string must be Base64 of 32-bit big-endian floats, found [{}] bytes",
            bytes.len()
        ));
    }
    Ok(floats.iter().map(|float| f32::from_be_bytes(*float)).collect())
}

/// Decodes two hexadecimal digits for each component.
fn hex(text: &str) -> Result<Vec<f32>, String> {
    if !text.len().is_multiple_of(2) {
        return Err(format!("found uneven number of hexadecimal digits: [{text}]"));
    }
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let bytes = text.as_bytes().as_chunks::<2>().0.iter().map(|[high, low]| {
        let byte = digit(*high)? * 16 + digit(*low)?;
        Some(f32::from(byte as u8 as i8))
    });
    bytes
        .collect::<Option<Vec<f32>>>()
        .ok_or_else(|| format!("found a character that is not a hexadecimal digit: [{text}]"))
}

#[cfg(test)]
mod tests {
    use base64::prelude::{BASE64_STANDARD, BASE64_STANDARD_NO_PAD};

    use super::*;

    fn encoded(floats: &[f32]) -> Vec<u8> {
        floats.iter().flat_map(|float| float.to_be_bytes()).collect()
    }

    #[test]
    fn floats_are_big_endian_with_or_without_padding() {
        for floats in [vec![1.5, -2.0], vec![0.0; 3], vec![f32::MIN_POSITIVE, 3e38, 1.0, 7.0]] {
            let bytes = encoded(&floats);
            for text in [BASE64_STANDARD.encode(&bytes), BASE64_STANDARD_NO_PAD.encode(&bytes)] {
                assert_eq!(vector(&text, Element::Float, Some(floats.len())), Ok(floats.clone()));
            }
        }
        // What Python's `struct.pack('>3f', 0.5, 10, 6)` gives.
        assert_eq!(vector("PwAAAEEgAABAwAAA", Element::Float, Some(3)), Ok(vec![0.5, 10.0, 6.0]));
        assert_eq!(query_vector("PwAAAEEgAABAwAAA"), Ok(vec![0.5, 10.0, 6.0]));
        for bad in ["", "no", "AAAA", "AAAAAAA", "äöü", "PwAAAEEgAABAwA=A"] {
            let problem = vector(bad, Element::Float, None).unwrap_err();
            assert!(problem.contains("must be Base64 of 32-bit big-endian floats"), "{bad} {problem}");
        }
    }

    #[test]
    fn bytes_are_hexadecimal_or_base64() {
        assert_eq!(vector("7f80", Element::Byte, Some(2)), Ok(vec![127.0, -128.0]));
        assert_eq!(
            vector(&BASE64_STANDARD.encode([127, 128]), Element::Byte, Some(2)),
            Ok(vec![127.0, -128.0])
        );
        // Four digits are two bytes, whatever is wanted; as Base64 they would be three.
        for dims in [Some(2), Some(3), None] {
            assert_eq!(vector("abcd", Element::Byte, dims).map(|vector| vector.len()), Ok(2));
        }
        assert_eq!(vector("xyz0", Element::Byte, Some(3)).map(|vector| vector.len()), Ok(3));
        assert_eq!(vector("f0", Element::Bit, Some(8)), Ok(vec![-16.0]));
        assert!(vector("xyz", Element::Byte, Some(2)).unwrap_err().contains("uneven number"));
        assert!(query_vector("xy").unwrap_err().contains("not a hexadecimal digit"));
    }
}
