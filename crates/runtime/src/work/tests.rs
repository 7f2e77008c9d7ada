use std::alloc::System;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::process::live;
use super::*;

#[global_allocator]
static ALLOCATOR: Counted<System> = Counted(System);

const MB: usize = 1 << 20;

/// Serialises the tests, since what the process has allocated is one figure.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn work(memory: &Arc<Memory>) -> Work {
    Work::new(Arc::default(), Arc::clone(memory), "<test>")
}

fn exceeded_memory(result: Result<(), Stopped>) -> TooMuch {
    match result {
        Err(Stopped::Exceeded(Exceeded::Memory(limit))) => limit,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_request_pays_for_what_its_threads_allocate_and_not_for_what_they_freed() {
    let _alone = alone();
    let memory = Arc::new(Memory::new(usize::MAX, 4 * MB));
    let request = work(&memory);
    {
        let _entered = enter(Some(request.clone()));
        let first = vec![0_u8; 2 * MB];
        assert!((2 * MB..3 * MB).contains(&request.used()), "{}", request.used());
        std::thread::scope(|scope| {
            let helper = scope.spawn(|| {
                let _entered = enter(Some(request.clone()));
                vec![0_u8; MB + 1000]
            });
            let theirs = helper.join().unwrap();
            assert!((3 * MB..4 * MB).contains(&request.used()), "{}", request.used());
            assert_eq!(check(), Ok(()));
            drop(theirs);
        });
        drop(first);
        assert!(request.used() < MB, "{}", request.used());
        for _ in 0..100 {
            drop(vec![0_u8; 3 * MB]);
        }
        assert_eq!(check(), Ok(()), "never more than the limit at once");
    }
    drop(request);
    let figures = memory.figures();
    assert_eq!((figures.used, figures.request_tripped, figures.total_tripped), (0, 0, 0));
}

#[test]
fn many_small_allocations_count_as_a_large_one_does() {
    let _alone = alone();
    let memory = Arc::new(Memory::new(usize::MAX, 2 * MB));
    let _entered = enter(Some(work(&memory)));
    let mut small: Vec<Box<[u8; 100]>> = Vec::new();
    while check().is_ok() {
        small.push(Box::new([0; 100]));
        assert!(small.len() < 40_000, "it never stops");
    }
    let limit = exceeded_memory(check());
    assert_eq!((limit.limit_of, limit.limit), ("request", 2 * MB as u64));
    drop(small);
    assert!(is_stopped(), "what was exceeded once stays so, as results are not complete any more");
    assert_eq!(memory.figures().request_tripped, 1);
}

#[test]
fn the_sentence_is_that_of_elasticsearch() {
    let _alone = alone();
    let memory = Arc::new(Memory::new(usize::MAX, 4000));
    let _entered = enter(Some(work(&memory)));
    let limit = exceeded_memory(room_for(4_500_000));
    let text = limit.to_string();
    let start = "[request] Data too large, data for [<test>] would be [45";
    assert!(text.starts_with(start), "{text}");
    assert!(text.ends_with("/4.2mb], which is larger than the limit of [4000/3.9kb]"), "{text}");
}

#[test]
fn freeing_what_others_allocated_gives_no_more_room() {
    let _alone = alone();
    let others = vec![0_u8; 8 * MB];
    let memory = Arc::new(Memory::new(usize::MAX, 4 * MB));
    let _entered = enter(Some(work(&memory)));
    drop(others);
    let _mine = vec![0_u8; 5 * MB];
    assert!(check().is_err());
}

#[test]
fn what_is_left_behind_is_nobodys() {
    let _alone = alone();
    let memory = Arc::new(Memory::new(usize::MAX, 4 * MB));
    let request = work(&memory);
    let _entered = enter(Some(request.clone()));
    let kept = {
        let _nobody = leave_behind();
        vec![0_u8; 5 * MB]
    };
    assert!(request.used() < MB && check().is_ok() && kept.len() == 5 * MB);
}

#[test]
fn what_was_made_since_a_mark_is_handed_over() {
    let _alone = alone();
    let memory = Arc::new(Memory::new(usize::MAX, 4 * MB));
    let request = work(&memory);
    let _entered = enter(Some(request.clone()));
    let _own = vec![0_u8; MB];
    let mut kept = Vec::new();
    for _ in 0..10 {
        let mark = mark();
        kept.push(vec![0_u8; MB]);
        mark.hand_over(1000);
    }
    assert!((MB..2 * MB).contains(&request.used()) && check().is_ok(), "{}", request.used());
}

#[test]
fn the_process_has_a_limit_that_small_requests_do_not_feel() {
    let _alone = alone();
    let before = vec![0_u8; 30 * MB];
    assert!(live() >= 29 * MB, "{}", live());
    let memory = Arc::new(Memory::new(20 * MB, 100 * MB));
    let small = work(&memory);
    {
        let _entered = enter(Some(small));
        let _mine = vec![0_u8; MB / 2];
        assert_eq!((check(), room_for(MB / 4)), (Ok(()), Ok(())));
    }
    let _entered = enter(Some(work(&memory)));
    let _mine = vec![0_u8; 2 * MB];
    assert_eq!(exceeded_memory(check()).limit_of, "parent");
    assert_eq!((memory.figures().total_tripped, memory.figures().request_tripped), (1, 0));
    drop(before);
}

#[test]
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "memory that the process has and that is not counted")]
fn what_the_system_counts_has_a_limit_too() {
    use std::alloc::{GlobalAlloc as _, Layout};

    let _alone = alone();
    let total = live() + 20 * MB;
    let watched = Arc::new(Memory::new(total, 100 * MB).watched());
    let unwatched = Arc::new(Memory::new(total, 100 * MB));
    let refused = |memory: &Arc<Memory>| {
        let _entered = enter(Some(work(memory)));
        let _mine = vec![0_u8; 12 * MB];
        // A reading is good for 1 MiB.
        (0..5).map(|_| room_for(MB)).find(Result::is_err)
    };
    assert_eq!((refused(&watched), refused(&unwatched)), (None, None));
    let layout = Layout::from_size_align(400 * MB, 4096).unwrap();
    // SAFETY: the memory is written to within its size, and given back once.
    let elsewhere = unsafe {
        let memory = System.alloc(layout);
        memory.write_bytes(1, layout.size());
        memory
    };
    let limit = exceeded_memory(refused(&watched).expect("the limit is met"));
    assert_eq!((limit.limit_of, limit.limit), ("parent", (total + total / 6 + 160 * MB) as u64));
    assert!(limit.wanted > 400 * MB as u64, "{}", limit.wanted);
    assert_eq!(refused(&unwatched), None);
    assert_eq!((watched.is_kept_unused(), unwatched.is_kept_unused()), (true, false));
    // SAFETY: as above.
    unsafe { System.dealloc(elsewhere, layout) };
    assert_eq!(refused(&watched), None, "it is looked at again");
    assert!(!watched.is_kept_unused());
}

#[test]
fn an_allocation_is_refused_before_it_is_made() {
    let _alone = alone();
    let memory = Arc::new(Memory::new(usize::MAX, 4 * MB));
    let request = work(&memory);
    let _entered = enter(Some(request.clone()));
    let _mine = vec![0_u8; 2 * MB];
    assert_eq!(room_for(MB), Ok(()));
    assert_eq!(exceeded_memory(room_for(3 * MB)).limit_of, "request");
    assert!(request.used() < 3 * MB);
    assert!(exceeded_memory(room_for(usize::MAX)).wanted > 0, "sums do not overflow");
}

#[test]
fn an_output_ends_with_the_room_of_its_request() {
    use std::io::Write;

    let _alone = alone();
    let memory = Arc::new(Memory::new(usize::MAX, 4 * MB));
    let _entered = enter(Some(work(&memory)));
    let mut bytes = Vec::new();
    let mut output = Output::new(&mut bytes);
    let written = (0..100_000).take_while(|_| output.write_all(&[b'x'; 100]).is_ok()).count();
    assert_eq!(bytes.len(), written * 100);
    assert!((MB..4 * MB).contains(&bytes.len()), "{}", bytes.len());
    assert_eq!(exceeded_memory(check()).limit_of, "request");
}

#[test]
fn a_part_of_a_request_fails_by_itself() {
    let _alone = alone();
    let memory = Arc::new(Memory::new(usize::MAX, 4 * MB));
    let request = work(&memory);
    let _entered = enter(Some(request.clone()));
    {
        let part = request.part();
        let _entered = enter(Some(part.clone()));
        drop(vec![0_u8; 5 * MB]);
        assert!(check().is_err() && part.exceeded().is_some());
    }
    assert_eq!(check(), Ok(()));
    let _entered = enter(Some(request.part()));
    assert_eq!(check(), Ok(()));
}

#[test]
fn what_is_held_outside_of_the_allocator_counts() {
    let _alone = alone();
    let memory = Arc::new(Memory::new(usize::MAX, 4 * MB));
    let request = work(&memory);
    let held = request.hold_outside(3 * MB);
    assert!(memory.figures().used >= 3 * MB && memory.figures().allocated >= 3 * MB);
    drop(held);
    assert_eq!(request.used(), 0);
    let _held = request.hold_outside(5 * MB);
    assert!(request.exceeded().is_some());
}

#[test]
fn threads_that_end_leave_nothing_unsettled() {
    let _alone = alone();
    let turn = || {
        for _ in 0..200 {
            let kept = std::thread::spawn(|| vec![0_u8; 50_000]).join().unwrap();
            drop(kept);
        }
    };
    turn();
    let before = live();
    turn();
    // Lost, each thread's would be 50,000 bytes.
    assert!(live().abs_diff(before) < 4 * MB, "{before} became {}", live());
}

#[test]
fn the_patterns_of_a_request_have_one_effort_over_all_its_threads() {
    let _alone = alone();
    let memory = Arc::new(Memory::new(usize::MAX, usize::MAX));
    let one = work(&memory);
    assert_eq!((spend(u64::MAX), exceeded()), (Ok(()), None), "nobody's request has no limit");
    let _entered = enter(Some(one.clone()));
    assert_eq!(spend(MOST_EFFORT - 1), Ok(()));
    let other = std::thread::spawn(move || {
        let _entered = enter(Some(one));
        assert_eq!(spend(2), Err(TooMuchEffort));
        note(TooMuchEffort);
    });
    other.join().unwrap();
    assert_eq!((spend(0), exceeded()), (Err(TooMuchEffort), Some(Exceeded::Effort(TooMuchEffort))));
    assert_eq!(check(), Err(Stopped::Exceeded(Exceeded::Effort(TooMuchEffort))));
    let _entered = enter(Some(work(&memory)));
    assert_eq!((spend(1), exceeded()), (Ok(()), None), "another request begins anew");
}

#[test]
fn a_thread_works_on_what_it_entered_last() {
    let _alone = alone();
    let memory = Arc::new(Memory::new(usize::MAX, usize::MAX));
    let flag = Arc::new(AtomicBool::new(false));
    assert_eq!((check(), room_for(usize::MAX)), (Ok(()), Ok(())), "nobody's request has no limit");
    let outer = enter(Some(work(&memory)));
    let inner = stopped_by(&flag);
    flag.store(true, Relaxed);
    assert_eq!(check(), Err(Stopped::Cancelled));
    drop(inner);
    assert_eq!(check(), Ok(()));
    drop(outer);
    assert!(current().is_none());
}
