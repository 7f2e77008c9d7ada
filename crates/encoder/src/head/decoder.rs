//! A decoder as bytes: panels for the first look at all pairs, rows for the second look at few.

use std::ops::Range;

use crate::bert::kernels::{self as f32_kernels, Epilogue, Linear};
use crate::fixed::Precision;
use crate::numbers::AlignedSlice;

use super::basis::Basis;
use super::kernels::{Bound, Bounds, DIM_STEP, Kernels, PANEL, Pair, Panel, ROW_STEP, Rows};
use super::quantize::{NotFinite, Quantized, Turned, norms, quantise, round_up, scale};

/// Pairs that the second look takes at once: their rows fit the first-level cache together with the prefetched rows of the next ones.
const NEAR_PAIRS: usize = 32;

/// The quantised weights of a vocabulary.
pub(super) struct Decoder {
    dims: usize,
    /// Terms in the order of the panels.
    order: Vec<u32>,
    /// Numbers of dimensions that panels have, ascending.
    looks: Vec<usize>,
    panels: Vec<PanelAt>,
    pub(super) weights: AlignedSlice<i8>,
    pub(super) bounds: Vec<Bounds>,
    second: Option<Second>,
}

/// A document's tokens, quantised for each look.
#[derive(Debug)]
pub(super) struct Looks {
    /// The tokens for the first look, once for each number of dimensions that panels have.
    pub(super) first: Vec<Quantized>,
    /// The tokens in all dimensions for the second look; `None` without a basis.
    pub(super) second: Option<Quantized>,
}

/// Where a panel's weights start, in bytes, and the index in `looks` of its number of dimensions.
#[derive(Debug, Clone, Copy)]
struct PanelAt {
    start: usize,
    look: usize,
}

/// What a decoder with a basis needs for the second look.
struct Second {
    /// The linear map that takes tokens to the basis.
    turn: Linear,
    /// The offset's norm by that of the tokens' matrix; see [`super`].
    offset: f32,
    /// The quantised weights for the second look, `[terms][dims, padded]`.
    rows: AlignedSlice<i8>,
    padded: usize,
    bounds: Vec<Bound>,
}

impl Decoder {
    /// A decoder without a basis, whose panels have all dimensions, so that no second look is needed. `rows` is `[terms][dims]`.
    pub(super) fn plain(kernels: &Kernels, rows: &[f32], bias: &[f32], dims: usize) -> Self {
        let padded = dims.next_multiple_of(DIM_STEP);
        let count = bias.len().div_ceil(PANEL);
        let mut weights = AlignedSlice::zeros(count * padded * PANEL);
        let mut bounds = vec![Bounds::empty(); count];
        let mut row = vec![0i8; padded];
        for (term, (numbers, &bias)) in rows.chunks_exact(dims).zip(bias).enumerate() {
            let (panel, lane) = (term / PANEL, term % PANEL);
            let (bound, _) = whole_row(numbers, bias, kernels.levels.most, &mut row);
            set(&mut bounds[panel], lane, &bound, 0.0);
            interleave(&row, lane, &mut weights.own()[panel * padded * PANEL..][..padded * PANEL]);
        }
        Self::of_panels(dims, bias.len(), weights, bounds)
    }

    /// A decoder without a basis, of panels that [`Decoder::plain`] has quantised.
    pub(super) fn of_panels(
        dims: usize,
        terms: usize,
        weights: AlignedSlice<i8>,
        bounds: Vec<Bounds>,
    ) -> Self {
        let padded = dims.next_multiple_of(DIM_STEP);
        let panels = (0..bounds.len()).map(|panel| PanelAt { start: panel * padded * PANEL, look: 0 });
        Self {
            dims,
            order: (0..terms as u32).collect(),
            looks: vec![padded],
            panels: panels.collect(),
            weights,
            bounds,
            second: None,
        }
    }

    /// A decoder with a basis: panels with the leading dimensions, grouping terms that need equally many, and rows for the second look.
    pub(super) fn turned(kernels: &Kernels, rows: &[f32], bias: &[f32], basis: &Basis) -> Self {
        let (levels, dims) = (kernels.levels.most, basis.dims());
        let products = f32_kernels::named(kernels.name);
        let norms = basis.norms();
        let gamma = (dims + 16) as f64 * 2f64.powi(-24);
        let exact = (dims + 16) as f64 * 2f64.powi(-23);
        // Of the slack, what the length of the term is multiplied by and what that of the turned one is.
        let by_term = norms.gap + gamma * norms.tokens * norms.terms + exact;
        let by_turned = gamma * norms.tokens;
        let turn = |matrix: &[f32], bias: Vec<f32>| {
            Linear::new(products.order, dims, bias, Precision::F32, |row, column| matrix[column * dims + row])
        };
        let turn_terms = turn(&basis.terms, vec![0.0; dims]);

        let mut order: Vec<u32> = (0..bias.len() as u32).collect();
        order.sort_by_key(|term| basis.looks[*term as usize]);
        // The last term of a panel needs the most dimensions.
        let dims_of = |panel: &[u32]| panel.last().map_or(0, |term| basis.looks[*term as usize] as usize);
        let mut looks: Vec<usize> = order.chunks(PANEL).map(dims_of).collect();
        looks.dedup();
        let total: usize = order.chunks(PANEL).map(dims_of).sum();
        let count = bias.len().div_ceil(PANEL);
        let padded = dims.next_multiple_of(ROW_STEP);
        let mut weights = AlignedSlice::zeros(total * PANEL);
        let mut whole = AlignedSlice::zeros(bias.len() * padded);
        let mut panels = Vec::with_capacity(count);
        let mut bounds = vec![Bounds::empty(); count];
        let mut whole_bounds = Vec::with_capacity(bias.len());
        let mut own = vec![0f32; PANEL * dims];
        let mut turned = own.clone();
        let mut first = vec![0i8; dims];
        let mut start = 0;
        for (index, terms) in order.chunks(PANEL).enumerate() {
            let used = dims_of(terms);
            own.fill(0.0);
            for (own, &term) in own.chunks_exact_mut(dims).zip(terms) {
                own.copy_from_slice(&rows[term as usize * dims..][..dims]);
            }
            products.linear(&turn_terms, &own, Epilogue::None, &mut Vec::new(), &mut turned);
            let panel = &mut weights.own()[start..][..used * PANEL];
            let rows = own.chunks_exact(dims).zip(turned.chunks_exact(dims));
            for ((lane, &term), (own, turned)) in terms.iter().enumerate().zip(rows) {
                let bias = bias[term as usize];
                let out = &mut whole.own()[(index * PANEL + lane) * padded..][..padded];
                let (bound, norm) = whole_row(own, bias, levels, out);
                whole_bounds.push(bound);
                let dot = |sum: f64, (a, b): (&f32, &f32)| sum + f64::from(*a) * f64::from(*b);
                let bias = f64::from(bias) - turned.iter().zip(&basis.offset).fold(0.0, dot);
                let (bound, length) = turned_row(turned, bias as f32, levels, &mut first[..used]);
                set(&mut bounds[index], lane, &bound, inflate(by_term * norm + by_turned * length));
                interleave(&first[..used], lane, panel);
            }
            panels.push(PanelAt { start, look: looks.partition_point(|dims| *dims < used) });
            start += used * PANEL;
        }
        let second = Second {
            turn: turn(&basis.tokens, basis.offset.clone()),
            offset: inflate(norms.offset / norms.tokens),
            rows: whole,
            padded,
            bounds: whole_bounds,
        };
        Self { dims, order, looks, panels, weights, bounds, second: Some(second) }
    }

    /// Whether the decoder has a basis, so that its terms are in another order than the vocabulary's.
    pub(super) fn is_turned(&self) -> bool {
        self.second.is_some()
    }

    /// Splits the panels into at most `count` parts of about the same work.
    pub(super) fn shares(&self, count: usize) -> Vec<Range<usize>> {
        let count = count.clamp(1, self.panels.len());
        let total = self.panels.iter().map(|panel| self.looks[panel.look]).sum::<usize>();
        let mut shares = Vec::with_capacity(count);
        let (mut done, mut first) = (0, 0);
        for (index, panel) in self.panels.iter().enumerate() {
            done += self.looks[panel.look];
            if done * count >= total * (shares.len() + 1) {
                shares.push(first..index + 1);
                first = index + 1;
            }
        }
        shares
    }

    /// A document's tokens for all looks. `hidden` is `[tokens][dims]`.
    ///
    /// # Errors
    /// [`NotFinite`] if a number is not.
    pub(super) fn quantise(&self, kernels: &Kernels, hidden: &[f32]) -> Result<Looks, NotFinite> {
        let Some(second) = &self.second else {
            let first = vec![kernels.quantise(hidden, self.dims, self.looks[0])?];
            return Ok(Looks { first, second: None });
        };
        let all = kernels.quantise(hidden, self.dims, second.padded)?;
        let mut turned = vec![0.0; hidden.len()];
        let products = f32_kernels::named(kernels.name);
        products.linear(&second.turn, hidden, Epilogue::None, &mut Vec::new(), &mut turned);
        let reach = all.limits.norm + second.offset;
        let turned = Turned { tokens: &turned, dims: self.dims, looks: &self.looks, reach };
        let first = kernels.quantise_turned(&turned)?;
        Ok(Looks { first, second: Some(all) })
    }

    /// Term ids in the order of the panels.
    pub(super) fn order(&self) -> &[u32] {
        &self.order
    }

    /// Adds the pairs of a panel's terms and a document's tokens that may have a positive logit, by the first look.
    pub(super) fn first_look(
        &self,
        kernels: &Kernels,
        panel: usize,
        looks: &Looks,
        masks: &mut Vec<u32>,
        pairs: &mut Vec<Pair>,
    ) {
        let PanelAt { start, look } = self.panels[panel];
        let weights = &self.weights[start..][..self.looks[look] * PANEL];
        let panel_of = Panel::new(weights, &self.bounds[panel]);
        let before = pairs.len();
        kernels.screen(&panel_of, &looks.first[look].view(), (panel * PANEL) as u32, masks, pairs);
        // Beyond the vocabulary a pair is left only if nothing can be told of the document.
        if (panel + 1) * PANEL > self.order.len() {
            pairs.retain(|pair| (pair.term as usize) < self.order.len());
        }
        if let Some(second) = &self.second {
            second.rows().prefetch::<false>(&pairs[before.min(pairs.len())..]);
        }
    }

    /// Keeps only the pairs that the second look admits, all of them if there is no second look. `kept` is called with parts of them early,
    /// so that their rows can be prefetched.
    pub(super) fn second_look(
        &self,
        kernels: &Kernels,
        looks: &Looks,
        pairs: &mut Vec<Pair>,
        mut kept: impl FnMut(&[Pair]),
    ) {
        let (Some(second), Some(document)) = (&self.second, &looks.second) else { return };
        let (rows, document) = (second.rows(), document.view());
        let (mut first, mut left) = (0, 0);
        while first < pairs.len() {
            let count = NEAR_PAIRS.min(pairs.len() - first);
            let (of_document, next) = pairs[first..].split_at_mut(count);
            rows.prefetch::<true>(&next[..NEAR_PAIRS.min(next.len())]);
            let survivors = kernels.refine(&rows, &document, of_document);
            kept(&of_document[..survivors]);
            pairs.copy_within(first..first + survivors, left);
            (first, left) = (first + count, left + survivors);
        }
        pairs.truncate(left);
    }
}

impl Second {
    fn rows(&self) -> Rows<'_> {
        Rows::new(&self.rows[..self.bounds.len() * self.padded], self.padded, &self.bounds)
    }
}

/// Stores a term's bound in its lane of a panel's bounds.
fn set(bounds: &mut Bounds, lane: usize, bound: &Bound, slack: f32) {
    bounds.scale[lane] = bound.scale;
    bounds.spread[lane] = bound.spread;
    bounds.residual[lane] = bound.residual;
    bounds.slack[lane] = slack;
    bounds.bias[lane] = bound.bias;
    bounds.sums[lane] = bound.sum;
}

/// Quantises a term in its own dimensions; its bound and its norm.
fn whole_row(numbers: &[f32], bias: f32, levels: i8, out: &mut [i8]) -> (Bound, f64) {
    let largest = numbers.iter().fold(0f32, |max, weight| max.max(weight.abs()));
    let scale = scale(largest, levels);
    let sums = quantise(numbers, scale, out);
    let (norm, lost) = norms(sums.square, sums.lost, numbers.len());
    let (norm, lost) = (f64::from(norm), f64::from(lost));
    // The exact step and the bound add up n products, and a few single operations: n + 16 roundings.
    let rounding = (numbers.len() + 16) as f64 * 2f64.powi(-23);
    let residual = inflate(lost + rounding * (2.0 * norm + lost));
    let bound = Bound { scale, spread: inflate(norm + lost), residual, bias: above(bias), sum: sums.values };
    (bound, norm)
}

/// Quantises the leading dimensions of a term in the new basis into `out`, whose last element becomes the norm of the remaining dimensions;
/// returns the bound and the norm of the whole term.
fn turned_row(numbers: &[f32], bias: f32, levels: i8, out: &mut [i8]) -> (Bound, f64) {
    let (leading, tail) = numbers.split_at(out.len() - 1);
    let tail_norm = norms(tail.iter().map(|value| value * value).sum(), 0.0, numbers.len()).0;
    let largest = leading.iter().fold(tail_norm, |max, weight| max.max(weight.abs()));
    let scale = scale(largest, levels);
    let sums = quantise(leading, scale, out);
    // At most `levels`: the scale was made for it.
    out[leading.len()] = round_up(tail_norm, scale) as i8;
    let (norm, lost) = norms(sums.square, sums.lost, numbers.len());
    let (norm, lost) = (f64::from(norm), f64::from(lost));
    // A token's norm comes without a shift.
    let sum = sums.values;
    let bound =
        Bound { scale, spread: inflate(norm + lost), residual: inflate(lost), bias: above(bias), sum };
    (bound, norm.hypot(f64::from(tail_norm)))
}

/// Copies a term's quantised weights into its lane of a panel.
fn interleave(row: &[i8], lane: usize, panel: &mut [i8]) {
    for (four, column) in row.chunks_exact(DIM_STEP).zip(panel.chunks_exact_mut(PANEL * DIM_STEP)) {
        column[lane * DIM_STEP..][..DIM_STEP].copy_from_slice(four);
    }
}

/// An upper bound of a bias: enlarged by more than its own rounding and that of the threshold.
fn above(bias: f32) -> f32 {
    bias + bias.abs() * 2f32.powi(-19)
}

/// Rounds a norm up by one part in a thousand, far more than its own computation can be off.
fn inflate(norm: f64) -> f32 {
    (norm * (1.0 + 2f64.powi(-10))) as f32
}
