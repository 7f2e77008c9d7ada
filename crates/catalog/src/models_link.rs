//! How indices find the models that encode their texts.

use std::sync::{Arc, OnceLock, Weak};

use sparrow_models::Models;

/// The way from an index to the models that encode its texts. Set once they are there: indices open at the same time.
pub type ModelsLink = Arc<OnceLock<Weak<Models>>>;
