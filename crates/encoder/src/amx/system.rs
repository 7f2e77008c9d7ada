//! Whether the processor has AMX for bytes and bf16 and the system lets this process use it.

use std::arch::x86_64::{__cpuid, __cpuid_count, _xgetbv};
use std::sync::OnceLock;

/// Whether this process can use AMX tiles. The first call requests the permission that Linux demands; the answer is
/// kept.
pub(crate) fn allows_tiles() -> bool {
    static ALLOWED: OnceLock<bool> = OnceLock::new();
    *ALLOWED.get_or_init(|| has_tiles() && permitted())
}

/// Whether the processor has AMX-INT8 and AMX-BF16 and the system saves tiles, whether or not this process has asked for permission
/// to use them.
pub(crate) fn has_tiles() -> bool {
    has_instructions() && saves_tiles()
}

/// Whether the processor has AMX-TILE, AMX-INT8 and AMX-BF16 with palette 1: eight tiles of 16 rows × 64 bytes.
#[allow(unused_unsafe, reason = "safe since Rust 1.94")]
fn has_instructions() -> bool {
    // SAFETY: every x86-64 processor has the instruction.
    let leaf = |leaf: u32, part: u32| unsafe { __cpuid_count(leaf, part) };
    // SAFETY: as above.
    let highest = unsafe { __cpuid(0) }.eax;
    if highest < 0x1D || leaf(7, 0).edx >> 22 & 0b1101 != 0b1101 || leaf(0x1D, 0).eax < 1 {
        return false;
    }
    let palette = leaf(0x1D, 1);
    // Tiles of 1,024 bytes; 8 of them, with rows of 64 bytes; 16 rows.
    palette.eax >> 16 == 1024 && palette.ebx == 8 << 16 | 64 && palette.ecx & 0xFFFF == 16
}

/// Whether the system saves the tiles and their configuration with a thread's other registers.
fn saves_tiles() -> bool {
    const TILES: u64 = 0b11 << 17;
    // SAFETY: a system that lets AVX-512 be used has enabled `xgetbv`.
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("xsave")
        && unsafe { _xgetbv(0) } & TILES == TILES
}

/// Requests permission for all threads of this process to use tiles; whether Linux granted it.
fn permitted() -> bool {
    const ARCH_REQ_XCOMP_PERM: libc::c_int = 0x1023;
    const XFEATURE_XTILEDATA: libc::c_ulong = 18;
    // SAFETY: a system call that reads and writes no memory of this process.
    unsafe { libc::syscall(libc::SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0 }
}
