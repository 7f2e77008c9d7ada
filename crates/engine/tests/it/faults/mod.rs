//! Every file operation fails once, and the power is cut at any moment: what was acknowledged is there, nothing else is half there,
//! and the server goes on.
//!
//! `npm run test:faults` runs every case and more power cuts; `npm test` runs a sample of both. The seed and the number of rounds
//! come from `SPARROW_FAULTS_SEED` and `SPARROW_FAULTS_ROUNDS` (`all` for every case). `SPARROW_FAULTS_CASE` names one case, or the
//! first and the last of several (`12-40`), which are then run that often.

mod compare;
mod injector;
mod keeping;
mod steps;
mod world;
mod writing;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::common::{Node, by_tier, copy_tree, options};
use sparrow_engine::{Engine, EngineOptions};
use sparrow_file_system::Kind;
use sparrow_file_system::power::{Random, Recorder};

use self::injector::{Injector, Mode};
use self::steps::Step;
use self::world::World;

/// Number of cases that run in parallel: most of the time is spent waiting for the disk, or for a disk that works again.
const AT_ONCE: usize = 6;

/// Number of possible disk states that are tried for each power cut, out of the many that there are.
const CUTS: usize = 3;

/// The workloads. Each is tried by itself, so that a case is short.
const WORKLOADS: [&[Step]; 2] = [writing::STEPS, keeping::STEPS];

fn seed() -> u64 {
    std::env::var("SPARROW_FAULTS_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1)
}

/// Numbers of the cases to run, out of `all`: those that the environment asks for, or `usual` random ones.
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

/// Path of the server's data directory in a case's temporary folder.
fn data(folder: &Path) -> PathBuf {
    folder.join("data")
}

fn repositories(folder: &Path) -> PathBuf {
    folder.join("snapshots")
}

/// Runs cases in parallel, [`AT_ONCE`] at a time.
fn each(cases: &[usize], try_case: impl Fn(usize) + Sync) {
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
            try_case(*case);
        }
    };
    std::thread::scope(|scope| (0..AT_ONCE).for_each(|_| drop(scope.spawn(work))));
}

/// Opens an engine on the data in `folder`; gives the folder back with the error when it refuses to start. New indices are in the
/// oldest format, which a workload upgrades.
fn open(folder: tempfile::TempDir) -> Result<Node, (tempfile::TempDir, String)> {
    let mut options = options(&data(folder.path()));
    options.repo_path = Some(repositories(folder.path()));
    options.sparse_format = EngineOptions::oldest_sparse_format();
    match Engine::open(options) {
        Ok(engine) => Ok(Node::new(engine, folder)),
        Err(error) => Err((folder, error.to_string())),
    }
}

/// Copies all files as they are now. A copy during which a store changes would mix two moments, which no crash does, and is made
/// again.
fn copy(folder: &Path) -> tempfile::TempDir {
    let stores = || {
        let entries = fs::read_dir(data(folder).join("store")).unwrap().flatten();
        entries
            .filter_map(|entry| Some((entry.path(), fs::read(entry.path()).ok()?)))
            .collect::<BTreeMap<_, _>>()
    };
    loop {
        let copy = tempfile::tempdir().unwrap();
        let before = stores();
        copy_tree(folder, copy.path());
        if stores() == before {
            return copy;
        }
    }
}

/// Opens what a crash at this moment would leave, and compares it.
fn after_a_crash(node: Node, world: &World, context: &str) {
    let copy = copy(node.folder.path());
    node.engine.close();
    let node = open(copy).unwrap_or_else(|(_, error)| panic!("{context}: does not start again: {error}"));
    check(&node, world, &format!("{context}, after a crash"));
    node.engine.close();
}

/// Compares a restarted server with `world`, and restores its backups into other servers.
fn check(node: &Node, world: &World, context: &str) {
    world.check(node, context);
    world.check_backups(node, &repositories(node.folder.path()), context);
}

/// Prints the description of the running case if it panics.
struct Case<'a>(&'a str);

impl Drop for Case<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            report(self.0);
        }
    }
}

/// Number of file operations in a whole run of a workload without faults.
fn count_calls(steps: &[Step]) -> usize {
    let injector = Arc::new(Injector::new(u64::MAX, Mode::Error));
    let folder = tempfile::tempdir().unwrap();
    let _guard = sparrow_file_system::observe(folder.path(), injector.clone());
    let node = open(folder).unwrap_or_else(|(_, error)| panic!("{error}"));
    let mut world = World::default();
    steps.iter().for_each(|step| world.run(&node, step));
    assert!(world.refused.is_empty(), "without faults all is acknowledged: {:?}", world.refused);
    let calls = injector.seen().values().sum::<u64>() as usize;
    check(&node, &world, "without faults");
    node.engine.close();
    calls
}

/// Runs a workload with one fault and compares the result. Gives the numbers of acknowledged and of refused operations, and the
/// kind of file operation that failed.
fn with_fault(steps: &[Step], injector: Injector, context: &str) -> (usize, usize, Option<Kind>) {
    let _case = Case(context);
    let injector = Arc::new(injector);
    let folder = tempfile::tempdir().unwrap();
    let guard = sparrow_file_system::observe(folder.path(), injector.clone());
    let node = match open(folder) {
        Ok(node) => node,
        Err((folder, _)) => {
            // The fault was met while starting: without it the next start has to succeed.
            injector.disarm();
            open(folder).unwrap_or_else(|(_, error)| panic!("{context}: {error}"))
        }
    };
    let mut world = World::default();
    for step in steps {
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
    world.check_snapshots(&node, context);
    let fired = injector.fired_at();
    drop(guard);
    after_a_crash(node, &world, context);
    (world.acknowledged, world.refused.len(), fired)
}

/// The workload of a case, the number of the file operation that fails in it, and how it fails.
fn place(case: usize, calls: &[usize], modes: &[Mode]) -> (usize, u64, Mode) {
    let (mut workload, mut call) = (0, case / modes.len());
    while call >= calls[workload] {
        call -= calls[workload];
        workload += 1;
    }
    (workload, call as u64, modes[case % modes.len()])
}

#[test]
fn every_call_fails_once() {
    let calls = WORKLOADS.map(count_calls);
    let total: usize = calls.iter().sum();
    let mut random = Random(seed());
    let modes = [Mode::Error, Mode::Torn, Mode::Full];
    let cases = chosen(total * modes.len(), by_tier(10, 45), &mut random);
    let sums = Mutex::new((0, 0, BTreeMap::<Kind, u64>::new()));
    each(&cases, |case| {
        let (workload, kth, mode) = place(case, &calls, &modes);
        let context = format!(
            "seed {}, case {case}: call {kth} of {} of workload {workload} fails as {mode:?}",
            seed(),
            calls[workload]
        );
        let (acknowledged, refused, fired) =
            with_fault(WORKLOADS[workload], Injector::new(kth, mode), &context);
        let mut sums = sums.lock().unwrap();
        sums.0 += acknowledged;
        sums.1 += refused;
        if let Some(kind) = fired {
            *sums.2.entry(kind).or_default() += 1;
        }
    });
    let (acknowledged, refused, fired) = sums.into_inner().unwrap();
    let kinds: String = fired.iter().map(|(kind, count)| format!(" {kind:?}={count}")).collect();
    let all = total * modes.len();
    report(&format!("faults by call:{kinds}"));
    report(&format!(
        "faults: seed={} cases={} of={all} acknowledged={acknowledged} refused={refused}",
        seed(),
        cases.len(),
    ));
    assert!(fired.values().sum::<u64>() * 2 >= cases.len() as u64, "most faults are met: {fired:?}");
}

/// The state in which a workload leaves a server, as a crash would find it.
struct Left {
    world: World,
    files: tempfile::TempDir,
    /// Number of file operations that recovery from this state makes.
    calls: usize,
}

impl Left {
    fn by(steps: &[Step]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let node = open(folder).unwrap_or_else(|(_, error)| panic!("{error}"));
        let mut world = World::default();
        steps.iter().for_each(|step| world.run(&node, step));
        let files = copy(node.folder.path());
        node.engine.close();
        let mut left = Self { world, files, calls: 0 };
        let counting = Arc::new(Injector::new(u64::MAX, Mode::Error));
        let folder = left.again();
        let _guard = sparrow_file_system::observe(folder.path(), counting.clone());
        let node = open(folder).unwrap_or_else(|(_, error)| panic!("{error}"));
        left.calls = counting.seen().values().sum::<u64>() as usize;
        check(&node, &left.world, "recovery without faults");
        node.engine.close();
        left
    }

    fn again(&self) -> tempfile::TempDir {
        let copy = tempfile::tempdir().unwrap();
        copy_tree(self.files.path(), copy.path());
        copy
    }
}

#[test]
fn recovery_survives_a_fault_at_every_call() {
    let left = WORKLOADS.map(Left::by);
    let calls: Vec<usize> = left.iter().map(|left| left.calls).collect();
    let total: usize = calls.iter().sum();
    let mut random = Random(seed() ^ 7);
    let modes = [Mode::Error, Mode::Full];
    let cases = chosen(total * modes.len(), by_tier(6, 25), &mut random);
    each(&cases, |case| {
        let (workload, kth, mode) = place(case, &calls, &modes);
        let left = &left[workload];
        let context = format!(
            "seed {}, case {case}: call {kth} of {} of a recovery from workload {workload} fails as {mode:?}",
            seed(),
            left.calls
        );
        let _case = Case(&context);
        let injector = Arc::new(Injector::new(kth, mode));
        let folder = left.again();
        let guard = sparrow_file_system::observe(folder.path(), injector.clone());
        let folder = match open(folder) {
            Ok(node) => {
                injector.disarm();
                let copy = copy(node.folder.path());
                node.engine.close();
                copy
            }
            Err((folder, _)) => folder,
        };
        drop(guard);
        let node = open(folder).unwrap_or_else(|(_, error)| panic!("{context}: {error}"));
        check(&node, &left.world, &context);
        node.engine.close();
    });
    let all = total * modes.len();
    report(&format!("faults during recovery: seed={} cases={} of={all}", seed(), cases.len()));
}

/// All file changes of a workload, and what had been acknowledged after each step.
struct Recorded {
    steps: &'static [Step],
    recorder: Arc<Recorder>,
    /// After each step: the number of file changes so far, and what had been acknowledged.
    moments: Vec<(usize, World)>,
}

impl Recorded {
    fn of(steps: &'static [Step]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let recorder = Arc::new(Recorder::new(folder.path()).unwrap());
        let guard = sparrow_file_system::observe(folder.path(), recorder.clone());
        let node = open(folder).unwrap_or_else(|(_, error)| panic!("{error}"));
        let mut moments = vec![(recorder.moments(), World::default())];
        let mut world = World::default();
        for step in steps {
            world.run(&node, step);
            moments.push((recorder.moments(), world.clone()));
        }
        node.engine.close();
        drop(guard);
        Self { steps, recorder, moments }
    }

    /// Cuts the power after a file change and compares the state that a recovery reaches; `possibility` selects one of the many
    /// states that the disk may then be in.
    fn check_cut(&self, moment: usize, possibility: u64, context: &str) {
        let moment = self.moments[0].0 + moment % (self.recorder.moments() - self.moments[0].0).max(1);
        // All that was acknowledged up to then, and the step that was under way.
        let done = self.moments.iter().rposition(|(at, _)| *at <= moment).unwrap_or(0);
        let mut expected = self.moments[done].1.clone();
        if let Some(step) = self.steps.get(done) {
            expected.may_have(step);
        }
        let context = format!("{context}: power cut after change {moment}, step {done}");
        let target = tempfile::tempdir().unwrap();
        let cut = target.path().join("cut");
        self.recorder.cut(moment, possibility, &cut).unwrap();
        let copy = tempfile::tempdir().unwrap();
        copy_tree(&cut, copy.path());
        let node = open(copy).unwrap_or_else(|(_, error)| panic!("{context}: does not start: {error}"));
        check(&node, &expected, &context);
        node.engine.close();
    }
}

#[test]
fn the_power_goes_at_any_moment() {
    let recorded = WORKLOADS.map(Recorded::of);
    let moments: Vec<usize> = recorded.iter().map(|one| one.recorder.moments()).collect();
    let total: usize = moments.iter().sum();
    let mut random = Random(seed() ^ 99);
    let cases = chosen(total * CUTS, by_tier(12, 60), &mut random);
    each(&cases, |case| {
        let (mut workload, mut moment) = (0, case / CUTS);
        while moment >= moments[workload] {
            moment -= moments[workload];
            workload += 1;
        }
        let context = format!("seed {}, case {case}, workload {workload}", seed());
        let _case = Case(&context);
        recorded[workload].check_cut(moment, Random(seed() ^ case as u64).below(usize::MAX) as u64, &context);
    });
    report(&format!("power cuts: seed={} cases={} changes={total}", seed(), cases.len()));
}

/// Prints a line; `npm run test:faults` reads those with counts. They come only after every case was compared: what is lost or half there ends
/// the test before.
#[expect(clippy::print_stderr, reason = "the closing counts of npm run test:faults")]
fn report(line: &str) {
    eprintln!("{line}");
}
