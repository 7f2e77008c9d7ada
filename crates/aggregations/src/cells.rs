//! Grids over the earth: which cell a point is in, and how cells are named (`geohash_grid`, `geotile_grid`).

use std::f64::consts::PI;

use sparrow_mapping::GeoPoint;
use sparrow_query::GeoArea;

/// A division of the earth into cells. A cell is a number: the order of the numbers is Elasticsearch's order of cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cells {
    /// The cells of geohashes with so many digits, from 1 to 12.
    Geohash(u8),
    /// The tiles of a map in Mercator's projection at a level of zoom, from 0 to 29.
    Tiles(u8),
}

impl Cells {
    /// The cell of a point as it is indexed.
    pub fn of(self, encoded: i64) -> u64 {
        match self {
            Cells::Geohash(digits) => {
                let bits = 5 * u32::from(digits);
                // The number of a coordinate counts from the south or west; its first bits are those of the hash.
                let first =
                    |steps: i32, bits: u32| u64::from((steps ^ i32::MIN).cast_unsigned() >> (32 - bits));
                let (east, north) = (bits.div_ceil(2), bits / 2);
                interleaved(first(encoded as i32, east), first((encoded >> 32) as i32, north), bits)
            }
            Cells::Tiles(zoom) => {
                let GeoPoint { lat, lon } = GeoPoint::decoded(encoded);
                let tiles = f64::from(1_u32 << zoom);
                let place = |share: f64| (share * tiles).floor().clamp(0.0, tiles - 1.0) as u64;
                let sine = lat.to_radians().sin();
                let down = 0.5 - ((1.0 + sine) / (1.0 - sine)).ln() / (4.0 * PI);
                place((lon + 180.0) / 360.0) << zoom | place(down)
            }
        }
    }

    /// Name of a cell: a geohash, or `zoom/x/y`.
    pub fn name(self, cell: u64) -> String {
        match self {
            Cells::Geohash(digits) => {
                let (south, west, north, east) = self.edges(cell);
                GeoPoint { lat: f64::midpoint(south, north), lon: f64::midpoint(west, east) }
                    .geohash(usize::from(digits))
            }
            Cells::Tiles(zoom) => format!("{zoom}/{}/{}", cell >> zoom, cell & ((1 << zoom) - 1)),
        }
    }

    /// The number of the tile with this name (`zoom/x/y`); `None` if that is not the name of a tile of this level.
    pub fn tile(self, name: &str) -> Option<u64> {
        let Cells::Tiles(zoom) = self else { return None };
        let parts: Vec<u64> = name.split('/').map(str::parse).collect::<Result<_, _>>().ok()?;
        match parts[..] {
            [level, x, y] if level == u64::from(zoom) && x >> zoom == 0 && y >> zoom == 0 => {
                Some(x << zoom | y)
            }
            _ => None,
        }
    }

    /// Whether a cell and a box have more in common than an edge.
    pub fn meets(self, cell: u64, area: &GeoArea) -> bool {
        let GeoArea::Box { top, left, bottom, right } = *area else { return true };
        let (south, west, north, east) = self.edges(cell);
        let of_longitude = match left <= right {
            true => west < right && east > left,
            false => west < right || east > left,
        };
        south < top && north > bottom && of_longitude
    }

    /// Degrees of the southern, western, northern and eastern edge of a cell.
    fn edges(self, cell: u64) -> (f64, f64, f64, f64) {
        match self {
            Cells::Geohash(digits) => {
                let bits = 5 * u32::from(digits);
                let (x, y) = apart(cell, bits);
                let (wide, high) =
                    (360.0 / f64::from(bits.div_ceil(2)).exp2(), 180.0 / f64::from(bits / 2).exp2());
                let (south, west) = (y as f64 * high - 90.0, x as f64 * wide - 180.0);
                (south, west, south + high, west + wide)
            }
            Cells::Tiles(zoom) => {
                let tiles = f64::from(1_u32 << zoom);
                let (x, y) = ((cell >> zoom) as f64, (cell & ((1 << zoom) - 1)) as f64);
                let latitude = |y: f64| (PI - 2.0 * PI * y / tiles).sinh().atan().to_degrees();
                let longitude = |x: f64| x / tiles * 360.0 - 180.0;
                (latitude(y + 1.0), longitude(x), latitude(y), longitude(x + 1.0))
            }
        }
    }
}

/// The number with so many bits that are in turn those of `x` and of `y`, from the highest, which is of `x`.
fn interleaved(x: u64, y: u64, bits: u32) -> u64 {
    (0..bits)
        .rev()
        .zip([x, y].into_iter().cycle())
        .fold(0, |cell, (left, from)| cell << 1 | (from >> (left / 2) & 1))
}

/// The two numbers of which [`interleaved`] makes one.
fn apart(cell: u64, bits: u32) -> (u64, u64) {
    let (mut x, mut y) = (0, 0);
    for (place, left) in (0..bits).rev().enumerate() {
        let into = if place % 2 == 0 { &mut x } else { &mut y };
        *into = *into << 1 | cell >> left & 1;
    }
    (x, y)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Cells;
    use sparrow_mapping::GeoPoint;
    use sparrow_query::GeoArea;

    fn point() -> impl Strategy<Value = GeoPoint> {
        (-90.0..=90.0, -180.0..=180.0).prop_map(|(lat, lon)| GeoPoint { lat, lon })
    }

    #[test]
    fn places_are_in_the_tiles_of_the_maps() {
        let name = |zoom, lat, lon| {
            let cells = Cells::Tiles(zoom);
            cells.name(cells.of(GeoPoint { lat, lon }.encoded()))
        };
        assert_eq!(name(8, 52.374081, 4.912350), "8/131/84");
        assert_eq!(name(8, 51.222900, 4.405200), "8/131/85");
        assert_eq!(name(8, 48.861111, 2.336389), "8/129/88");
        assert_eq!(name(0, -90.0, 180.0), "0/0/0");
        assert_eq!(name(12, 90.0, 0.0), "12/2048/0");
        assert_eq!(name(29, -90.0, 180.0), "29/536870911/536870911");
        assert_eq!(Cells::Tiles(8).tile("8/131/84"), Some(131 << 8 | 84));
        for wrong in ["7/131/84", "8/256/0", "8/0/256", "8/1", "8/1/2/3", "8/-1/2", "u17"] {
            assert_eq!(Cells::Tiles(8).tile(wrong), None, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn cells_have_the_points_that_are_in_them(point in point(), digits in 1u8..13, zoom in 0u8..30) {
            let kept = GeoPoint::decoded(point.encoded());
            for cells in [Cells::Geohash(digits), Cells::Tiles(zoom)] {
                let cell = cells.of(point.encoded());
                let (south, west, north, east) = cells.edges(cell);
                // The map of tiles ends before the poles: what is beyond is in its outermost rows.
                let last = if matches!(cells, Cells::Tiles(_)) { 85.051_128_779_806_6 } else { 90.0 };
                let latitude = kept.lat.clamp(-last, last);
                let margin = 1e-9;
                prop_assert!(latitude >= south - margin && latitude <= north + margin, "{cells:?}");
                prop_assert!(kept.lon >= west - margin && kept.lon <= east + margin, "{cells:?}");
                let earth = GeoArea::Box { top: 90.0, left: -180.0, bottom: -90.0, right: 180.0 };
                prop_assert!(cells.meets(cell, &earth));
                let beside = GeoArea::Box { top: 90.0, left: east, bottom: -90.0, right: 180.0 };
                prop_assert!(!cells.meets(cell, &beside));
                // Across the 180th meridian: all but what is between.
                let round = GeoArea::Box { top: 90.0, left: east, bottom: -90.0, right: west };
                prop_assert!(!cells.meets(cell, &round));
            }
            let hash = Cells::Geohash(digits);
            prop_assert_eq!(hash.name(hash.of(point.encoded())), kept.geohash(usize::from(digits)));
            let tiles = Cells::Tiles(zoom);
            prop_assert_eq!(tiles.tile(&tiles.name(tiles.of(point.encoded()))), Some(tiles.of(point.encoded())));
        }
    }
}
