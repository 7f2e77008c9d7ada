//! Every operation on files fails once, and the power goes at any moment: what was acknowledged is there, nothing else is half
//! there, and the server goes on.
//!
//! `npm run test:faults` runs every place and more power cuts; `npm test` a sample of both. The seed and the number of rounds come
//! from `SPARROW_FAULTS_SEED` and `SPARROW_FAULTS_ROUNDS` (`all` for every place). `SPARROW_FAULTS_CASE` names one case, or the
//! first and the last of several (`12-40`), which are then run that often.

#[path = "../common/mod.rs"]
mod common;
mod injector;
mod workload;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use common::{Node, copy_tree, options};
use sparrow_engine::{Engine, EngineOptions};
use sparrow_files::Kind;
use sparrow_files::power::{Random, Recorder};

use injector::{Injector, Mode};
use workload::{STEPS, World};

/// Cases that are tried side by side.
const AT_ONCE: usize = 4;

fn seed() -> u64 {
    std::env::var("SPARROW_FAULTS_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1)
}

/// How many of `all` cases are run, and which.
fn chosen(all: usize, usual: usize, random: &mut Random) -> Vec<usize> {
    let rounds = std::env::var("SPARROW_FAULTS_ROUNDS").unwrap_or_default();
    if let Ok(cases) = std::env::var("SPARROW_FAULTS_CASE") {
        let number = |case: &str| case.parse::<usize>().expect("the number of a case");
        let (first, last) = cases.split_once('-').unwrap_or((&cases, &cases));
        return (0..rounds.parse().unwrap_or(1)).flat_map(|_| number(first)..=number(last)).collect();
    }
    let wanted = if rounds == "all" { all } else { rounds.parse().unwrap_or(usual) };
    if wanted >= all {
        return (0..all).collect();
    }
    (0..wanted).map(|_| random.below(all)).collect()
}

/// An engine on the data that `folder` holds; nothing when it refuses to start. New indices are in the oldest format, which the
/// workload upgrades.
fn open(folder: tempfile::TempDir) -> Result<Node, (tempfile::TempDir, String)> {
    let mut options = options(folder.path());
    options.sparse_format = EngineOptions::oldest_sparse_format();
    match Engine::open(options) {
        Ok(engine) => Ok(Node { engine, folder }),
        Err(error) => Err((folder, error.to_string())),
    }
}

/// What a crash now leaves, opened again and compared.
fn after_a_crash(node: Node, world: &World, context: &str) {
    let copy = node.copy_data();
    node.engine.close();
    let node = open(copy).unwrap_or_else(|(_, error)| panic!("{context}: does not start again: {error}"));
    world.check(&node, &format!("{context}, after a crash"));
    node.engine.close();
}

/// Names the case that a panic ends.
struct Case<'a>(&'a str);

impl Drop for Case<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            report(self.0);
        }
    }
}

/// Calls of a whole run without faults, by kind.
fn count_calls() -> BTreeMap<Kind, u64> {
    let injector = Arc::new(Injector::new(u64::MAX, Mode::Error));
    let folder = tempfile::tempdir().unwrap();
    let _guard = sparrow_files::observe(folder.path(), injector.clone());
    let node = open(folder).unwrap_or_else(|(_, error)| panic!("{error}"));
    let mut world = World::default();
    STEPS.iter().for_each(|step| world.run(&node, step));
    assert!(world.refused.is_empty(), "without faults all is acknowledged: {:?}", world.refused);
    world.check(&node, "without faults");
    node.engine.close();
    injector.seen()
}

/// Runs the workload with a fault in it and compares: how many operations were acknowledged, how many refused, and what failed.
fn with_fault(injector: Injector, context: &str) -> (usize, usize, Option<Kind>) {
    let _case = Case(context);
    let injector = Arc::new(injector);
    let folder = tempfile::tempdir().unwrap();
    let guard = sparrow_files::observe(folder.path(), injector.clone());
    let node = match open(folder) {
        Ok(node) => node,
        Err((folder, _)) => {
            // The fault was met while starting: without it the next start has to succeed.
            injector.disarm();
            open(folder).unwrap_or_else(|(_, error)| panic!("{context}: {error}"))
        }
    };
    let mut world = World::default();
    for step in STEPS {
        world.run(&node, step);
        if injector.has_fired() {
            // There is room again: everything goes on without a restart.
            world.check_reads(&node, &format!("{context}, in step {}", step.name));
            injector.disarm();
        }
    }
    injector.disarm();
    world.settle(&node, context);
    world.check(&node, context);
    let fired = injector.fired_at();
    drop(guard);
    after_a_crash(node, &world, context);
    (world.acknowledged, world.refused.len(), fired)
}

#[test]
fn every_call_fails_once() {
    let calls = count_calls();
    let total: u64 = calls.values().sum();
    let mut random = Random(seed());
    let modes = [Mode::Error, Mode::Torn, Mode::Full];
    let cases = chosen(total as usize * modes.len(), 45, &mut random);
    let (next, sums) = (AtomicUsize::new(0), Mutex::new((0, 0, BTreeMap::<Kind, u64>::new())));
    let work = || {
        while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
            let (kth, mode) = ((case / modes.len()) as u64, modes[case % modes.len()]);
            let context = format!("seed {}, case {case}: call {kth} of {total} fails as {mode:?}", seed());
            let (acknowledged, refused, fired) = with_fault(Injector::new(kth, mode), &context);
            let mut sums = sums.lock().unwrap();
            sums.0 += acknowledged;
            sums.1 += refused;
            if let Some(kind) = fired {
                *sums.2.entry(kind).or_default() += 1;
            }
        }
    };
    // Most of the time goes by in waiting for a disk that works again.
    std::thread::scope(|scope| (0..AT_ONCE).for_each(|_| drop(scope.spawn(work))));
    let (acknowledged, refused, fired) = sums.into_inner().unwrap();
    let kinds: String = fired.iter().map(|(kind, count)| format!(" {kind:?}={count}")).collect();
    let all = total as usize * modes.len();
    report(&format!("faults by call:{kinds}"));
    report(&format!(
        "faults: seed={} cases={} of={all} acknowledged={acknowledged} refused={refused}",
        seed(),
        cases.len(),
    ));
    assert!(fired.values().sum::<u64>() * 2 >= cases.len() as u64, "most faults are met: {fired:?}");
}

#[test]
fn recovery_survives_a_fault_at_every_call() {
    let folder = tempfile::tempdir().unwrap();
    let node = open(folder).unwrap_or_else(|(_, error)| panic!("{error}"));
    let mut world = World::default();
    STEPS.iter().for_each(|step| world.run(&node, step));
    let left = node.copy_data();
    node.engine.close();
    let again = || {
        let copy = tempfile::tempdir().unwrap();
        copy_tree(left.path(), copy.path());
        copy
    };
    let counting = Arc::new(Injector::new(u64::MAX, Mode::Error));
    {
        let folder = again();
        let _guard = sparrow_files::observe(folder.path(), counting.clone());
        let node = open(folder).unwrap_or_else(|(_, error)| panic!("{error}"));
        world.check(&node, "recovery without faults");
        node.engine.close();
    }
    let total: u64 = counting.seen().values().sum();
    let mut random = Random(seed() ^ 7);
    let modes = [Mode::Error, Mode::Full];
    let cases = chosen(total as usize * modes.len(), 25, &mut random);
    for case in &cases {
        let (kth, mode) = ((case / modes.len()) as u64, modes[case % modes.len()]);
        let context =
            format!("seed {}, case {case}: call {kth} of {total} of a recovery fails as {mode:?}", seed());
        let injector = Arc::new(Injector::new(kth, mode));
        let folder = again();
        let guard = sparrow_files::observe(folder.path(), injector.clone());
        let folder = match open(folder) {
            Ok(node) => {
                injector.disarm();
                let copy = node.copy_data();
                node.engine.close();
                copy
            }
            Err((folder, _)) => folder,
        };
        drop(guard);
        let node = open(folder).unwrap_or_else(|(_, error)| panic!("{context}: {error}"));
        world.check(&node, &context);
        node.engine.close();
    }
    let all = total as usize * modes.len();
    report(&format!("faults during recovery: seed={} cases={} of={all}", seed(), cases.len()));
}

#[test]
fn the_power_goes_at_any_moment() {
    let folder = tempfile::tempdir().unwrap();
    let recorder = Arc::new(Recorder::new(folder.path()).unwrap());
    let guard = sparrow_files::observe(folder.path(), recorder.clone());
    let node = open(folder).unwrap_or_else(|(_, error)| panic!("{error}"));
    // The world after each step, and the moment at which the step was acknowledged.
    let mut moments = vec![(recorder.moments(), World::default())];
    let mut world = World::default();
    for step in STEPS {
        world.run(&node, step);
        moments.push((recorder.moments(), world.clone()));
    }
    node.engine.close();
    drop(guard);
    let mut random = Random(seed() ^ 99);
    let cases = chosen(recorder.moments() * 8, 60, &mut random);
    let mut cuts = 0;
    for case in &cases {
        let moment = moments[0].0 + (case / 8) % (recorder.moments() - moments[0].0).max(1);
        // All that was acknowledged up to then, and the step that was under way.
        let done = moments.iter().rposition(|(at, _)| *at <= moment).unwrap_or(0);
        let mut expected = moments[done].1.clone();
        if let Some(step) = STEPS.get(done) {
            expected.may_have(step);
        }
        let context = format!("seed {}, case {case}: power cut after change {moment}, step {done}", seed());
        let target = tempfile::tempdir().unwrap();
        let cut = target.path().join("data");
        recorder.cut(moment, random.0 ^ *case as u64, &cut).unwrap();
        let copy = tempfile::tempdir().unwrap();
        copy_tree(&cut, copy.path());
        let node = open(copy).unwrap_or_else(|(_, error)| panic!("{context}: does not start: {error}"));
        expected.check(&node, &context);
        node.engine.close();
        cuts += 1;
    }
    report(&format!("power cuts: seed={} cases={cuts} changes={}", seed(), recorder.moments()));
}

/// Prints a line; `npm run test:faults` reads those with counts. They come only after every case was compared: what is lost or half there ends
/// the test before.
#[expect(clippy::print_stderr, reason = "the closing counts of npm run test:faults")]
fn report(line: &str) {
    eprintln!("{line}");
}
