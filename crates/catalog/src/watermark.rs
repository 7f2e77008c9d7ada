//! Limits for how full a disk may be.

use sparrow_file_system::Space;
use sparrow_wire::size::parse_size;

/// A limit for how full a disk may be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Watermark {
    /// Largest share of the disk that may be used, from 0 to 1; but it is enough if `headroom` bytes are free.
    Used { share: f64, headroom: u64 },
    /// Smallest number of bytes that have to be free.
    Free(u64),
}

impl Watermark {
    /// Reads `95%`, `0.95` or `500mb`; `headroom`, in bytes, is for a share.
    pub fn parse(text: &str, headroom: u64) -> Option<Self> {
        let text = text.trim().to_ascii_lowercase();
        let share = match text.strip_suffix('%') {
            Some(percent) => percent.trim().parse::<f64>().ok().map(|percent| percent / 100.0),
            None => text.parse::<f64>().ok(),
        };
        if let Some(share) = share {
            return (0.0..=1.0).contains(&share).then_some(Self::Used { share, headroom });
        }
        parse_size(&text).map(Self::Free)
    }

    /// The watermark from the settings for a share or size and for a headroom, with `defaults` for those that are not set. The
    /// default headroom does not apply to a share that was set explicitly.
    pub fn chosen(share: Option<&str>, headroom: Option<&str>, defaults: (&str, &str)) -> Option<Self> {
        let headroom = match (share, headroom) {
            (Some(_), None) => None,
            (_, headroom) => Some(headroom.unwrap_or(defaults.1)),
        };
        let bytes = match headroom.and_then(|text| Self::parse(text, 0)) {
            Some(Self::Free(bytes)) => bytes,
            _ => u64::MAX,
        };
        Self::parse(share.unwrap_or(defaults.0), bytes)
    }

    /// Whether the disk is fuller than the watermark allows.
    pub fn is_exceeded(self, space: Space) -> bool {
        match self {
            Self::Used { share, headroom } => {
                let left = ((1.0 - share) * space.total as f64) as u64;
                space.available < left.min(headroom)
            }
            Self::Free(left) => space.available < left,
        }
    }
}

/// The two watermarks that decide whether writes are refused.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Watermarks {
    /// Writes are refused while the disk is fuller than this.
    pub flood_stage: Watermark,
    /// Writes are allowed again once the disk is fuller neither than this nor than the flood stage, which may be set lower.
    pub high: Watermark,
}

impl Watermarks {
    /// Whether writes are refused with so much space; `before` says whether they were.
    pub fn block(self, before: bool, space: Space) -> bool {
        self.flood_stage.is_exceeded(space) || (before && self.high.is_exceeded(space))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_stage_below_the_high_watermark_blocks_and_goes_on_blocking() {
        let used = |share: f64| Space { total: 1000, available: ((1.0 - share) * 1000.0) as u64 };
        let mark = |share| Watermark::Used { share, headroom: u64::MAX };
        let low_flood = Watermarks { flood_stage: mark(0.5), high: mark(0.9) };
        assert!(low_flood.block(false, used(0.6)) && low_flood.block(true, used(0.6)));
        assert!(!low_flood.block(true, used(0.4)));
        let usual = Watermarks { flood_stage: mark(0.95), high: mark(0.9) };
        assert!(!usual.block(false, used(0.92)) && usual.block(true, used(0.92)));
        assert!(usual.block(false, used(0.97)) && !usual.block(true, used(0.8)));
    }

    #[test]
    fn the_default_headroom_is_for_the_default_share() {
        const GB: u64 = 1 << 30;
        let chosen = |share, headroom| Watermark::chosen(share, headroom, ("95%", "1gb"));
        let used = |share, headroom| Some(Watermark::Used { share, headroom });
        assert_eq!(chosen(None, None), used(0.95, GB));
        assert_eq!(chosen(Some("90%"), None), used(0.9, u64::MAX));
        assert_eq!(chosen(Some("90%"), Some("3gb")), used(0.9, 3 * GB));
        assert_eq!(chosen(None, Some("3gb")), used(0.95, 3 * GB));
        assert_eq!(chosen(Some("5gb"), None), Some(Watermark::Free(5 * GB)));
        assert_eq!(chosen(Some("many"), None), None);
    }

    #[test]
    fn watermarks_are_shares_or_bytes_that_are_left() {
        const GB: u64 = 1 << 30;
        let exceeded = |text: &str, available: u64| {
            Watermark::parse(text, GB).unwrap().is_exceeded(Space { total: 100 * GB, available })
        };
        assert!(exceeded("99.5%", GB / 3) && !exceeded("99.5%", GB / 2));
        assert!(exceeded("0.995", GB / 3));
        // The headroom is enough, however large the disk.
        assert!(!exceeded("95%", 2 * GB) && exceeded("95%", GB / 2));
        assert!(exceeded("3gb", 2 * GB) && !exceeded("3gb", 4 * GB));
        for wrong in ["", "101%", "-1%", "many", "5 parsecs"] {
            assert_eq!(Watermark::parse(wrong, GB), None, "{wrong}");
        }
    }
}
