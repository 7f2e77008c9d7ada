//! Zstandard for bodies of requests and answers: the oldest Node.js that is supported has no codec of its own. Both
//! directions run on libuv's threads, as Node's own gzip does, so the event loop never waits.

use std::io::Read;

use napi::bindgen_prelude::{AsyncTask, Buffer};
use napi::{Env, Error, Result, Status, Task};
use napi_derive::napi;

/// Largest window that is read, as a power of two of bytes: what RFC 8878 recommends at least, and what a level up to 19
/// needs. A frame may ask for far more memory than it has content.
const WINDOW_LOG_MAX: u32 = 23;

/// Bytes that become others.
pub struct Compression {
    bytes: Buffer,
    level: i32,
}

impl Task for Compression {
    type Output = Vec<u8>;
    type JsValue = Buffer;

    fn compute(&mut self) -> Result<Vec<u8>> {
        zstd::bulk::compress(&self.bytes, self.level).map_err(failed)
    }

    fn resolve(&mut self, _: Env, output: Vec<u8>) -> Result<Buffer> {
        Ok(output.into())
    }
}

/// Frames that become bytes.
pub struct Decompression {
    bytes: Buffer,
    limit: usize,
}

impl Task for Decompression {
    /// None: there are more bytes than the limit.
    type Output = Option<Vec<u8>>;
    type JsValue = Option<Buffer>;

    fn compute(&mut self) -> Result<Option<Vec<u8>>> {
        let mut decoder = zstd::stream::read::Decoder::with_buffer(&*self.bytes).map_err(failed)?;
        decoder.window_log_max(WINDOW_LOG_MAX).map_err(failed)?;
        let mut out = Vec::new();
        // One byte more than allowed tells a body of the greatest length from a longer one.
        let bound = u64::try_from(self.limit).unwrap_or(u64::MAX).saturating_add(1);
        decoder.take(bound).read_to_end(&mut out).map_err(failed)?;
        Ok((out.len() <= self.limit).then_some(out))
    }

    fn resolve(&mut self, _: Env, output: Option<Vec<u8>>) -> Result<Option<Buffer>> {
        Ok(output.map(Buffer::from))
    }
}

/// Compresses bytes into one Zstandard frame. They may not be changed meanwhile.
#[napi(catch_unwind, ts_return_type = "Promise<Buffer>")]
pub fn zstd_compress(bytes: Buffer, level: i32) -> AsyncTask<Compression> {
    AsyncTask::new(Compression { bytes, level })
}

/// Decompresses Zstandard frames. Resolves with null when there are more than `limit` bytes in them, of which no more than
/// that are ever held; rejects when they are malformed or cut off, or want a window over 8 MiB.
#[napi(catch_unwind, ts_return_type = "Promise<Buffer | null>")]
pub fn zstd_decompress(bytes: Buffer, limit: u32) -> AsyncTask<Decompression> {
    AsyncTask::new(Decompression { bytes, limit: limit as usize })
}

fn failed(error: std::io::Error) -> Error {
    Error::new(Status::InvalidArg, error.to_string())
}
