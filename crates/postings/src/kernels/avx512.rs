//! AVX-512 with VBMI, VBMI2 (byte expansion) and VPOPCNTDQ: a group of 64 documents at a time.

use std::arch::asm;
use std::arch::x86_64::*;

use super::avx512_documents as documents;
use super::{
    DenseTerm, GROUP, Implementation, avx2, avx2_blocks, avx2_documents, avx512_blocks, avx512_scores, lane,
};

/// AVX-512 implementation, or `None` if this machine lacks the instructions.
pub(super) fn implementation() -> Option<Implementation> {
    let has = is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512vbmi")
        && is_x86_feature_detected!("avx512vbmi2")
        && is_x86_feature_detected!("avx512vpopcntdq")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("popcnt");
    has.then_some(Implementation {
        name: "avx512",
        scanned_share: 0.16,
        add_dense,
        to_lanes,
        nonzero,
        at_least,
        rank: avx2::rank,
        scatter: avx2::scatter,
        mask,
        mark: avx2::mark,
        bounds: avx512_blocks::bounds,
        wanted_bounds: avx512_blocks::wanted_bounds,
        scopes: true,
        coarse_bounds: avx2_blocks::coarse_bounds,
        start: avx2_blocks::start,
        select: avx512_blocks::select,
        first_highest: avx2_blocks::first_highest,
        find_blocks: avx512_scores::find_blocks,
        add_blocks: avx512_scores::add_blocks,
        count: documents::count,
        find_dense: avx2_documents::find_dense,
        find_sparse: avx2_documents::find_sparse,
        list: documents::list,
        highest: documents::highest,
        bound_documents: documents::bound_documents,
        strict: 8,
    })
}

fn add_dense(sums: &mut [u16], wanted: &[u64], terms: &[DenseTerm<'_>]) {
    // Four terms share a load and a store of the sums; more would run out of registers.
    let (fours, rest) = terms.as_chunks::<4>();
    // SAFETY: implementation() found the instructions; Implementation::add_dense checked that
    // `sums` is whole groups and that every term covers them.
    unsafe {
        fours.iter().for_each(|terms| pass(sums, wanted, terms));
        match rest {
            [a, b, c] => pass(sums, wanted, &[*a, *b, *c]),
            [a, b] => pass(sums, wanted, &[*a, *b]),
            [a] => pass(sums, wanted, &[*a]),
            _ => {}
        }
    }
}

/// # Safety
/// `sums` holds whole groups; every term's bitmap has a word per group and its impacts 64 bytes per
/// group and 64 more.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi2,popcnt,bmi1,bmi2")]
unsafe fn pass<const T: usize>(sums: &mut [u16], wanted: &[u64], terms: &[DenseTerm<'_>; T]) {
    let mut impacts = terms.map(|term| term.impacts.as_ptr());
    let bitmaps = terms.map(|term| term.bitmap.as_ptr().cast::<u64>());
    let factors = terms.map(|term| _mm512_set1_epi16(term.factor as i16));
    let high = _mm512_set1_epi16(0xff00_u16 as i16);
    for (group, (sums, wanted)) in sums.chunks_exact_mut(GROUP).zip(wanted).enumerate() {
        if *wanted == 0 {
            for t in 0..T {
                // SAFETY: as below.
                unsafe {
                    let mask = bitmaps[t].add(group).read_unaligned();
                    impacts[t] = impacts[t].add(mask.count_ones() as usize);
                }
            }
            continue;
        }
        let sums: *mut __m512i = sums.as_mut_ptr().cast();
        // SAFETY: a group is two vectors of 32 lanes; unaligned loads.
        let (mut even, mut odd) = unsafe { (_mm512_loadu_si512(sums), _mm512_loadu_si512(sums.add(1))) };
        for t in 0..T {
            // SAFETY: the caller promises a word per group.
            let mask = unsafe { bitmaps[t].add(group).read_unaligned() };
            // Assembly, for the reason that `x86.rs` gives.
            // Outputs that are not wanted have variables all the same: without a type of 64 bytes they get the name of another
            // register where only the upper half of them is free (Windows, LLVM 22).
            let (_v, _low): (__m512i, __m512i);
            // SAFETY: before group g at most 64·g impacts were consumed, so 64 bytes from here are
            // inside the slice; the instructions were detected; nothing else is touched.
            unsafe {
                asm!(
                    "vmovdqu64 {v}, [{p}]",
                    "vpexpandb {v}{{{k}}}{{z}}, {v}",
                    "vpsllw {low}, {v}, 8",
                    "vpandq {v}, {v}, {high}",
                    "vpmulhuw {low}, {low}, {factor}",
                    "vpmulhuw {v}, {v}, {factor}",
                    "vpaddw {even}, {even}, {low}",
                    "vpaddw {odd}, {odd}, {v}",
                    v = out(zmm_reg) _v,
                    low = out(zmm_reg) _low,
                    k = in(kreg) mask,
                    p = in(reg) impacts[t],
                    high = in(zmm_reg) high,
                    factor = in(zmm_reg) factors[t],
                    even = inout(zmm_reg) even,
                    odd = inout(zmm_reg) odd,
                    options(nostack, readonly, preserves_flags)
                );
                impacts[t] = impacts[t].add(mask.count_ones() as usize);
            }
        }
        // SAFETY: as for the loads.
        unsafe {
            _mm512_storeu_si512(sums, even);
            _mm512_storeu_si512(sums.add(1), odd);
        }
    }
}

fn to_lanes(sums: &[[u16; GROUP]], lanes: &mut [[u16; GROUP]]) {
    // SAFETY: implementation() found the instructions.
    unsafe { even_and_odd(sums, lanes) }
}

#[target_feature(enable = "avx512f,avx512bw")]
fn even_and_odd(sums: &[[u16; GROUP]], lanes: &mut [[u16; GROUP]]) {
    // Where both vectors of a group have the documents of each lane.
    static ORDER: [u16; GROUP] = {
        let mut order = [0; GROUP];
        let mut document = 0;
        while document < GROUP {
            order[lane(document as u16) as usize] = document as u16;
            document += 1;
        }
        order
    };
    // SAFETY: a group is two vectors; unaligned.
    unsafe {
        let load =
            |group: &[u16; GROUP], at: usize| _mm512_loadu_si512(group.as_ptr().cast::<__m512i>().add(at));
        let (even, odd) = (load(&ORDER, 0), load(&ORDER, 1));
        for (sums, lanes) in sums.iter().zip(lanes) {
            let (first, second) = (load(sums, 0), load(sums, 1));
            let lanes: *mut __m512i = lanes.as_mut_ptr().cast();
            _mm512_storeu_si512(lanes, _mm512_permutex2var_epi16(first, even, second));
            _mm512_storeu_si512(lanes.add(1), _mm512_permutex2var_epi16(first, odd, second));
        }
    }
}

fn nonzero(sums: &[u16], bits: &mut [u64]) {
    at_least(sums, 1, bits);
}

fn at_least(sums: &[u16], floor: u16, bits: &mut [u64]) {
    // SAFETY: implementation() found the instructions.
    unsafe { at_least_groups(sums, floor, bits) }
}

#[target_feature(enable = "avx512f,avx512bw,bmi2")]
fn at_least_groups(sums: &[u16], floor: u16, bits: &mut [u64]) {
    let floor = _mm512_set1_epi16(floor as i16);
    for (sums, word) in sums.chunks_exact(GROUP).zip(bits) {
        let sums: *const __m512i = sums.as_ptr().cast();
        // SAFETY: a group is two vectors; unaligned loads.
        let (even, odd) = unsafe { (_mm512_loadu_si512(sums), _mm512_loadu_si512(sums.add(1))) };
        let even = u64::from(_mm512_cmpge_epu16_mask(even, floor));
        let odd = u64::from(_mm512_cmpge_epu16_mask(odd, floor));
        *word = if even | odd == 0 {
            0
        } else {
            _pdep_u64(even, 0x5555_5555_5555_5555) | _pdep_u64(odd, 0xAAAA_AAAA_AAAA_AAAA)
        };
    }
}

fn mask(wanted: &[u8], sums: &mut [u16]) {
    // SAFETY: implementation() found the instructions.
    unsafe { mask_groups(wanted, sums) }
}

#[target_feature(enable = "avx512f,avx512bw")]
fn mask_groups(wanted: &[u8], sums: &mut [u16]) {
    for (bits, sums) in wanted.as_chunks::<4>().0.iter().zip(sums.as_chunks_mut::<32>().0) {
        // SAFETY: 32 sums are a vector; unaligned.
        unsafe {
            let masked = _mm512_maskz_loadu_epi16(u32::from_le_bytes(*bits), sums.as_ptr().cast());
            _mm512_storeu_si512(sums.as_mut_ptr().cast(), masked);
        }
    }
}
