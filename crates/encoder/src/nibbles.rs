//! Matrices of 4-bit numbers: for each [`GROUP`] numbers of a row one scale, and half as many bytes. The lower halves of the bytes are the
//! first half of the group, the upper halves the second, as in GGML's form `Q4_0`. A number is its four bits less 8, times the scale.

/// Numbers of a row that have one scale.
pub(crate) const GROUP: usize = 32;

/// Bytes of a group.
pub(crate) const BYTES: usize = GROUP / 2;

/// Appends the numbers of some groups.
pub(crate) fn append(bytes: &[u8], scales: &[f32], out: &mut Vec<f32>) {
    for (group, scale) in bytes.chunks_exact(BYTES).zip(scales) {
        out.extend(numbers(group).map(|number| number * scale));
    }
}

/// The numbers of a group, without their scale.
pub(crate) fn numbers(group: &[u8]) -> impl Iterator<Item = f32> + '_ {
    let number = |bits: u8| f32::from(i16::from(bits) - 8);
    group.iter().map(move |byte| number(byte & 15)).chain(group.iter().map(move |byte| number(byte >> 4)))
}

#[cfg(test)]
mod tests {
    use super::{BYTES, append};

    #[test]
    fn lower_halves_come_before_upper_halves() {
        let mut bytes = [0x88; 2 * BYTES];
        // The numbers 0 and 16 of the first group, and the last of the second.
        bytes[0] = 0xF0;
        bytes[2 * BYTES - 1] = 0x98;
        let mut values = vec![7.0];
        append(&bytes, &[0.5, 2.0], &mut values);
        let mut expected = vec![0.0; 65];
        (expected[0], expected[1], expected[17], expected[64]) = (7.0, -4.0, 3.5, 2.0);
        assert_eq!(values, expected);
    }
}
