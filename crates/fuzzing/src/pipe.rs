//! Named pipes, for tests of what is not to be read.

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Makes a named pipe. Without a program: a child process has the locks of directories until it runs its program, and a test that opens one
/// of them again meanwhile finds it locked.
///
/// # Errors
/// Those of the operating system.
#[expect(unsafe_code, reason = "the standard library makes no named pipes")]
pub fn make_pipe(path: &Path) -> io::Result<()> {
    let name = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: `name` ends with a zero, and lives until the call returns.
    match unsafe { libc::mkfifo(name.as_ptr(), 0o600) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
