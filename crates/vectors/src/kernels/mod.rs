//! Comparisons of a query with one stored vector, for the instruction sets at hand.
//!
//! All implementations equal [`scalar`] within `4 · ε · Σ|qᵢvᵢ|` (dot) or `4 · ε · dims · Σ(qᵢ−vᵢ)²` (distance):
//! they add in another order and fuse multiply with add. The choice is made once; `SPARROW_SIMD` (`scalar`, `avx2`,
//! `avx512`, `neon`) forces one that the machine has.

#![expect(unsafe_code, reason = "vector instructions")]

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod lanes;
#[cfg(target_arch = "aarch64")]
mod neon;
mod scalar;
pub(crate) mod stored;

use std::sync::LazyLock;

/// A query of f32 against the bytes of a vector of the same length.
type Kernel = fn(&[f32], &[u8]) -> f32;
/// Two vectors of i8 of the same length. At most 2^16 components, so that the sum fits.
type Int8Kernel = fn(&[u8], &[u8]) -> i32;

pub(crate) struct Implementation {
    name: &'static str,
    dot: Kernel,
    squared_distance: Kernel,
    dot_i8: Int8Kernel,
}

static CHOSEN: LazyLock<Implementation> = LazyLock::new(|| {
    let wanted = std::env::var("SPARROW_SIMD").ok();
    let mut all = available();
    let position = all.iter().position(|one| Some(one.name) == wanted.as_deref());
    all.swap_remove(position.unwrap_or(0))
});

/// Implementations that this machine can run, fastest first; the scalar one is always last.
fn available() -> Vec<Implementation> {
    let mut all = Vec::new();
    #[cfg(target_arch = "x86_64")]
    {
        all.extend(avx512::implementation());
        all.extend(avx2::implementation());
    }
    #[cfg(target_arch = "aarch64")]
    all.extend(neon::implementation());
    all.push(Implementation {
        name: "scalar",
        dot: scalar::dot,
        squared_distance: scalar::squared_distance,
        dot_i8: scalar::dot_i8,
    });
    all
}

/// Name of the implementation in use.
pub fn implementation_name() -> &'static str {
    CHOSEN.name
}

/// `Σ qᵢ·vᵢ`; `row` holds `query.len()` little endian f32.
pub(crate) fn dot(query: &[f32], row: &[u8]) -> f32 {
    (CHOSEN.dot)(query, row)
}

/// `Σ (qᵢ−vᵢ)²`; `row` holds `query.len()` little endian f32.
pub(crate) fn squared_distance(query: &[f32], row: &[u8]) -> f32 {
    (CHOSEN.squared_distance)(query, row)
}

/// [`dot`] of two stored vectors.
pub(crate) fn dot_rows(a: &[u8], b: &[u8]) -> f32 {
    stored::with_floats(a, |a| dot(a, b))
}

/// [`squared_distance`] of two stored vectors.
pub(crate) fn squared_distance_rows(a: &[u8], b: &[u8]) -> f32 {
    stored::with_floats(a, |a| squared_distance(a, b))
}

/// `Σ aᵢ·bᵢ` of two vectors of i8; the same for all implementations.
pub(crate) fn dot_i8(a: &[u8], b: &[u8]) -> i32 {
    (CHOSEN.dot_i8)(a, b)
}

/// Number of bits in which two vectors of the same length differ.
pub(crate) fn hamming(a: &[u8], b: &[u8]) -> u32 {
    scalar::hamming(a, b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_implementation_equals_the_scalar_one() {
        let all = available();
        let mut state = 7_u32;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / 8_388_608.0 - 1.0
        };
        for length in (0..70).chain([127, 128, 129, 383, 384, 385, 1024]) {
            let query: Vec<f32> = (0..length).map(|_| next()).collect();
            let values: Vec<f32> = (0..length).map(|_| next()).collect();
            // One byte off, so that nothing depends on alignment.
            let mut bytes = vec![0_u8];
            bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
            let row = &bytes[1..];
            let products: f32 = query.iter().zip(&values).map(|(q, v)| (q * v).abs()).sum();
            let (dot, distance) = (scalar::dot(&query, row), scalar::squared_distance(&query, row));
            for one in &all {
                let error = ((one.dot)(&query, row) - dot).abs();
                assert!(error <= 1e-6 * (1.0 + products), "{} dot {length}: {error}", one.name);
                let error = ((one.squared_distance)(&query, row) - distance).abs();
                assert!(error <= 1e-6 * (1.0 + distance), "{} distance {length}: {error}", one.name);
            }
        }
    }

    #[test]
    fn products_of_bytes_are_exact() {
        let mut state = 11_u32;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        };
        for length in (0..70).chain([127, 128, 129, 383, 384, 385, 4096]) {
            let a: Vec<u8> = (0..length).map(|_| next()).collect();
            let b: Vec<u8> = (0..=length).map(|_| next()).collect();
            let least = vec![0x80_u8; length];
            for one in available() {
                assert_eq!((one.dot_i8)(&a, &b[1..]), scalar::dot_i8(&a, &b[1..]), "{} {length}", one.name);
                assert_eq!((one.dot_i8)(&least, &least), length as i32 * 16_384, "{} {length}", one.name);
            }
            let bits: u32 = a.iter().zip(&b[1..]).map(|(a, b)| (a ^ b).count_ones()).sum();
            assert_eq!(hamming(&a, &b[1..]), bits);
        }
    }
}
