//! Eight tiles of palette 1 and what the instructions do with them, by the pseudo code of Intel's manual.

const ROWS: usize = 16;
const ROW_BYTES: usize = 64;
const TILES: usize = 8;

/// Message of the exception (`#GP`, `#UD`) that a processor would raise.
pub(in super::super) type Fault = &'static str;

/// The registers of one thread.
pub(in super::super) struct Tiles {
    /// Tile configuration as `sttilecfg` stores it; all zero if tiles are not configured.
    config: [u8; 64],
    pub(in super::super) data: [[[u8; ROW_BYTES]; ROWS]; TILES],
    /// Error added to each dot product, which simulates a defective processor; normally 0.
    pub(in super::super) wrong: i32,
}

impl Tiles {
    pub(in super::super) const INIT: Self =
        Self { config: [0; 64], data: [[[0; ROW_BYTES]; ROWS]; TILES], wrong: 0 };

    fn rows(&self, tile: usize) -> usize {
        usize::from(self.config[48 + tile])
    }

    fn row_bytes(&self, tile: usize) -> usize {
        usize::from(u16::from_le_bytes([self.config[16 + 2 * tile], self.config[17 + 2 * tile]]))
    }

    /// Executes `ldtilecfg`.
    pub(in super::super) fn configure(&mut self, config: [u8; 64]) -> Result<(), Fault> {
        let wrong = self.wrong;
        if config[0] == 0 {
            self.release();
            return Ok(());
        }
        if config[0] != 1 {
            return Err("#GP: a palette that there is not");
        }
        if config[2..16].iter().chain(&config[32..48]).chain(&config[56..]).any(|byte| *byte != 0) {
            return Err("#GP: a reserved byte of a configuration is set");
        }
        let new = Self { config, wrong, ..Self::INIT };
        for tile in 0..TILES {
            let (rows, bytes) = (new.rows(tile), new.row_bytes(tile));
            if rows > ROWS || bytes > ROW_BYTES || (rows == 0) != (bytes == 0) {
                return Err("#GP: a tile of a shape that there is not");
            }
        }
        *self = new;
        Ok(())
    }

    /// Executes `sttilecfg`.
    pub(in super::super) fn config(&self) -> [u8; 64] {
        self.config
    }

    /// Executes `tilerelease`.
    pub(in super::super) fn release(&mut self) {
        *self = Self { wrong: self.wrong, ..Self::INIT };
    }

    fn valid(&self, tiles: &[usize]) -> Result<(), Fault> {
        if self.config[0] == 0 {
            return Err("#UD: tiles are not configured");
        }
        if tiles.iter().any(|tile| self.rows(*tile) == 0) {
            return Err("#UD: the tile is not configured");
        }
        Ok(())
    }

    /// Executes `tilezero`.
    pub(in super::super) fn zero(&mut self, tile: usize) -> Result<(), Fault> {
        self.valid(&[tile])?;
        self.data[tile] = [[0; ROW_BYTES]; ROWS];
        self.config[1] = 0;
        Ok(())
    }

    /// Executes `tileloadd`: fills a tile with rows that are `stride` bytes apart.
    ///
    /// # Safety
    /// As many rows as are configured can be read.
    pub(in super::super) unsafe fn load(
        &mut self,
        tile: usize,
        from: *const u8,
        stride: isize,
    ) -> Result<(), Fault> {
        self.valid(&[tile])?;
        let (first, rows, bytes) = (usize::from(self.config[1]), self.rows(tile), self.row_bytes(tile));
        for row in first..rows {
            let out = &mut self.data[tile][row];
            // SAFETY: the caller's promise.
            unsafe { from.wrapping_offset(row as isize * stride).copy_to(out.as_mut_ptr(), bytes) };
            out[bytes..].fill(0);
        }
        self.data[tile][rows..].fill([0; ROW_BYTES]);
        self.config[1] = 0;
        Ok(())
    }

    /// Executes `tilestored`: writes a tile as rows that are `stride` bytes apart.
    ///
    /// # Safety
    /// As many rows as are configured can be written.
    pub(in super::super) unsafe fn store(
        &mut self,
        tile: usize,
        to: *mut u8,
        stride: isize,
    ) -> Result<(), Fault> {
        self.valid(&[tile])?;
        for row in usize::from(self.config[1])..self.rows(tile) {
            let (to, bytes) = (to.wrapping_offset(row as isize * stride), self.row_bytes(tile));
            // SAFETY: the caller's promise.
            unsafe { to.copy_from(self.data[tile][row].as_ptr(), bytes) };
        }
        self.config[1] = 0;
        Ok(())
    }

    /// What the instructions that multiply have in common: rows of sums, their bytes, and the bytes of a row of `left`.
    fn shapes(&self, sum: usize, left: usize, right: usize) -> Result<[usize; 3], Fault> {
        self.valid(&[sum, left, right])?;
        if sum == left || sum == right || left == right {
            return Err("#UD: a tile is named twice");
        }
        let (rows, columns, depth) = (self.rows(sum), self.row_bytes(sum), self.row_bytes(left));
        if !columns.is_multiple_of(4) || !depth.is_multiple_of(4) {
            return Err("#UD: a row is not a whole number of four bytes");
        }
        if self.rows(left) != rows || self.row_bytes(right) != columns || self.rows(right) != depth / 4 {
            return Err("#UD: the tiles' shapes do not fit");
        }
        Ok([rows, columns, depth])
    }

    /// Executes `tdpbusd`: adds products of the unsigned bytes of `left` and the signed bytes of `right` to the tile
    /// `sum`.
    pub(in super::super) fn multiply(&mut self, sum: usize, left: usize, right: usize) -> Result<(), Fault> {
        let [rows, columns, depth] = self.shapes(sum, left, right)?;
        let (a, b) = (self.data[left], self.data[right]);
        for (row, out) in self.data[sum].iter_mut().enumerate() {
            let mut all = [0i32; ROW_BYTES / 4];
            if row < rows {
                for (all, old) in all[..columns / 4].iter_mut().zip(out.as_chunks().0) {
                    *all = i32::from_le_bytes(*old).wrapping_add(self.wrong);
                }
                for (four, b) in a[row].as_chunks::<4>().0[..depth / 4].iter().zip(&b) {
                    for (all, b) in all[..columns / 4].iter_mut().zip(b.as_chunks::<4>().0) {
                        let products = four.iter().zip(b).map(|(a, b)| i32::from(*a) * i32::from(*b as i8));
                        *all = all.wrapping_add(products.sum());
                    }
                }
            }
            for (out, all) in out.as_chunks_mut().0.iter_mut().zip(all) {
                *out = all.to_le_bytes();
            }
        }
        self.config[1] = 0;
        Ok(())
    }

    /// Executes `tdpbf16ps`: adds products of the numbers of bf16 of `left` and `right` to the floats of the tile `sum`. Numbers that are not
    /// normal count as 0, before and after.
    pub(in super::super) fn multiply_floats(
        &mut self,
        sum: usize,
        left: usize,
        right: usize,
    ) -> Result<(), Fault> {
        let [rows, columns, depth] = self.shapes(sum, left, right)?;
        let (a, b) = (self.data[left], self.data[right]);
        for (row, out) in self.data[sum].iter_mut().enumerate() {
            let mut all = [0f32; ROW_BYTES / 4];
            if row < rows {
                for (column, (all, old)) in all[..columns / 4].iter_mut().zip(out.as_chunks().0).enumerate() {
                    let mut halves = [0f32; 2];
                    for (a, b) in a[row].as_chunks::<4>().0[..depth / 4].iter().zip(&b) {
                        let b = b.as_chunks::<4>().0[column];
                        for (half, sum) in halves.iter_mut().enumerate() {
                            let number = |four: &[u8; 4]| {
                                normal(f32::from_bits(u32::from_le_bytes([
                                    0,
                                    0,
                                    four[2 * half],
                                    four[2 * half + 1],
                                ])))
                            };
                            *sum = normal(number(a).mul_add(number(&b), *sum));
                        }
                    }
                    let old = normal(f32::from_le_bytes(*old));
                    *all = normal(old + normal(halves[0] + halves[1])) + self.wrong as f32;
                }
            }
            for (out, all) in out.as_chunks_mut().0.iter_mut().zip(all) {
                *out = all.to_le_bytes();
            }
        }
        self.config[1] = 0;
        Ok(())
    }
}

/// 0 for a number that is not normal.
fn normal(number: f32) -> f32 {
    if number.is_subnormal() { 0.0f32.copysign(number) } else { number }
}
