//! Zstandard for bodies of requests and answers: the oldest Node.js that is supported has no codec of its own. Both
//! directions run on libuv's threads, as Node's own gzip does, so the event loop never waits.

use std::io::{Cursor, Read};
use std::sync::Arc;

use napi::bindgen_prelude::{AsyncTask, Buffer};
use napi::{Env, Error, Result, Status, Task};
use napi_derive::napi;
use parking_lot::Mutex;
use zstd::stream::read::Decoder;

/// Largest window size of a frame that is decompressed, as a power of two in bytes: what RFC 8878 recommends as the least to
/// support, and what levels up to 19 need. A frame may ask for far more memory than it has content.
const WINDOW_LOG_MAX: u32 = 23;

/// Most bytes that are decompressed at once.
const PIECE: usize = 256 * 1024;

/// Compression of bytes into one Zstandard frame, as a task for libuv's threads.
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

/// The frames that are still to be decompressed; none once they have ended, failed, or were closed.
type Frames = Arc<Mutex<Option<Decoder<'static, Cursor<Buffer>>>>>;

/// Decompression of the next 256 KiB of frames, as a task for libuv's threads.
pub struct Decompression(Frames);

impl Task for Decompression {
    type Output = Option<Vec<u8>>;
    type JsValue = Option<Buffer>;

    fn compute(&mut self) -> Result<Option<Vec<u8>>> {
        let mut frames = self.0.lock();
        let Some(decoder) = frames.as_mut() else { return Ok(None) };
        let mut piece = Vec::with_capacity(PIECE);
        let read = decoder.take(PIECE as u64).read_to_end(&mut piece);
        if piece.is_empty() || read.is_err() {
            *frames = None;
        }
        read.map(|bytes| (bytes > 0).then_some(piece)).map_err(failed)
    }

    fn resolve(&mut self, _: Env, output: Option<Vec<u8>>) -> Result<Option<Buffer>> {
        Ok(output.map(Buffer::from))
    }
}

/// Decompresses Zstandard frames in pieces, so that somebody can stop when there are too many.
#[napi]
pub struct ZstdReader {
    frames: Frames,
}

#[napi]
impl ZstdReader {
    /// Begins with frames, which may not be changed until they are read or closed.
    #[napi(constructor, catch_unwind)]
    pub fn new(bytes: Buffer) -> Result<Self> {
        let mut decoder = Decoder::with_buffer(Cursor::new(bytes)).map_err(failed)?;
        decoder.window_log_max(WINDOW_LOG_MAX).map_err(failed)?;
        Ok(Self { frames: Arc::new(Mutex::new(Some(decoder))) })
    }

    /// Resolves with up to 256 KiB, or with null when there are no more; rejects when the frames are malformed or cut off, or
    /// want a window over 8 MiB. The next piece may be asked for when this one is there.
    #[napi(catch_unwind, ts_return_type = "Promise<Buffer | null>")]
    pub fn next(&self) -> AsyncTask<Decompression> {
        AsyncTask::new(Decompression(Arc::clone(&self.frames)))
    }

    /// Lets go of the frames and of the memory for them.
    #[napi(catch_unwind)]
    pub fn close(&self) {
        *self.frames.lock() = None;
    }
}

/// Compresses bytes into one Zstandard frame. They may not be changed meanwhile.
#[napi(catch_unwind, ts_return_type = "Promise<Buffer>")]
pub fn zstd_compress(bytes: Buffer, level: i32) -> AsyncTask<Compression> {
    AsyncTask::new(Compression { bytes, level })
}

fn failed(error: std::io::Error) -> Error {
    Error::new(Status::InvalidArg, error.to_string())
}
