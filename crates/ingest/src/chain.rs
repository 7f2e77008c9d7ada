//! Runs a chain of processors over a batch of documents: one processor at a time over all documents that are still live, so that an
//! inference gets the texts of the whole batch at once. Also the processors that need the run itself: those that take the whole batch, and
//! those that run other processors or pipelines.

mod call;
mod foreach;
mod inference;
mod node;
mod trace;

use serde_json::{Value, json};
use sparrow_runtime::work;

pub(crate) use self::call::{PipelineCall, pipeline_shape};
pub(crate) use self::foreach::{ForEach, foreach_shape};
pub use self::inference::check_tokenization;
pub(crate) use self::inference::{Inference, ModelAccess, inference_shape};
use self::node::fail;
pub(crate) use self::node::{Action, Failure, Item, Node, Pipeline, Processor, Runtime, State};
use self::trace::{entry, push_trace, record, show_cycle};
use super::batch::IngestSummary;
use super::document::Document;
use super::effort::MOST_PIPELINES;
use super::error::ProcessorError;

/// Runs a pipeline on those documents of the batch that `who` lists and that are live. Results of models are added to `summary`.
pub(crate) fn run_pipeline(
    runtime: &Runtime<'_>,
    pipeline: &Pipeline,
    items: &mut [Item],
    who: &[usize],
    summary: &mut IngestSummary,
) {
    let running = pipeline.counters.enter(who.len());
    for &at in who {
        items[at].stack.push(pipeline.id.clone());
        if let Some(executed) = &mut items[at].executed {
            executed.push(pipeline.id.clone());
        }
        items[at].document.ingest.insert("pipeline".into(), Value::String(pipeline.id.clone()));
    }
    if let Some(cause) = &pipeline.unusable {
        for &at in who.iter().filter(|&&at| items[at].is_live()).collect::<Vec<_>>() {
            let error = ProcessorError::NotLoaded { id: pipeline.id.clone(), cause: cause.clone() };
            // Elasticsearch puts one processor of this type in the place of the whole pipeline.
            items[at].state = State::Failed(Failure {
                error,
                kind: "unknown".to_owned(),
                tag: None,
                pipeline: pipeline.id.clone(),
            });
        }
    }
    run_nodes(runtime, &pipeline.processors, items, who, summary);
    if !pipeline.on_failure.is_empty() {
        let failed = recoverable(items, &failed(items, who));
        handle_failures(runtime, &pipeline.on_failure, items, &failed, summary);
    }
    for &at in who {
        let item = &mut items[at];
        if matches!(item.state, State::Terminated) {
            item.state = State::Live;
        }
        item.stack.pop();
        match item.stack.last() {
            Some(outer) => item.document.ingest.insert("pipeline".into(), Value::String(outer.clone())),
            None => item.document.ingest.shift_remove("pipeline"),
        };
    }
    running.leave(failed(items, who).len());
}

/// Places of the documents that failed.
fn failed(items: &[Item], who: &[usize]) -> Vec<usize> {
    who.iter().copied().filter(|&at| matches!(items[at].state, State::Failed(_))).collect()
}

/// Indexes of the failed documents that an error handler may process further.
fn recoverable(items: &[Item], failed: &[usize]) -> Vec<usize> {
    let is_final = |at: usize| matches!(&items[at].state, State::Failed(failure) if failure.error.is_final());
    failed.iter().copied().filter(|&at| !is_final(at)).collect()
}

fn run_nodes(
    runtime: &Runtime<'_>,
    nodes: &[Node],
    items: &mut [Item],
    who: &[usize],
    summary: &mut IngestSummary,
) {
    for node in nodes {
        let live: Vec<usize> = who.iter().copied().filter(|&at| items[at].is_live()).collect();
        if live.is_empty() {
            return;
        }
        run_node(runtime, node, items, &live, summary);
    }
}

fn run_node(
    runtime: &Runtime<'_>,
    node: &Node,
    items: &mut [Item],
    who: &[usize],
    summary: &mut IngestSummary,
) {
    let who = &chosen(node, items, who)[..];
    let running = node.counters.enter(who.len());
    let mut fit = Vec::with_capacity(who.len());
    // A document whose condition failed has failed already.
    for &at in who.iter().filter(|at| items[**at].is_live()).collect::<Vec<_>>() {
        let Item { document, steps, .. } = &mut items[at];
        // Nobody may wait for it any more.
        let may_run = work::check().map_err(ProcessorError::from);
        match may_run.and_then(|()| runtime.budget.step(steps, || document.weight())) {
            Ok(()) => fit.push(at),
            Err(error) => fail(&mut items[at], node, error),
        }
    }
    let before: Vec<isize> = fit.iter().map(|&at| items[at].document.added).collect();
    match &node.action {
        Action::Each(processor) => {
            for (&at, &before) in fit.iter().zip(&before) {
                let document = &mut items[at].document;
                // What became of the documents before it may be all that there is room for.
                let may_run = work::check().map_err(ProcessorError::from);
                let result = may_run.and_then(|()| processor.run(document));
                let grown = runtime.budget.grow(before, document.added);
                if let Err(error) = grown.and(result) {
                    fail(&mut items[at], node, error);
                }
            }
        }
        Action::Inference(inference) => {
            let mut documents: Vec<(usize, &mut Document)> = items
                .iter_mut()
                .enumerate()
                .filter(|(at, _)| fit.binary_search(at).is_ok())
                .map(|(at, item)| (at, &mut item.document))
                .collect();
            let failures = inference.run(runtime.models, &mut documents, summary);
            for (at, error) in failures {
                fail(&mut items[at], node, error);
            }
            for (&at, &before) in fit.iter().zip(&before) {
                if let Err(error) = runtime.budget.grow(before, items[at].document.added) {
                    fail(&mut items[at], node, error);
                }
            }
        }
        Action::Pipeline(call) => run_call(runtime, node, call, items, &fit, summary),
        Action::ForEach(each) => {
            let mut run = |inner: &Node, items: &mut [Item], who: &[usize]| {
                run_node(runtime, inner, items, who, summary)
            };
            each.run(node, items, &fit, &mut run);
        }
        Action::Terminate => {
            for &at in &fit {
                items[at].state = State::Terminated;
            }
        }
        Action::Drop => {
            for &at in &fit {
                items[at].state = State::Dropped;
            }
        }
    }
    for &at in who {
        record(runtime, node, &mut items[at]);
    }
    let failed = failed(items, who);
    running.leave(failed.len());
    let failed = recoverable(items, &failed);
    if node.ignore_failure {
        for at in failed {
            items[at].state = State::Live;
        }
    } else if !node.on_failure.is_empty() {
        handle_failures(runtime, &node.on_failure, items, &failed, summary);
    }
}

/// Those of the documents on which a processor has to run by its condition, and those on which the condition failed.
fn chosen(node: &Node, items: &mut [Item], who: &[usize]) -> Vec<usize> {
    let Some(condition) = &node.condition else { return who.to_vec() };
    let mut chosen = Vec::with_capacity(who.len());
    for &at in who {
        let may_run = work::check().map_err(ProcessorError::from);
        match may_run.and_then(|()| condition.holds(&mut items[at].document)) {
            Ok(true) => chosen.push(at),
            Ok(false) => {
                if let Some(trace) = &mut items[at].trace {
                    trace.push(Value::Object(entry(
                        node,
                        "conditional",
                        "skipped",
                        Some((condition, false)),
                    )));
                }
            }
            Err(error) => {
                fail(&mut items[at], node, error);
                chosen.push(at);
            }
        }
    }
    chosen
}

fn run_call(
    runtime: &Runtime<'_>,
    node: &Node,
    call: &PipelineCall,
    items: &mut [Item],
    who: &[usize],
    summary: &mut IngestSummary,
) {
    // The name may be a template, so documents of one batch may go to different pipelines.
    let mut by_name: Vec<(String, Vec<usize>)> = Vec::new();
    for &at in who {
        let name = match call.name(&items[at].document) {
            Ok(name) => name,
            Err(error) => {
                fail(&mut items[at], node, error);
                continue;
            }
        };
        if items[at].stack.len() >= MOST_PIPELINES {
            fail(&mut items[at], node, ProcessorError::TooManyPipelines { limit: MOST_PIPELINES });
            continue;
        }
        if items[at].stack.contains(&name) {
            fail(&mut items[at], node, ProcessorError::Cycle { id: name });
            continue;
        }
        match by_name.iter_mut().find(|(other, _)| *other == name) {
            Some((_, group)) => group.push(at),
            None => by_name.push((name, vec![at])),
        }
    }
    for (name, group) in by_name {
        match runtime.pipelines.get(&name) {
            Some(pipeline) => {
                let lengths: Vec<Option<usize>> =
                    group.iter().map(|&at| items[at].trace.as_ref().map(Vec::len)).collect();
                for &at in &group {
                    push_trace(runtime, node, &mut items[at], json!({"status": "success"}), false);
                }
                run_pipeline(runtime, pipeline, items, &group, summary);
                for (at, length) in group.into_iter().zip(lengths) {
                    show_cycle(runtime, node, &mut items[at], length);
                }
            }
            None if call.ignore_missing => {}
            None => {
                for at in group {
                    fail(&mut items[at], node, ProcessorError::NoSuchPipeline { id: name.clone() });
                }
            }
        }
    }
}

/// Runs error handlers on failed documents; those for which they succeed are live again.
fn handle_failures(
    runtime: &Runtime<'_>,
    handlers: &[Node],
    items: &mut [Item],
    failed: &[usize],
    summary: &mut IngestSummary,
) {
    const REASONS: [&str; 4] = [
        "on_failure_message",
        "on_failure_processor_type",
        "on_failure_processor_tag",
        "on_failure_pipeline",
    ];
    for &at in failed {
        let item = &mut items[at];
        let State::Failed(failure) = std::mem::replace(&mut item.state, State::Live) else { continue };
        let tag = failure.tag.map_or(Value::Null, Value::String);
        let values = [
            Value::String(failure.error.to_string()),
            Value::String(failure.kind),
            tag,
            Value::String(failure.pipeline),
        ];
        for (name, value) in REASONS.into_iter().zip(values) {
            item.document.ingest.insert(name.into(), value);
        }
    }
    run_nodes(runtime, handlers, items, failed, summary);
    for &at in failed {
        for name in REASONS {
            items[at].document.ingest.shift_remove(name);
        }
    }
}
