//! Adaptive allocations: how many workers a deployment has follows its load.
//!
//! The load of an interval is the time that workers were busy in it plus the time that the waiting texts will take,
//! divided by the length of the interval: the number of workers that it keeps busy. A deployment grows at once when its
//! load is above 0.9 of its allocations. It shrinks when the load, smoothed over a few intervals, would leave one of
//! them idle, but not sooner than the cooldown after it last grew. If its minimum is 0, it goes to no workers when it
//! has had no text for a while; the first text after that starts a worker again.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use sparrow_request::error::{EngineError, Exception};
use sparrow_wire::shape::{Shape, alike, flag, int, nullable, object};

/// Load per allocation above which a deployment grows.
const GROW_ABOVE: f64 = 0.9;
/// Highest load per allocation that a deployment may have after it shrinks.
const SHRINK_TO: f64 = 0.85;
/// Weight of the newest interval in the smoothed load, between 0 and 1.
const NEWEST: f64 = 0.5;

/// The setting, as a request gives it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AdaptiveAllocations {
    /// Whether the number of allocations follows the load; if not, the bounds are stored and have no effect.
    pub enabled: bool,
    /// Fewest allocations; 0 lets the deployment sleep. Default 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_number_of_allocations: Option<usize>,
    /// Most allocations; default 32. Never more than the machine has cores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_number_of_allocations: Option<usize>,
}

impl AdaptiveAllocations {
    /// What the setting holds.
    pub(super) fn shape() -> Shape {
        object([("enabled", flag())])
            .and(alike("min_number_of_allocations max_number_of_allocations", nullable(int())))
    }

    /// Reads the setting; `null` and absent members have their defaults.
    ///
    /// # Errors
    /// A sentence that says what is wrong: not an object, an unknown member, or impossible bounds.
    pub fn parse(value: &Value) -> Result<Self, String> {
        const PARSER: &str = "adaptive_allocations_settings";
        let Value::Object(members) = value else {
            return Err(format!("[{PARSER}] Expected START_OBJECT but was: [{value}]"));
        };
        let mut read = Self::default();
        for (name, value) in members {
            let bound = |what: &str, least: i64| match value {
                Value::Null => Ok(None),
                _ => value
                    .as_i64()
                    .filter(|number| *number >= least)
                    .and_then(|number| usize::try_from(number).ok())
                    .map(Some)
                    .ok_or_else(|| format!("[{name}] must be a {what} integer or null")),
            };
            match name.as_str() {
                "enabled" => {
                    read.enabled = match value {
                        Value::Null => false,
                        Value::Bool(enabled) => *enabled,
                        _ => {
                            return Err(format!(
                                "[{PARSER}] failed to parse field [enabled]: [{value}] is not a boolean"
                            ));
                        }
                    }
                }
                "min_number_of_allocations" => read.min_number_of_allocations = bound("non-negative", 0)?,
                "max_number_of_allocations" => read.max_number_of_allocations = bound("positive", 1)?,
                _ => return Err(format!("[{PARSER}] {}", Self::shape().unknown(name))),
            }
        }
        match (read.min_number_of_allocations, read.max_number_of_allocations) {
            (Some(min), Some(max)) if min > max => {
                Err("[min_number_of_allocations] must not be larger than [max_number_of_allocations]".into())
            }
            _ => Ok(read),
        }
    }

    /// Reads the setting from the body of a request.
    ///
    /// # Errors
    /// Status 400, with the sentence of [`AdaptiveAllocations::parse`].
    pub fn from_body(body: &Map<String, Value>) -> Result<Option<Self>, EngineError> {
        match body.get("adaptive_allocations") {
            None | Some(Value::Null) => Ok(None),
            Some(value) => Self::parse(value).map(Some).map_err(|problem| {
                if problem.starts_with("[adaptive_allocations_settings]") {
                    EngineError::api(400, Exception::new("x_content_parse_exception", problem))
                } else {
                    EngineError::invalid(problem)
                }
            }),
        }
    }

    /// Fewest and most allocations on a machine with `cores` cores.
    pub fn bounds(&self, cores: usize) -> (usize, usize) {
        let max = self.max_number_of_allocations.unwrap_or(32).min(cores).max(1);
        (self.min_number_of_allocations.unwrap_or(0).min(max), max)
    }

    /// Number of allocations to start with, at least 1, as the first text will probably come soon.
    pub fn initial(&self, cores: usize) -> usize {
        self.bounds(cores).0.max(1)
    }
}

/// Times of the policy: how often it runs, and how long it waits before it removes workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AdaptiveTiming {
    /// Interval between two decisions.
    pub interval: Duration,
    /// Time after growing in which a deployment does not shrink.
    pub cooldown: Duration,
    /// Time without any text after which a deployment sleeps.
    pub idle: Duration,
}

impl Default for AdaptiveTiming {
    fn default() -> Self {
        Self {
            interval: Duration::from_secs(10),
            cooldown: Duration::from_secs(5 * 60),
            idle: Duration::from_secs(15 * 60),
        }
    }
}

/// The state of a deployment at one moment; `busy` and `texts` count from its start.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Observation {
    /// Time of the observation, since an arbitrary fixed moment.
    pub now: Duration,
    /// Sum of the times that workers were busy.
    pub busy: Duration,
    /// Number of texts answered, including those from the cache.
    pub texts: u64,
    /// Number of texts that wait for a worker.
    pub pending: u64,
    /// Number of workers.
    pub allocations: usize,
}

/// The state that the policy keeps of one deployment.
#[derive(Debug, Default)]
pub(super) struct Scaler {
    last: Option<Observation>,
    smoothed: f64,
    /// Mean time of a text, seconds: kept from the last interval that had texts.
    per_text: f64,
    grown: Duration,
    active: Duration,
}

impl Scaler {
    /// The number of allocations that the deployment should have now.
    pub fn decide(
        &mut self,
        seen: Observation,
        (min, max): (usize, usize),
        timing: &AdaptiveTiming,
    ) -> usize {
        let Some(last) = self.last.replace(seen) else {
            self.active = seen.now;
            self.grown = seen.now;
            return seen.allocations.clamp(min, max);
        };
        let length = seen.now.saturating_sub(last.now).as_secs_f64().max(1e-6);
        let busy = seen.busy.saturating_sub(last.busy).as_secs_f64();
        let texts = seen.texts.saturating_sub(last.texts);
        if texts > 0 && busy > 0.0 {
            self.per_text = busy / texts as f64;
        }
        if texts > 0 || seen.pending > 0 {
            self.active = seen.now;
        }
        let load = (busy + seen.pending as f64 * self.per_text) / length;
        self.smoothed += NEWEST * (load - self.smoothed);
        let current = seen.allocations;
        if current == 0 {
            if seen.pending == 0 {
                return min;
            }
            self.grown = seen.now;
            return min.max(1);
        }
        let idle = seen.now.saturating_sub(self.active) >= timing.idle;
        if min == 0 && seen.pending == 0 && idle {
            return 0;
        }
        let wanted = |load: f64, share: f64| {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "loads are small and positive"
            )]
            let workers = (load / share).ceil() as usize;
            workers
        };
        let target = if load > GROW_ABOVE * current as f64 {
            wanted(load, GROW_ABOVE).max(current + 1)
        } else if seen.now.saturating_sub(self.grown) >= timing.cooldown
            && self.smoothed < SHRINK_TO * (current - 1) as f64
        {
            wanted(self.smoothed, SHRINK_TO)
        } else {
            current
        };
        let target = target.clamp(min.max(1), max);
        if target > current {
            self.grown = seen.now;
        }
        target
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::{AdaptiveAllocations, AdaptiveTiming, Observation, Scaler};

    /// A deployment under a load, with a clock of its own.
    struct Simulation {
        scaler: Scaler,
        seen: Observation,
        bounds: (usize, usize),
        timing: AdaptiveTiming,
    }

    impl Simulation {
        fn new(bounds: (usize, usize)) -> Self {
            let seen = Observation { allocations: bounds.0.max(1), ..Observation::default() };
            let mut simulation =
                Self { scaler: Scaler::default(), seen, bounds, timing: AdaptiveTiming::default() };
            simulation.scaler.decide(seen, bounds, &simulation.timing);
            simulation
        }

        /// Simulates intervals in which texts of 10 ms arrive that would keep `load` workers busy; returns the final
        /// number of allocations.
        fn run(&mut self, load: f64, intervals: usize) -> usize {
            for _ in 0..intervals {
                let length = self.timing.interval;
                self.seen.now += length;
                let arriving = (load * length.as_secs_f64() / 0.01) as u64;
                let room = (self.seen.allocations as f64 * length.as_secs_f64() / 0.01) as u64;
                let done = (self.seen.pending + arriving).min(room);
                self.seen.pending = self.seen.pending + arriving - done;
                self.seen.texts += done;
                self.seen.busy += Duration::from_millis(10 * done);
                self.seen.allocations = self.scaler.decide(self.seen, self.bounds, &self.timing);
            }
            self.seen.allocations
        }
    }

    #[test]
    fn allocations_follow_the_load() {
        let mut deployment = Simulation::new((1, 8));
        assert_eq!(deployment.run(0.5, 5), 1);
        assert!(deployment.run(3.0, 1) > 1, "a backlog grows the deployment at once");
        let busy = deployment.run(3.0, 20);
        assert!((4..=8).contains(&busy), "{busy} allocations for a load of 3");
        assert_eq!(deployment.run(100.0, 5), 8, "never above the maximum");
        deployment.seen.pending = 0;
        assert_eq!(deployment.run(0.2, 20), 8, "it does not shrink during the cooldown");
        assert_eq!(deployment.run(0.2, 30), 1);
    }

    #[test]
    fn an_idle_deployment_sleeps_and_a_text_wakes_it() {
        let mut deployment = Simulation::new((0, 4));
        assert_eq!(deployment.run(0.3, 3), 1);
        assert_eq!(deployment.run(0.0, 88), 1, "fifteen minutes are not over");
        assert_eq!(deployment.run(0.0, 3), 0);
        assert_eq!(deployment.run(0.0, 30), 0);
        deployment.seen.pending = 1;
        assert_eq!(deployment.run(0.0, 1), 1);
        let mut kept = Simulation::new((2, 4));
        assert_eq!(kept.run(0.0, 500), 2, "a minimum above 0 is kept");
    }

    #[test]
    fn settings_are_validated() {
        let parse = |value| AdaptiveAllocations::parse(&value);
        let read = parse(
            json!({"enabled": true, "min_number_of_allocations": 0, "max_number_of_allocations": null}),
        );
        assert_eq!(read.unwrap().bounds(4), (0, 4));
        for (value, problem) in [
            (
                json!({"min_number_of_allocations": -1}),
                "[min_number_of_allocations] must be a non-negative integer or null",
            ),
            (
                json!({"max_number_of_allocations": 0}),
                "[max_number_of_allocations] must be a positive integer or null",
            ),
            (
                json!({"max_number_of_allocations": "x"}),
                "[max_number_of_allocations] must be a positive integer or null",
            ),
            (
                json!({"min_number_of_allocations": 3, "max_number_of_allocations": 2}),
                "[min_number_of_allocations] must not be larger than [max_number_of_allocations]",
            ),
            (json!({"on": true}), "[adaptive_allocations_settings] unknown field [on]"),
        ] {
            assert_eq!(parse(value).unwrap_err(), problem);
        }
        assert!(parse(json!(true)).is_err() && parse(json!({"enabled": "yes"})).is_err());
    }
}
