//! The one node as a cluster: its health, its state, its settings.

pub(crate) mod health;
pub(crate) mod info;
pub(crate) mod instruments;
pub(crate) mod settings;
pub(crate) mod state;
mod waits;

pub(crate) use self::instruments::Ledger;
pub(crate) use self::settings::ClusterSettings;
pub(crate) use self::waits::Waits;
