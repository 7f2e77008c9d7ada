//! The encodings of the AMX instructions that the kernels use: VEX.128.0F38.W0 with the opcodes 49, 4B, 5C and 5E.

/// One decoded AMX instruction: tile numbers and memory addresses of its operands.
#[derive(Debug, PartialEq)]
pub(in super::super) enum Instruction {
    LoadConfig(*const u8),
    StoreConfig(*mut u8),
    Release,
    Zero(usize),
    /// `tileloadd`: number of the tile, address of the first row, and bytes from one row to the next.
    /// [`Instruction::Store`] likewise.
    Load(usize, *const u8, isize),
    Store(usize, *mut u8, isize),
    /// `tdpbusd`: numbers of the tiles of sums, of unsigned bytes and of signed bytes.
    Multiply(usize, usize, usize),
    /// `tdpbf16ps`: numbers of the tiles of sums, and of the two tiles of bf16.
    MultiplyFloats(usize, usize, usize),
}

/// Indexes of the general registers in the signal context's array, by the number that instructions encode them with.
const REGISTERS: [libc::c_int; 16] = [
    libc::REG_RAX,
    libc::REG_RCX,
    libc::REG_RDX,
    libc::REG_RBX,
    libc::REG_RSP,
    libc::REG_RBP,
    libc::REG_RSI,
    libc::REG_RDI,
    libc::REG_R8,
    libc::REG_R9,
    libc::REG_R10,
    libc::REG_R11,
    libc::REG_R12,
    libc::REG_R13,
    libc::REG_R14,
    libc::REG_R15,
];

/// A memory operand in bytes: its address without the index register, and the index register times its scale.
struct Place {
    base: usize,
    index: usize,
    /// Whether the encoding has a SIB byte, which `tileloadd` and `tilestored` require.
    indexed: bool,
}

/// Decodes the instruction at an address; also the address after it. `None` if it is not one of [`Instruction`].
///
/// # Safety
/// `at` points to readable code that starts with a whole instruction. No byte beyond it is read.
pub(in super::super) unsafe fn decode(at: usize, registers: &[i64; 23]) -> Option<(Instruction, usize)> {
    let mut next = at;
    let mut byte = || {
        // SAFETY: a byte of the instruction, by the caller's promise, as long as those before fit.
        let byte = unsafe { (next as *const u8).read() };
        next += 1;
        byte
    };
    if byte() != 0xC4 {
        return None;
    }
    // Bits are stored inverted.
    let first = !byte();
    if first & 0b1_1111 != 0b1_1101 {
        return None;
    }
    let (r, x, b) = (first >> 7, first >> 6 & 1, first >> 5 & 1);
    let second = byte();
    let (wide, third, long, prefix) = (second >> 7, !second >> 3 & 15, second >> 2 & 1, second & 3);
    let opcode = byte();
    // There are eight tiles.
    if wide != 0 || long != 0 || r != 0 || !matches!(opcode, 0x49 | 0x4B | 0x5C | 0x5E) {
        return None;
    }
    let operands = byte();
    let (mode, tile, other) = (operands >> 6, usize::from(operands >> 3 & 7), operands & 7);
    if mode == 3 {
        return match (opcode, prefix) {
            (0x49, 0) if operands == 0xC0 && third == 0 => Some((Instruction::Release, next)),
            (0x49, 3) if other == 0 && third == 0 => Some((Instruction::Zero(tile), next)),
            (0x5E, 1) if b == 0 && third < 8 => {
                Some((Instruction::Multiply(tile, usize::from(other), usize::from(third)), next))
            }
            (0x5C, 2) if b == 0 && third < 8 => {
                Some((Instruction::MultiplyFloats(tile, usize::from(other), usize::from(third)), next))
            }
            _ => None,
        };
    }
    if third != 0 {
        return None;
    }
    let register = |number: u8| registers[REGISTERS[usize::from(number)] as usize] as usize;
    let mut place = Place { base: 0, index: 0, indexed: other == 4 };
    let mut relative = false;
    let mut no_base = false;
    if place.indexed {
        let sib = byte();
        let index = sib >> 3 & 7 | x << 3;
        if index != 4 {
            place.index = register(index) << (sib >> 6);
        }
        no_base = mode == 0 && sib & 7 == 5;
        if !no_base {
            place.base = register(sib & 7 | b << 3);
        }
    } else if mode == 0 && other == 5 {
        relative = true;
    } else {
        place.base = register(other | b << 3);
    }
    let offset = if mode == 1 {
        isize::from(byte() as i8)
    } else if mode == 2 || no_base || relative {
        i32::from_le_bytes([byte(), byte(), byte(), byte()]) as isize
    } else {
        0
    };
    if relative {
        place.base = next;
    }
    place.base = place.base.wrapping_add_signed(offset);
    let all = place.base.wrapping_add(place.index);
    let instruction = match (opcode, prefix) {
        (0x49, 0) if tile == 0 => Instruction::LoadConfig(all as *const u8),
        (0x49, 1) if tile == 0 => Instruction::StoreConfig(all as *mut u8),
        (0x4B, 3) if place.indexed => Instruction::Load(tile, place.base as *const u8, place.index as isize),
        (0x4B, 2) if place.indexed => Instruction::Store(tile, place.base as *mut u8, place.index as isize),
        _ => return None,
    };
    Some((instruction, next))
}
