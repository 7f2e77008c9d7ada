//! Code that the kernels of all instruction sets share: the loop over whole vector registers with four
//! independent sums, because each addition waits for the previous one of its sum, and a scalar loop over the
//! rest.

/// Generates `implementation()` from a module's `LANES`, `Vector` and its operations `zero`, `load`, `add`,
/// `subtract`, `multiply_add(sum, a, b)` and `total`, all of which have the target features, and its
/// `dots_i8`, `dots_int4` and `dots_bits`.
macro_rules! implementation {
    ($name:literal, $features:literal, $detected:expr) => {
        /// Implementation with these instructions, or `None` if this machine lacks them.
        pub(super) fn implementation() -> Option<Implementation> {
            $detected.then_some(Implementation {
                name: $name,
                dots,
                squared_distances,
                dots_i8,
                dots_int4,
                dots_bits,
            })
        }

        fn dots(query: &[f32], rows: Rows<'_>, numbers: &[u32], out: &mut [f32]) {
            // SAFETY: implementation() handed this function out only after it found the instructions.
            unsafe { dots_lanes(query, rows, numbers, out) }
        }

        #[target_feature(enable = $features)]
        fn dots_lanes(query: &[f32], rows: Rows<'_>, numbers: &[u32], out: &mut [f32]) {
            let whole = query.len() / LANES * LANES;
            for (number, out) in with_prefetch(rows, numbers).zip(out) {
                let (row, rest) = rows.row(number).split_at(whole * 4);
                *out = dot_lanes(&query[..whole], row) + scalar::dot(&query[whole..], rest);
            }
        }

        fn squared_distances(query: &[f32], rows: Rows<'_>, numbers: &[u32], out: &mut [f32]) {
            // SAFETY: as in dots.
            unsafe { squared_distances_lanes(query, rows, numbers, out) }
        }

        #[target_feature(enable = $features)]
        fn squared_distances_lanes(query: &[f32], rows: Rows<'_>, numbers: &[u32], out: &mut [f32]) {
            let whole = query.len() / LANES * LANES;
            for (number, out) in with_prefetch(rows, numbers).zip(out) {
                let (row, rest) = rows.row(number).split_at(whole * 4);
                *out = squared_distance_lanes(&query[..whole], row)
                    + scalar::squared_distance(&query[whole..], rest);
            }
        }

        #[target_feature(enable = $features)]
        fn dot_lanes(query: &[f32], row: &[u8]) -> f32 {
            let mut sums = [zero(); 4];
            let (mut q4, mut v4) = (query.chunks_exact(LANES * 4), row.chunks_exact(LANES * 16));
            for (q, v) in (&mut q4).zip(&mut v4) {
                for at in 0..4 {
                    // SAFETY: both chunks hold 4 · LANES f32, and the loads need no alignment.
                    let (q, v) = unsafe {
                        (load(q[at * LANES..].as_ptr()), load(v[at * LANES * 4..].as_ptr().cast()))
                    };
                    sums[at] = multiply_add(sums[at], q, v);
                }
            }
            let rest = q4.remainder().chunks_exact(LANES).zip(v4.remainder().chunks_exact(LANES * 4));
            for (at, (q, v)) in rest.enumerate() {
                // SAFETY: both chunks hold LANES f32, and the loads need no alignment.
                let (q, v) = unsafe { (load(q.as_ptr()), load(v.as_ptr().cast())) };
                sums[at] = multiply_add(sums[at], q, v);
            }
            total(add(add(sums[0], sums[1]), add(sums[2], sums[3])))
        }

        #[target_feature(enable = $features)]
        fn squared_distance_lanes(query: &[f32], row: &[u8]) -> f32 {
            let mut sums = [zero(); 4];
            let (mut q4, mut v4) = (query.chunks_exact(LANES * 4), row.chunks_exact(LANES * 16));
            for (q, v) in (&mut q4).zip(&mut v4) {
                for at in 0..4 {
                    // SAFETY: both chunks hold 4 · LANES f32, and the loads need no alignment.
                    let (q, v) = unsafe {
                        (load(q[at * LANES..].as_ptr()), load(v[at * LANES * 4..].as_ptr().cast()))
                    };
                    let difference = subtract(q, v);
                    sums[at] = multiply_add(sums[at], difference, difference);
                }
            }
            let rest = q4.remainder().chunks_exact(LANES).zip(v4.remainder().chunks_exact(LANES * 4));
            for (at, (q, v)) in rest.enumerate() {
                // SAFETY: both chunks hold LANES f32, and the loads need no alignment.
                let (q, v) = unsafe { (load(q.as_ptr()), load(v.as_ptr().cast())) };
                let difference = subtract(q, v);
                sums[at] = multiply_add(sums[at], difference, difference);
            }
            total(add(add(sums[0], sums[1]), add(sums[2], sums[3])))
        }
    };
}

pub(super) use implementation;
