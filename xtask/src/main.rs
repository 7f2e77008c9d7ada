//! Repository checks that no compiler makes: `cargo run -p xtask -- tidy`, `audit` of what comes from others, and
//! `measure` for the figures in docs/design/crates.md.
//!
//! The same checks run as a test, so that `npm test` holds them.

mod audit;
mod circles;
mod file_circles;
mod layers;
mod sizes;
mod source;
mod tidy;

use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    let problems = match std::env::args().nth(1).as_deref() {
        Some("tidy") => tidy::check(),
        Some("audit") => audit::check(),
        Some("measure") => tidy::measured(),
        _ => vec!["usage: cargo run -p xtask -- tidy|audit|measure".to_owned()],
    };
    let mut out = std::io::stderr().lock();
    for problem in &problems {
        // Nothing can be done about a closed standard error.
        let _ = writeln!(out, "{problem}");
    }
    let is_measured = std::env::args().nth(1).as_deref() == Some("measure");
    if problems.is_empty() || is_measured { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
