//! Work that outlives its request: tasks that can be listed, cancelled, throttled and waited for, and whose
//! results survive restarts. The jobs themselves are defined by those who start them.

pub mod api;
mod context;
mod progress;
mod record;
pub mod reindexes;
mod requests;
mod spec;
mod store;
mod task;
mod tasks;
pub mod throttle;

pub use self::context::TaskContext;
pub use self::progress::Progress;
pub use self::requests::RequestGuard;
pub use self::spec::{CANCELLED, TaskSpec};
pub use self::task::Task;
pub use self::tasks::{TaskGuard, TaskHandle, Tasks, Waiting};
