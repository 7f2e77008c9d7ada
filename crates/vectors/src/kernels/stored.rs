//! Reading stored vectors as floats, and the metric of the graph library.

/// Calls `use_floats` with the little endian f32 of a row: without a copy where the row is aligned for it.
pub(crate) fn with_floats(row: &[u8], use_floats: impl FnOnce(&[f32]) -> f32) -> f32 {
    // SAFETY: every pattern of bits is an f32.
    let (before, floats, after) = unsafe { row.align_to::<f32>() };
    if cfg!(target_endian = "little") && before.is_empty() && after.is_empty() {
        return use_floats(floats);
    }
    let floats: Vec<f32> = row.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
    use_floats(&floats)
}

/// Gives an index over vectors of one component, their numbers, a metric over these numbers.
pub(crate) fn set_metric(
    index: &mut usearch::Index,
    metric: impl Fn(usize, usize) -> f32 + Send + Sync + 'static,
) {
    debug_assert_eq!(index.dimensions(), 1);
    index.change_metric::<f32>(Box::new(move |a, b| {
        // SAFETY: the library passes pointers to stored or added vectors, which have one component each.
        let (a, b) = unsafe { (a.read_unaligned(), b.read_unaligned()) };
        metric(a as usize, b as usize)
    }));
}
