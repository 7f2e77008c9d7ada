//! Reshaping of answers (`filter_path`, `pretty`, YAML, …) on libuv's threads, so that the event loop never waits.

use napi::bindgen_prelude::{ArrayBuffer, AsyncTask, Buffer, Either};
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
    /// The reshaped answer, or a word that says why it could not be made.
    type Output = std::result::Result<Vec<u8>, &'static str>;
    type JsValue = Either<Buffer, String>;

    fn compute(&mut self) -> Result<Self::Output> {
        match shaped(&self.bytes, &self.shape) {
            Ok(bytes) => Ok(Ok(bytes)),
            Err(Problem::TooMuchWork) => Ok(Err("tooMuchWork")),
            Err(Problem::TooLong) => Ok(Err("tooLong")),
            Err(Problem::NoRoom) => Ok(Err("noRoom")),
            Err(problem @ Problem::Malformed) => Err(Error::new(Status::GenericFailure, problem.to_string())),
        }
    }

    fn resolve(&mut self, _: Env, output: Self::Output) -> Result<Self::JsValue> {
        Ok(match output {
            Ok(bytes) => Either::A(Buffer::from(bytes)),
            Err(problem) => Either::B(problem.to_owned()),
        })
    }
}

/// Gives an answer in JSON another shape. `shape` is a `Shape` as JSON. The bytes may not be changed meanwhile. Resolves with
/// a word when the paths of `filter_path` take too many steps on this answer, or laid out it would be too long, or than there is memory.
#[napi(catch_unwind, ts_return_type = "Promise<Buffer | 'tooMuchWork' | 'tooLong' | 'noRoom'>")]
pub fn shape_answer(bytes: Buffer, shape: String) -> Result<AsyncTask<Shaping>> {
    Ok(AsyncTask::new(Shaping { bytes, shape: parse("shape", &shape)? }))
}

/// Frees the bytes of an answer that has been sent, which V8 would keep until it next collects garbage: after a long answer that can be
/// never. Nothing may use them any more.
#[napi(catch_unwind)]
pub fn free_answer(bytes: ArrayBuffer) -> Result<()> {
    bytes.detach()
}
