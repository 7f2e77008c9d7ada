//! Tests that count something of the whole process, such as its memory or its panics. Each holds [`PROCESS`], so that it runs alone.

#[path = "../common/mod.rs"]
mod common;
mod corruption;
#[cfg(target_os = "linux")]
mod empty_indices;

/// Held by the test that is running.
static PROCESS: parking_lot::Mutex<()> = parking_lot::const_mutex(());
