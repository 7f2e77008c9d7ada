//! The one node as a cluster: its health, its state, its settings.

pub mod health;
pub mod info;
pub mod instruments;
pub mod settings;
pub mod state;
mod waits;

pub use self::instruments::Ledger;
pub use self::waits::Waits;
