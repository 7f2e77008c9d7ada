//! Which instructions `SPARROW_SIMD` asks for, and whether tiles may be used: the head and the forward pass decide it alike.

use std::sync::OnceLock;

/// Names by which `SPARROW_SIMD` asks for other instructions than AMX. A processor with AMX has all of them.
#[cfg(target_arch = "x86_64")]
const WITHOUT_TILES: &[&str] = &["avx512", "avx2", "scalar"];
#[cfg(not(target_arch = "x86_64"))]
const WITHOUT_TILES: &[&str] = &[];

/// What `SPARROW_SIMD` names.
pub(crate) fn wanted() -> Option<String> {
    std::env::var("SPARROW_SIMD").ok().filter(|name| !name.is_empty())
}

/// How the tiles of a processor may be used for a decoder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tiles {
    /// Where they are the faster.
    IfFaster,
    /// `SPARROW_SIMD=amx` asks for them.
    Always,
}

/// How tiles may be used, where the processor and the system have them and they multiply correctly, unless `SPARROW_SIMD` names other
/// instructions.
pub(crate) fn tiles() -> Option<Tiles> {
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    let work = crate::amx::tiles_work;
    #[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
    let work = || false;
    static FOUND: OnceLock<Option<Tiles>> = OnceLock::new();
    *FOUND.get_or_init(|| tiles_for(wanted().as_deref(), work))
}

fn tiles_for(wanted: Option<&str>, work: impl FnOnce() -> bool) -> Option<Tiles> {
    match wanted {
        Some("amx") => {
            let work = work();
            if !work {
                tracing::warn!("SPARROW_SIMD=amx: not on this processor or system");
            }
            work.then_some(Tiles::Always)
        }
        Some(name) if WITHOUT_TILES.contains(&name) => None,
        _ => work().then_some(Tiles::IfFaster),
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    #[test]
    fn tiles_are_used_unless_another_instruction_set_is_named() {
        let how = |wanted| tiles_for(wanted, || true);
        assert_eq!(how(None), Some(Tiles::IfFaster));
        assert_eq!(how(Some("z80")), Some(Tiles::IfFaster));
        assert_eq!(how(Some("amx")), Some(Tiles::Always));
        assert_eq!(how(Some("scalar")), None);
        assert_eq!(how(Some("avx512")), None);
        for wanted in [None, Some("amx"), Some("scalar")] {
            assert!(tiles_for(wanted, || false).is_none());
        }
    }
}
