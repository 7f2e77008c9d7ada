//! Repository checks that no compiler makes: `cargo run -p xtask -- tidy`, and `audit` of what comes from others.
//!
//! The same checks run as a test, so that `npm test` holds them.

mod audit;
mod circles;
mod tidy;

use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    let problems = match std::env::args().nth(1).as_deref() {
        Some("tidy") => tidy::check(),
        Some("audit") => audit::check(),
        _ => vec!["usage: cargo run -p xtask -- tidy|audit".to_owned()],
    };
    let mut out = std::io::stderr().lock();
    for problem in &problems {
        // Nothing can be done about a closed standard error.
        let _ = writeln!(out, "{problem}");
    }
    if problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
