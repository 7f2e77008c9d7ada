//! Reshaping of answers (`filter_path`, `pretty`, YAML, …) on libuv's threads, so that the event loop never waits.

use napi::bindgen_prelude::{AsyncTask, Buffer};
use napi::{Env, Error, Result, Status, Task};
use napi_derive::napi;
use sparrow_presentation::{Problem, Shape, shaped};

use crate::parse;

/// An answer and the shape that it is to get, as a task for libuv's threads.
pub struct Shaping {
    bytes: Buffer,
    shape: Shape,
}

impl Task for Shaping {
    /// The reshaped answer; none if the paths take too many steps, or the answer would be too long.
    type Output = Option<Vec<u8>>;
    type JsValue = Option<Buffer>;

    fn compute(&mut self) -> Result<Option<Vec<u8>>> {
        match shaped(&self.bytes, &self.shape) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(Problem::TooMuchWork | Problem::TooLong) => Ok(None),
            Err(problem @ Problem::Malformed) => Err(Error::new(Status::GenericFailure, problem.to_string())),
        }
    }

    fn resolve(&mut self, _: Env, output: Option<Vec<u8>>) -> Result<Option<Buffer>> {
        Ok(output.map(Buffer::from))
    }
}

/// Gives an answer in JSON another shape. `shape` is a `Shape` as JSON. The bytes may not be changed meanwhile. Resolves with
/// null when the paths of `filter_path` take too many steps on this answer, or laid out it would be too long.
#[napi(catch_unwind, ts_return_type = "Promise<Buffer | null>")]
pub fn shape_answer(bytes: Buffer, shape: String) -> Result<AsyncTask<Shaping>> {
    Ok(AsyncTask::new(Shaping { bytes, shape: parse("shape", &shape)? }))
}
