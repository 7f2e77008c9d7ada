//! Deterministic generators for tests, so that a failure can be repeated.

/// Pseudo-random 64-bit numbers.
pub(crate) fn states(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    }
}

/// Pseudo-random numbers between −1 and 1.
pub(crate) fn numbers(seed: u64) -> impl FnMut() -> f32 {
    let mut next = states(seed);
    move || (next() >> 40) as f32 / (1u64 << 23) as f32 - 1.0
}
