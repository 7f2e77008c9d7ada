//! The single node as a cluster: health, state, settings and figures.

pub mod health;
pub mod info;
pub mod instruments;
pub mod settings;
pub mod state;
mod waits;

pub use self::instruments::Ledger;
pub use self::waits::Waits;
