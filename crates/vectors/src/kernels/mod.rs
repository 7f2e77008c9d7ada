//! Comparisons of a query with one stored vector, for the instruction sets at hand.
//!
//! All implementations equal [`scalar`] within `ε · dims · Σ|qᵢvᵢ|` (dot) or `4 · ε · dims · Σ(qᵢ−vᵢ)²` (distance):
//! they add in another order and fuse multiply with add. The choice is made once; `SPARROW_SIMD` (`scalar`, `avx2`,
//! `avx512`, `avx512_vnni`, `neon`) forces one that the machine has.

#![expect(unsafe_code, reason = "vector instructions")]

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod lanes;
#[cfg(target_arch = "aarch64")]
mod neon;
mod rows;
mod scalar;
#[cfg(target_arch = "x86_64")]
mod vnni;

use std::sync::LazyLock;

use rows::with_prefetch;
pub(crate) use rows::{ReadOrder, Rows, prefetch};

/// Kernel that compares an f32 query with stored vectors of the same length, given by number. Each result is
/// independent of the other vectors in the call.
type Kernel = fn(&[f32], Rows<'_>, &[u32], &mut [f32]);
/// Kernel that compares an i8 query with stored i8 vectors of the same length, given by number. At most 2^16
/// components, so that sums fit an i32.
type Int8Kernel = fn(&[u8], Rows<'_>, &[u32], &mut [i32]);

/// Kernel that compares a query with codes of few bits, which rows begin with. At most 2^16 components, so that sums fit an
/// i32.
type ShortKernel = Int8Kernel;

/// Planes of a query that is compared with codes of one bit: its numbers have as many bits.
pub(crate) const PLANES: usize = 4;

pub(crate) struct Implementation {
    name: &'static str,
    dots: Kernel,
    squared_distances: Kernel,
    dots_i8: Int8Kernel,
    dots_int4: ShortKernel,
    dots_bits: ShortKernel,
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
        all.extend(vnni::implementation());
        all.extend(avx512::implementation());
        all.extend(avx2::implementation());
    }
    #[cfg(target_arch = "aarch64")]
    all.extend(neon::implementation());
    all.push(Implementation {
        name: "scalar",
        dots: scalar::dots,
        squared_distances: scalar::squared_distances,
        dots_i8: scalar::dots_i8,
        dots_int4: scalar::dots_int4,
        dots_bits: scalar::dots_bits,
    });
    all
}

/// Name of the implementation in use, as in `SPARROW_SIMD`.
pub fn implementation_name() -> &'static str {
    CHOSEN.name
}

/// `Σ qᵢ·vᵢ` of a query with each of some rows, which hold `query.len()` little endian f32.
pub(crate) fn dots(query: &[f32], rows: Rows<'_>, numbers: &[u32], out: &mut [f32]) {
    (CHOSEN.dots)(query, rows, numbers, out);
}

/// `Σ (qᵢ−vᵢ)²` of a query and each of some rows, which hold `query.len()` little endian f32.
pub(crate) fn squared_distances(query: &[f32], rows: Rows<'_>, numbers: &[u32], out: &mut [f32]) {
    (CHOSEN.squared_distances)(query, rows, numbers, out);
}

/// `Σ aᵢ·bᵢ` of a vector of i8 with each of some rows; the same for all implementations.
pub(crate) fn dots_i8(query: &[u8], rows: Rows<'_>, numbers: &[u32], out: &mut [i32]) {
    (CHOSEN.dots_i8)(query, rows, numbers, out);
}

/// `Σ aᵢ·bᵢ` of a vector of i8 with each of some rows, which begin with half as many bytes: the lower four bits belong to the
/// first half of the vector, the upper ones to the second. The same for all implementations.
pub(crate) fn dots_int4(query: &[u8], rows: Rows<'_>, numbers: &[u32], out: &mut [i32]) {
    (CHOSEN.dots_int4)(query, rows, numbers, out);
}

/// `Σ aᵢ·bᵢ` of a vector of numbers from −8 to 7 with each of some rows, which begin with a bit for each number. The vector is
/// given as [`PLANES`] rows of bits, the lowest one of each number first; the same for all implementations.
pub(crate) fn dots_bits(planes: &[u8], rows: Rows<'_>, numbers: &[u32], out: &mut [i32]) {
    (CHOSEN.dots_bits)(planes, rows, numbers, out);
}

/// Number of differing bits between a vector and each of some rows.
pub(crate) fn hammings(query: &[u8], rows: Rows<'_>, numbers: &[u32], out: &mut [i32]) {
    for (number, out) in with_prefetch(rows, numbers).zip(out) {
        *out = scalar::hamming(query, rows.row(number)) as i32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Row numbers in no order, some repeated. The rows start at an odd address, to show that alignment does
    /// not matter.
    const ORDER: [u32; 11] = [4, 0, 3, 3, 1, 2, 6, 5, 7, 0, 6];
    const ROWS: usize = 8;

    #[test]
    fn every_implementation_equals_the_scalar_one() {
        let all = available();
        let mut state = 7_u32;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / 8_388_608.0 - 1.0
        };
        for length in (1..70).chain([127, 128, 129, 383, 384, 385, 1024, 4096]) {
            let query: Vec<f32> = (0..length).map(|_| next()).collect();
            let mut values: Vec<f32> = (0..length * ROWS).map(|_| next()).collect();
            // The products with the first row are all positive, so that sums and their errors are as large as can be.
            values.iter_mut().zip(&query).for_each(|(value, q)| *value = value.copysign(*q));
            let mut bytes = vec![0_u8];
            bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
            let rows = Rows::new(&bytes[1..], length * 4);
            for many in 1..ORDER.len() {
                let numbers = &ORDER[..many];
                let mut wanted = [[0.0; ORDER.len()]; 2];
                scalar::dots(&query, rows, numbers, &mut wanted[0]);
                scalar::squared_distances(&query, rows, numbers, &mut wanted[1]);
                for one in &all {
                    let mut found = [[0.0; ORDER.len()]; 2];
                    (one.dots)(&query, rows, numbers, &mut found[0]);
                    (one.squared_distances)(&query, rows, numbers, &mut found[1]);
                    for (at, number) in numbers.iter().enumerate() {
                        let vector = &values[*number as usize * length..][..length];
                        let products: f32 = query.iter().zip(vector).map(|(q, v)| (q * v).abs()).sum();
                        let error = (found[0][at] - wanted[0][at]).abs();
                        // Errors cancel out mostly: they are far below what they could add up to.
                        let most = length.min(8) as f32 * f32::EPSILON * products;
                        assert!(error <= most, "{} dot {length}: {error}", one.name);
                        let error = (found[1][at] - wanted[1][at]).abs();
                        let most = 4.0 * f32::EPSILON * length as f32 * wanted[1][at];
                        assert!(error <= most, "{} distance {length}: {error}", one.name);
                        // A vector's score does not depend on what else is compared.
                        let mut alone = [0.0];
                        (one.dots)(&query, rows, &[*number], &mut alone);
                        assert_eq!(alone[0].to_bits(), found[0][at].to_bits(), "{} {length}", one.name);
                    }
                }
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
        for length in (1..70).chain([127, 128, 129, 383, 384, 385, 4096, 65_536]) {
            let query: Vec<u8> = (0..length).map(|_| next()).collect();
            let bytes: Vec<u8> = (0..=length * ROWS).map(|_| next()).collect();
            let rows = Rows::new(&bytes[1..], length);
            let least = vec![0x80_u8; length];
            for many in 1..ORDER.len() {
                let mut wanted = [0; ORDER.len()];
                scalar::dots_i8(&query, rows, &ORDER[..many], &mut wanted);
                for one in available() {
                    let mut found = [0; ORDER.len()];
                    (one.dots_i8)(&query, rows, &ORDER[..many], &mut found);
                    assert_eq!(found, wanted, "{} {length}", one.name);
                    (one.dots_i8)(&least, Rows::new(&least, length), &[0], &mut found);
                    assert_eq!(found[0], length as i32 * 16_384, "{} {length}", one.name);
                }
            }
            let mut found = [0; ROWS];
            hammings(&query, rows, &ORDER[..ROWS], &mut found);
            for (number, found) in ORDER.iter().zip(found) {
                let bits = query.iter().zip(rows.row(*number)).map(|(a, b)| (a ^ b).count_ones());
                assert_eq!(found as u32, bits.sum::<u32>());
            }
        }
    }

    #[test]
    fn products_of_short_codes_are_exact() {
        let mut state = 13_u32;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        };
        for length in (1..140).chain([191, 192, 193, 512, 2048, 8192]) {
            let query: Vec<u8> = (0..length * 4).map(|_| next()).collect();
            // What follows the codes of a row is not read.
            let width = length + 8;
            let bytes: Vec<u8> = (0..=width * ROWS).map(|_| next()).collect();
            let rows = Rows::new(&bytes[1..], width);
            let (least, full) = (vec![0x80_u8; length * 2], vec![0xff_u8; width]);
            for many in 1..ORDER.len() {
                let mut wanted = [[0; ORDER.len()]; 2];
                for (at, number) in ORDER[..many].iter().enumerate() {
                    let row = &rows.row(*number)[..length];
                    let code = |at: usize| i32::from(row[at % length] >> (4 * (at / length)) & 15);
                    wanted[0][at] = (0..2 * length).map(|at| i32::from(query[at] as i8) * code(at)).sum();
                    let bit = |bytes: &[u8], at: usize| i32::from(bytes[at / 8] >> (at % 8) & 1);
                    let plane = |plane: usize, at| bit(&query[plane * length..], at);
                    wanted[1][at] = (0..8 * length)
                        .map(|at| {
                            let number =
                                plane(0, at) + 2 * plane(1, at) + 4 * plane(2, at) - 8 * plane(3, at);
                            number * bit(row, at)
                        })
                        .sum();
                }
                for one in available() {
                    let mut found = [[0; ORDER.len()]; 2];
                    (one.dots_int4)(&query[..length * 2], rows, &ORDER[..many], &mut found[0]);
                    (one.dots_bits)(&query, rows, &ORDER[..many], &mut found[1]);
                    assert_eq!(found, wanted, "{} {length}", one.name);
                    let mut largest = [0; 1];
                    (one.dots_int4)(&least, Rows::new(&full, width), &[0], &mut largest);
                    assert_eq!(largest[0], -128 * 15 * 2 * length as i32, "{} {length}", one.name);
                }
            }
        }
    }
}
