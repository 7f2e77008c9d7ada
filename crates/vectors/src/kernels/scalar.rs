//! The reference: the simplest correct loops.

fn components(row: &[u8]) -> impl Iterator<Item = f32> {
    row.chunks_exact(4).map(|bytes| f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
}

pub(super) fn dot(query: &[f32], row: &[u8]) -> f32 {
    query.iter().zip(components(row)).map(|(q, v)| q * v).sum()
}

pub(super) fn squared_distance(query: &[f32], row: &[u8]) -> f32 {
    query.iter().zip(components(row)).map(|(q, v)| (q - v) * (q - v)).sum()
}
