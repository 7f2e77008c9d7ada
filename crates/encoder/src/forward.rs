//! Runs a batch of token ids through the graph and the model's last step: the work of one worker thread.

use std::ops::Range;
use std::sync::Arc;

use crate::bert::{Past, Scratch, Sequence};
use crate::cache::Vector;
use crate::error::EncoderError;
use crate::model::{DensePooling, Model, Plan, Runs};
use crate::pooling::{max_over_tokens, mean, normalize};
use crate::session::{Batch, OnnxSession};

/// A model that is ready to run, with the state that one worker needs.
#[derive(Debug)]
pub(crate) struct Forward {
    model: Arc<Model>,
    engine: Engine,
    threads: usize,
}

/// What computes the graph.
#[derive(Debug)]
enum Engine {
    /// Sparrow's own code, over the model's shared weights.
    Native(Box<Scratch>),
    Onnx(OnnxSession),
}

impl Forward {
    /// Prepares a model; loads the graph unless our own code computes the model.
    ///
    /// # Errors
    /// Those of [`OnnxSession::open`].
    pub(crate) fn new(model: &Arc<Model>, threads: usize) -> Result<Self, EncoderError> {
        let engine = match &model.runs {
            Runs::Native(_) => Engine::Native(Box::default()),
            Runs::Onnx { graph, output } => {
                Engine::Onnx(OnnxSession::open(graph, model.dir(), output, threads)?)
            }
        };
        Ok(Self { model: Arc::clone(model), engine, threads })
    }

    /// Encodes a batch of texts, each at least one token long.
    ///
    /// # Errors
    /// [`EncoderError::Runtime`] if the runtime fails or returns another shape than the model declares.
    pub(crate) fn run(&mut self, texts: &[Sequence<'_>]) -> Result<Vec<Vector>, EncoderError> {
        let (model, threads) = (&self.model, self.threads);
        match (&mut self.engine, &model.runs) {
            (Engine::Native(scratch), Runs::Native(bert)) => {
                let mut below = None;
                let mut show = |hidden: &[f32], rows: &[Range<usize>]| {
                    let trunk = model.trunk.as_ref();
                    below = trunk.map(|(trunk, _)| pool(&trunk.plan, bert.width(), hidden, rows, threads));
                };
                let past = model.trunk.as_ref().map(|(_, layers)| Past { layers: *layers, show: &mut show });
                let (hidden, rows) =
                    bert.forward_past(texts, scratch, past).ok_or_else(|| EncoderError::Runtime {
                        phase: "infer",
                        reason: "a token is not in the model's tables".into(),
                    })?;
                let vectors = pool(&model.plan, bert.width(), hidden, &rows, threads)?;
                let of_texts = vectors.into_iter().zip(texts);
                let vectors =
                    of_texts.map(|(vector, text)| model.with_own_tokens(vector, text.ids)).collect();
                Ok(match below {
                    Some(below) => both(vectors, below?),
                    None => vectors,
                })
            }
            (Engine::Native(_), Runs::Onnx { .. }) => {
                Err(EncoderError::Runtime { phase: "infer", reason: "no model".into() })
            }
            (Engine::Onnx(session), _) => {
                let batch = Batch::new(texts);
                session.run(&batch, |shape, values| {
                    // Padding comes last in each text: its rows are simply not looked at.
                    let columns = batch.columns();
                    let rows: Vec<Range<usize>> = texts
                        .iter()
                        .enumerate()
                        .map(|(row, text)| row * columns..row * columns + text.ids.len())
                        .collect();
                    finish(&model.plan, shape, values, &rows, columns, threads)
                })?
            }
        }
    }
}

/// The vectors of a head's texts together with those that the dense model below it gives.
fn both(own: Vec<Vector>, below: Vec<Vector>) -> Vec<Vector> {
    let join = |pair| match pair {
        (Vector::Sparse(sparse), Vector::Dense(dense)) => Vector::Hybrid(sparse, dense),
        (own, _) => own,
    };
    own.into_iter().zip(below).map(join).collect()
}

/// A term id, its weight, and the position of the token from which the weight comes.
pub(crate) type Placed = (u32, f32, u32);

impl Forward {
    /// Encodes one text, and says which of its tokens each term's weight comes from. `None` for models that
    /// give no vector per token.
    ///
    /// # Errors
    /// As [`Forward::run`].
    pub(crate) fn run_placed(&mut self, ids: &[u32]) -> Result<Option<Vec<Placed>>, EncoderError> {
        let (model, threads) = (&self.model, self.threads);
        match (&mut self.engine, &model.runs) {
            (Engine::Native(scratch), Runs::Native(bert)) => {
                let (hidden, rows) =
                    bert.forward(&[ids.into()], scratch).ok_or_else(|| EncoderError::Runtime {
                        phase: "infer",
                        reason: "a token is not in the model's tables".into(),
                    })?;
                let mut vectors = pool(&model.plan, bert.width(), hidden, &rows, threads)?;
                vectors = vectors.into_iter().map(|vector| model.with_own_tokens(vector, ids)).collect();
                Ok(placed(&model.plan, bert.width(), hidden, &rows, vectors))
            }
            (Engine::Native(_), Runs::Onnx { .. }) => {
                Err(EncoderError::Runtime { phase: "infer", reason: "no model".into() })
            }
            (Engine::Onnx(session), _) => {
                let batch = Batch::new(&[ids.into()]);
                session.run(&batch, |shape, values| {
                    let all = 0..ids.len();
                    let rows = std::slice::from_ref(&all);
                    let vectors = finish(&model.plan, shape, values, rows, batch.columns(), threads)?;
                    let width = shape.last().and_then(|width| usize::try_from(*width).ok()).unwrap_or(0);
                    Ok(placed(&model.plan, width, values, rows, vectors))
                })?
            }
        }
    }
}

/// The position of the maximum of each term, for a batch of one text.
fn placed(
    plan: &Plan,
    width: usize,
    values: &[f32],
    rows: &[Range<usize>],
    vectors: Vec<Vector>,
) -> Option<Vec<Placed>> {
    let ([range], Some(Vector::Sparse(weights))) = (rows, vectors.into_iter().next()) else { return None };
    let text_values = &values[range.start * width..range.end * width];
    let terms: Vec<u32> = weights.iter().map(|(term, _)| *term).collect();
    let positions = match plan {
        Plan::FusedSparse { head, .. } => head.positions(text_values, &terms),
        Plan::SparseLogits { .. } => terms
            .iter()
            .map(|term| {
                let column = text_values.iter().skip(*term as usize).step_by(width);
                let best = column.enumerate().fold((0, f32::NEG_INFINITY), |best, (row, logit)| {
                    if *logit > best.1 { (row as u32, *logit) } else { best }
                });
                best.0
            })
            .collect(),
        _ => return None,
    };
    Some(weights.iter().zip(positions).map(|((term, weight), at)| (*term, *weight, at)).collect())
}

/// Checks the shape of the runtime's output, and computes the texts' vectors from it.
fn finish(
    plan: &Plan,
    shape: &[i64],
    values: &[f32],
    rows: &[Range<usize>],
    columns: usize,
    threads: usize,
) -> Result<Vec<Vector>, EncoderError> {
    let wrong_shape =
        || EncoderError::Runtime { phase: "infer", reason: format!("output has the shape {shape:?}") };
    let per_token = !matches!(
        plan,
        Plan::SparsePooled { .. } | Plan::Scored | Plan::Dense { pooling: DensePooling::Done, .. }
    );
    let shape_is: Vec<usize> = shape.iter().filter_map(|size| usize::try_from(*size).ok()).collect();
    let width = match shape_is[..] {
        [texts, tokens, width] if per_token && texts == rows.len() && tokens == columns => width,
        [texts, width] if !per_token && texts == rows.len() => width,
        _ => return Err(wrong_shape()),
    };
    if width == 0 || values.len() != shape_is.iter().product::<usize>() {
        return Err(wrong_shape());
    }
    if matches!(plan, Plan::FusedSparse { head, .. } if width != head.dims())
        || matches!(plan, Plan::Scored if width != 1)
    {
        return Err(wrong_shape());
    }
    pool(plan, width, values, rows, threads)
}

/// Reduces the model's output to one vector per text. `values` are rows of `width` numbers; `rows` are the
/// rows of each text, where there is one row per token.
fn pool(
    plan: &Plan,
    width: usize,
    values: &[f32],
    rows: &[Range<usize>],
    threads: usize,
) -> Result<Vec<Vector>, EncoderError> {
    let slice = |range: &Range<usize>| &values[range.start * width..range.end * width];
    match plan {
        Plan::FusedSparse { head, activation } => {
            let logits = head.project(values, rows, threads).map_err(|crate::head::NotFinite| {
                EncoderError::Runtime { phase: "project", reason: "hidden states are not finite".into() }
            })?;
            logits.into_iter().map(|logits| sparse(logits, |logit| activation.weight(logit))).collect()
        }
        Plan::SparseLogits { activation } => rows
            .iter()
            .map(|range| sparse(max_over_tokens(slice(range), width), |logit| activation.weight(logit)))
            .collect(),
        Plan::SparsePooled { activation } => values
            .chunks_exact(width)
            .map(|logits| sparse(max_over_tokens(logits, width), |logit| activation.weight(logit)))
            .collect(),
        Plan::Score { scorer } => rows.iter().map(|range| score(scorer.score(slice(range), width))).collect(),
        Plan::Scored => values.iter().map(|value| score(*value)).collect(),
        Plan::Dense { pooling: DensePooling::Done, dims, normalize } => {
            values.chunks_exact(width).map(|vector| dense(vector.to_vec(), *dims, *normalize)).collect()
        }
        Plan::Dense { pooling, dims, normalize } => rows
            .iter()
            .map(|range| {
                let tokens = slice(range);
                let vector = match pooling {
                    DensePooling::Mean => mean(tokens, width),
                    DensePooling::Last => tokens[tokens.len() - width..].to_vec(),
                    DensePooling::First | DensePooling::Done => tokens[..width].to_vec(),
                };
                dense(vector, *dims, *normalize)
            })
            .collect(),
    }
}

/// The weights of a text; an error if one is not finite, as JSON has no such number and nothing could be scored with it.
fn sparse(logits: Vec<(u32, f32)>, weight: impl Fn(f32) -> f32) -> Result<Vector, EncoderError> {
    let weights: Vec<(u32, f32)> = logits.into_iter().map(|(term, logit)| (term, weight(logit))).collect();
    match weights.iter().all(|(_, weight)| weight.is_finite()) {
        true => Ok(Vector::Sparse(weights.into())),
        false => Err(not_finite("a token weight")),
    }
}

/// Wraps a score as a vector, the form in which results are cached; an error if it is not finite.
fn score(score: f32) -> Result<Vector, EncoderError> {
    if score.is_finite() { Ok(Vector::Dense([score].into())) } else { Err(not_finite("a score")) }
}

/// The vector of a text; an error if a number in it is not finite.
fn dense(mut vector: Vec<f32>, dims: usize, unit_length: bool) -> Result<Vector, EncoderError> {
    vector.truncate(dims);
    if unit_length {
        normalize(&mut vector);
    }
    match vector.iter().all(|number| number.is_finite()) {
        true => Ok(Vector::Dense(vector.into())),
        false => Err(not_finite("a number of a vector")),
    }
}

/// The error for a model whose sums are too large for single precision.
fn not_finite(what: &str) -> EncoderError {
    EncoderError::Runtime { phase: "infer", reason: format!("{what} is not finite") }
}

#[cfg(test)]
mod tests {
    use super::{DensePooling, Plan, finish};
    use crate::cache::Vector;
    use crate::pooling::Activation;

    #[test]
    fn what_is_not_finite_is_an_error() {
        let sparse = Plan::SparseLogits { activation: Activation::Log1p };
        let dense = |normalize| Plan::Dense { pooling: DensePooling::Mean, dims: 2, normalize };
        for plan in [sparse, dense(false), dense(true)] {
            let error = |values: [f32; 2]| {
                finish(&plan, &[1, 1, 2], &values, std::slice::from_ref(&(0..1)), 1, 1)
                    .map_err(|error| error.to_string())
            };
            assert!(error([1.0, 2.0]).is_ok());
            assert!(error([1.0, f32::INFINITY]).unwrap_err().contains("is not finite"));
        }
    }

    #[test]
    fn padding_rows_are_not_looked_at() {
        // Two texts of two and one tokens, padded to two; two terms.
        let logits = [1.0, -1.0, -1.0, -2.0, -5.0, 3.0, 9.0, 9.0];
        let plan = Plan::SparseLogits { activation: Activation::Done };
        let found = finish(&plan, &[2, 2, 2], &logits, &[0..2, 2..3], 2, 1).unwrap();
        assert_eq!(found, [Vector::Sparse([(0, 1.0)].into()), Vector::Sparse([(1, 3.0)].into())]);
        let dense = |pooling, dims| {
            let plan = Plan::Dense { pooling, dims, normalize: false };
            finish(&plan, &[2, 2, 2], &logits, &[0..2, 2..3], 2, 1).unwrap()
        };
        let vectors = |all: [&[f32]; 2]| all.map(|vector| Vector::Dense(vector.into()));
        assert_eq!(dense(DensePooling::Mean, 2), vectors([&[0.0, -1.5], &[-5.0, 3.0]]));
        assert_eq!(dense(DensePooling::First, 2), vectors([&[1.0, -1.0], &[-5.0, 3.0]]));
        assert_eq!(dense(DensePooling::Last, 2), vectors([&[-1.0, -2.0], &[-5.0, 3.0]]));
        assert_eq!(dense(DensePooling::Last, 1), vectors([&[-1.0], &[-5.0]]));
    }

    #[test]
    fn shapes_that_were_not_promised_are_errors() {
        let plan = Plan::Dense { pooling: DensePooling::Mean, dims: 2, normalize: true };
        for shape in [&[2, 2, 2][..], &[1, 4], &[1, 2, 0], &[]] {
            let rows = std::slice::from_ref(&(0..2));
            assert!(finish(&plan, shape, &[0.0; 4], rows, 2, 1).is_err(), "{shape:?}");
        }
    }

    #[test]
    fn a_score_is_one_number_for_each_text() {
        let finish = |shape: &[i64], values: &[f32]| {
            finish(&Plan::Scored, shape, values, &[0..2, 2..3], 2, 1).map_err(|error| error.to_string())
        };
        let scores = [1.5, -2.0].map(|score| Vector::Dense([score].into()));
        assert_eq!(finish(&[2, 1], &[1.5, -2.0]).unwrap(), scores);
        for (shape, values) in [(&[2, 2][..], &[1.0; 4][..]), (&[2], &[1.0; 2]), (&[2, 2, 1], &[1.0; 4])] {
            assert!(finish(shape, values).unwrap_err().contains(&format!("the shape {shape:?}")));
        }
        assert!(finish(&[2, 1], &[1.0, f32::NAN]).unwrap_err().contains("not finite"));
    }
}
