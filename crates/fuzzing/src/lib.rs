//! Fuzzing for the tests of decoders: inputs are mutations of valid ones, reproducible by seed.
//!
//! A test hands good inputs and a decoder to [`Campaign::run`]. What panics or takes too long is kept as a file in the folder
//! `tests/found/` of the crate, beside those of earlier times, which every run tries first. A run is short unless
//! `SPARROW_FUZZ_SECONDS` says how long each decoder is tried; `SPARROW_FUZZ_SEED` makes other inputs.

mod json;
mod mutation;
#[cfg(unix)]
mod pipe;
mod random;

use std::cell::Cell;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::time::{Duration, Instant};

pub use json::mutated as mutated_json;
pub use mutation::{EDGES, WORDS, mutated};
#[cfg(unix)]
pub use pipe::make_pipe;
pub use random::Random;

/// Default fuzzing time for each decoder.
const SHORT: Duration = Duration::from_millis(700);
/// Time limit for decoding one input.
const SLOW: Duration = Duration::from_secs(5);
/// Number of failures after which a run ends, as most are alike.
const MOST_MISTAKES: usize = 5;

thread_local! {
    /// Whether this thread is currently trying an input, so that its panics are not printed.
    static TRYING: Cell<bool> = const { Cell::new(false) };
}

/// Fuzzing of one decoder, with the folder where its failing inputs are kept.
#[derive(Debug)]
pub struct Campaign {
    name: &'static str,
    found: PathBuf,
}

/// Result of a fuzzing run.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Counts {
    /// Inputs tried, kept ones included.
    pub tried: u64,
    /// Inputs that made the decoder panic.
    pub crashes: u64,
    /// Number of inputs that exceeded the time limit.
    pub hangs: u64,
}

impl Campaign {
    /// Fuzzing of the decoder called `name`; `crate_folder` is the test's `CARGO_MANIFEST_DIR`.
    pub fn new(crate_folder: &str, name: &'static str) -> Self {
        static QUIET: Once = Once::new();
        // What panics over an input is told by the campaign, with that input, and not by the hook for each of thousands.
        QUIET.call_once(|| {
            let usual = take_hook();
            set_hook(Box::new(move |panic| {
                if !TRYING.get() {
                    usual(panic);
                }
            }));
        });
        Self { name, found: Path::new(crate_folder).join("tests").join("found").join(name) }
    }

    /// Tries the kept inputs, then new ones that `make` makes, until the time is over.
    ///
    /// # Panics
    /// When an input made the decoder panic or took too long: the message says where it is kept.
    pub fn run(&self, make: impl Fn(&mut Random) -> Vec<u8>, mut decode: impl FnMut(&[u8])) -> Counts {
        let seed = number("SPARROW_FUZZ_SEED").unwrap_or(1);
        let time = number("SPARROW_FUZZ_SECONDS").map_or(SHORT, Duration::from_secs);
        let mut counts = Counts::default();
        let mut mistakes = Vec::new();
        for path in self.kept() {
            let Ok(input) = fs::read(&path) else { continue };
            if let Some(mistake) = attempt(&input, &mut decode, &mut counts) {
                mistakes.push(format!("{mistake}: {}", path.display()));
            }
        }
        let end = Instant::now() + time;
        for number in 0.. {
            if Instant::now() >= end || mistakes.len() >= MOST_MISTAKES {
                break;
            }
            let mut random = Random::new(seed, number);
            let input = make(&mut random);
            if std::env::var_os("SPARROW_FUZZ_TRACE").is_some() {
                // For an input that ends the process: the last one that is there.
                let _ = fs::write(std::env::temp_dir().join(format!("sparrow-fuzz-{}", self.name)), &input);
            }
            if let Some(mistake) = attempt(&input, &mut decode, &mut counts) {
                mistakes.push(format!(
                    "{mistake}: {} (seed {seed}, number {number})",
                    self.keep(&input).display()
                ));
            }
        }
        let Counts { tried, crashes, hangs } = counts;
        // Standard error, past the test harness: `npm run test:fuzz` reads it.
        let _ = writeln!(
            std::io::stderr(),
            "fuzz {}: seed={seed} inputs={tried} crashes={crashes} hangs={hangs}",
            self.name
        );
        assert!(mistakes.is_empty(), "{}:\n{}", self.name, mistakes.join("\n"));
        counts
    }

    fn kept(&self) -> Vec<PathBuf> {
        let mut paths: Vec<PathBuf> =
            fs::read_dir(&self.found).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
        paths.sort();
        paths
    }

    fn keep(&self, input: &[u8]) -> PathBuf {
        let mut hasher = DefaultHasher::new();
        input.hash(&mut hasher);
        let path = self.found.join(format!("{:016x}", hasher.finish()));
        let _ = fs::create_dir_all(&self.found).and_then(|()| fs::write(&path, input));
        path
    }
}

/// Tries one input; returns a description of the failure, if any.
fn attempt(input: &[u8], decode: &mut impl FnMut(&[u8]), counts: &mut Counts) -> Option<String> {
    counts.tried += 1;
    let began = Instant::now();
    TRYING.set(true);
    let result = catch_unwind(AssertUnwindSafe(|| decode(input)));
    TRYING.set(false);
    if let Err(panic) = result {
        counts.crashes += 1;
        let text = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied())
            .unwrap_or("a panic");
        return Some(format!("panicked ({text})"));
    }
    let took = began.elapsed();
    if took > SLOW {
        counts.hangs += 1;
        return Some(format!("took {took:?}"));
    }
    None
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_panics_is_counted_kept_and_tried_first_the_next_time() {
        let folder = std::env::temp_dir().join(format!("sparrow-fuzzing-{}", std::process::id()));
        let campaign = Campaign::new(folder.to_str().unwrap_or_default(), "letters");
        let make = |random: &mut Random| mutated(random, &[b"abc".to_vec()], &[]);
        let run = |campaign: &Campaign| {
            catch_unwind(AssertUnwindSafe(|| {
                campaign.run(make, |bytes| assert!(!bytes.contains(&b'"'), "a quote"))
            }))
        };
        let said = run(&campaign).unwrap_err();
        let said = said.downcast_ref::<String>().cloned().unwrap_or_default();
        assert!(said.contains("panicked (a quote)") && said.contains("seed 1"), "{said}");
        let kept = campaign.kept();
        assert!(!kept.is_empty());
        let mut seen = Vec::new();
        campaign.run(|_| b"good".to_vec(), |bytes| seen.push(bytes.to_vec()));
        assert_eq!(seen[0], fs::read(&kept[0]).unwrap_or_default());
        assert_eq!(seen.last().map(Vec::as_slice), Some(b"good".as_slice()));
        let _ = fs::remove_dir_all(folder);
    }

    #[test]
    fn the_same_seed_makes_the_same_inputs() {
        let seeds = [br#"{"a":[1,2],"b":"c"}"#.to_vec(), vec![0; 40]];
        let made = |seed| -> Vec<Vec<u8>> {
            (0..200).map(|number| mutated(&mut Random::new(seed, number), &seeds, &[b"word"])).collect()
        };
        assert_eq!(made(1), made(1));
        assert_ne!(made(1), made(2));
    }
}
