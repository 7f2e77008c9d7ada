//! The reference: the simplest correct loops, always compiled, and shipped as the fallback.

use super::{DIM_STEP, Document, Kernels, PANEL, Panel, select};

pub(super) static KERNELS: Kernels = Kernels {
    name: "scalar",
    #[cfg(test)]
    maxima,
    candidates,
};

fn maxima(panel: &Panel<'_>, document: &Document<'_>, out: &mut [i32; PANEL]) {
    let dims = panel.dims();
    if dims == 0 {
        if document.tokens() > 0 {
            *out = [0; PANEL];
        }
        return;
    }
    for token in document.values.chunks_exact(dims) {
        let mut dots = [0i32; PANEL];
        for (step, four) in token.chunks_exact(DIM_STEP).enumerate() {
            let column = &panel.weights[step * PANEL * DIM_STEP..][..PANEL * DIM_STEP];
            for (dot, weights) in dots.iter_mut().zip(column.chunks_exact(DIM_STEP)) {
                for (weight, value) in weights.iter().zip(four) {
                    *dot += i32::from(*weight) * i32::from(*value);
                }
            }
        }
        for (max, dot) in out.iter_mut().zip(dots) {
            *max = (*max).max(dot);
        }
    }
}

fn candidates(panel: &Panel<'_>, document: &Document<'_>) -> u32 {
    let mut out = [i32::MIN; PANEL];
    maxima(panel, document, &mut out);
    select(&out, panel, &document.limits)
}
