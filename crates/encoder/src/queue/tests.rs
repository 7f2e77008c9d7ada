//! Tests of the queue.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use sparrow_runtime::work;

use super::line::{WINDOW, take_batch};
use super::{BatchLimits, Call, Item, Priority, Queue};
use crate::error::EncoderError;

fn item(length: usize) -> Item {
    Item {
        call: Call::new(vec![None], false),
        slot: 0,
        ids: vec![1; length],
        second: length,
        truncated: 0,
        key: None,
        round: 0,
    }
}

/// So many texts of one call.
fn call_of(count: usize, length: usize) -> Vec<Item> {
    let call = Call::new(vec![None; count], false);
    (0..count).map(|slot| Item { call: call.clone(), slot, ..item(length) }).collect()
}

fn limits(tokens: usize) -> BatchLimits {
    BatchLimits { tokens, workers: 1 }
}

fn take(queue: &Queue) -> Vec<usize> {
    let batch = queue.take(0, |_| limits(1000)).unwrap();
    queue.done();
    batch.iter().map(|item| item.ids.len()).collect()
}

/// A search makes the batches of ingest small for a while.
#[test]
fn it_is_calm_until_a_search_comes() {
    let queue = Queue::new(10, 1);
    let calm = |priority| {
        queue.reserve(1).unwrap().push(vec![item(1)], priority).unwrap();
        let seen = std::cell::Cell::new(None);
        queue.take(0, |context| {
            seen.set(Some(context.calm));
            limits(1000)
        });
        queue.done();
        seen.get().unwrap()
    };
    assert!(calm(Priority::Ingest));
    assert!(!calm(Priority::Search));
    assert!(!calm(Priority::Ingest));
    queue.state.lock().searched = std::time::Instant::now().checked_sub(super::CALM);
    assert!(calm(Priority::Ingest));
    drop(queue.stand_in().unwrap());
    assert!(!calm(Priority::Ingest));
}

proptest! {
    /// Every batch contains the oldest text and fits the token budget, no text is lost, and the remaining ones keep
    /// their order.
    #[test]
    fn batches_drain_the_queue(lengths in prop::collection::vec(1usize..512, 1..400), budget in 1usize..3000, workers in 1usize..5) {
        let mut queue: VecDeque<Item> = lengths.iter().enumerate().map(|(at, length)| Item { slot: at, ..item(*length) }).collect();
        let mut seen = Vec::new();
        while let Some(oldest) = queue.front().map(|item| item.slot) {
            let batch = take_batch(&mut queue, BatchLimits { tokens: budget, workers });
            prop_assert!(batch.iter().any(|item| item.slot == oldest));
            let longest = batch.iter().map(|item| item.ids.len()).max().unwrap();
            prop_assert!(batch.len() == 1 || longest * batch.len() <= budget);
            prop_assert!(queue.iter().is_sorted_by_key(|item| item.slot));
            seen.extend(batch.iter().map(|item| item.slot));
        }
        seen.sort_unstable();
        prop_assert_eq!(seen, (0..lengths.len()).collect::<Vec<_>>());
    }
}

#[test]
fn batches_join_similar_lengths() {
    let mut queue: VecDeque<Item> = [20, 500, 21, 19, 480, 20].into_iter().map(item).collect();
    let batch = take_batch(&mut queue, limits(1000));
    assert_eq!(batch.iter().map(|item| item.ids.len()).collect::<Vec<_>>(), [20, 21, 19, 20]);
    assert_eq!(take_batch(&mut queue, limits(1000)).len(), 2);
}

#[test]
fn work_is_shared_between_workers() {
    let mut queue: VecDeque<Item> = (0..40).map(|_| item(20)).collect();
    assert_eq!(take_batch(&mut queue, BatchLimits { tokens: 4000, workers: 2 }).len(), 20);
    let mut large: VecDeque<Item> = (0..2 * WINDOW).map(|_| item(20)).collect();
    assert!(take_batch(&mut large, limits(1_000_000)).len() == WINDOW);
}

#[test]
fn searches_go_first() {
    let queue = Queue::new(10, 1);
    let mut places = queue.reserve(3).unwrap();
    places.push(vec![item(3), item(3)], Priority::Ingest).unwrap();
    places.push(vec![item(4)], Priority::Search).unwrap();
    assert_eq!(take(&queue), [4]);
    assert_eq!(take(&queue), [3, 3]);
}

/// Somebody who has a thousand texts reranked does not keep waiting who has one, nor do two of them wait for each other.
#[test]
fn calls_take_turns() {
    let queue = Queue::new(100, 1);
    let push = |items| queue.reserve(50).unwrap().push(items, Priority::Search).unwrap();
    // Batches of one text, as they are long.
    let next = || {
        let batch = queue.take(0, |_| limits(1)).unwrap();
        queue.done();
        (batch[0].ids.len(), batch[0].slot)
    };
    push(call_of(4, 10));
    assert_eq!(next(), (10, 0));
    push(call_of(3, 20));
    push(call_of(1, 30));
    let order: Vec<_> = (0..7).map(|_| next()).collect();
    // The texts of a call stay in their order.
    assert_eq!(order, [(10, 1), (20, 0), (30, 0), (10, 2), (20, 1), (10, 3), (20, 2)]);
    // Texts that arrive in several parts belong to one call, and a call that arrives later does not wait for rounds that have
    // been read already.
    let mut many = call_of(4, 10);
    let rest = many.split_off(2);
    push(many);
    push(rest);
    push(call_of(2, 20));
    let order: Vec<_> = (0..6).map(|_| next()).collect();
    assert_eq!(order, [(10, 0), (20, 0), (10, 1), (20, 1), (10, 2), (10, 3)]);
    // Calls of one text that come again and again do not keep those of many from being read.
    push(call_of(3, 10));
    let mut read = Vec::new();
    for _ in 0..6 {
        push(call_of(1, 30));
        read.push(next());
    }
    assert_eq!(read.iter().filter(|(length, _)| *length == 10).count(), 3, "{read:?}");
}

/// Has the thread work for a request of an owner.
fn of_owner(owner: u64) -> work::Entered {
    let memory = Arc::new(work::Memory::new(1 << 30, 1 << 30));
    work::enter(Some(work::Work::new(Arc::default(), memory, "<test>").of(owner)))
}

/// A key with very many calls does not keep another one waiting that has one.
#[test]
fn owners_take_turns() {
    let queue = Queue::new(100, 1);
    let push = |owner: u64, length: usize| {
        let _entered = of_owner(owner);
        queue.reserve(2).unwrap().push(call_of(2, length), Priority::Search).unwrap();
    };
    let next = || {
        let batch = queue.take(0, |_| limits(1)).unwrap();
        queue.done();
        batch[0].ids.len()
    };
    (0..10).for_each(|_| push(1, 10));
    assert_eq!(next(), 10);
    push(2, 20);
    push(3, 30);
    assert_eq!([next(), next(), next(), next(), next(), next()], [20, 30, 10, 20, 30, 10]);
    // Two that ask again and again are not new each time.
    push(2, 20);
    assert_eq!([next(), next()], [20, 10]);
    push(3, 30);
    assert_eq!([next(), next(), next(), next()], [30, 20, 10, 30]);
    assert_eq!(queue.pending(), 15);
}

/// What a key has sent that fills the queue is no reason to refuse another one that has little.
#[test]
fn an_owner_of_few_finds_room_in_a_full_queue() {
    let queue = Queue::new(100, 1);
    let reserve = |owner: u64, count: usize| {
        let _entered = of_owner(owner);
        let places = queue.reserve(count);
        places.map(|mut places| places.push(call_of(count, 10), Priority::Search).unwrap()).is_ok()
    };
    assert!(reserve(1, 100));
    assert!(!reserve(1, 1), "it has filled the queue");
    assert!(!reserve(0, 1), "nobody in particular has no part of its own");
    assert!(reserve(2, 10));
    assert!(!reserve(2, 10), "more than a few");
    assert!(reserve(2, 6) && !reserve(2, 1));
    assert!(!reserve(3, 17) && reserve(3, 9));
    assert!(!reserve(4, 1), "a quarter more is all");
}

#[test]
fn a_full_queue_takes_nothing() {
    let queue = Queue::new(3, 1);
    let mut places = queue.reserve(2).unwrap();
    assert!(matches!(queue.reserve(2), Err(EncoderError::QueueFull { capacity: 3, requested: 2 })));
    drop(queue.reserve(1).unwrap());
    places.push(vec![item(1), item(1)], Priority::Ingest).unwrap();
    drop(places);
    assert_eq!(queue.pending(), 2);
    assert!(queue.reserve(2).is_err());
    take(&queue);
    assert!(queue.reserve(3).is_ok());
    assert_eq!(queue.pending(), 0);
}

#[test]
fn paced_work_leaves_room_and_waits() {
    let queue = Queue::new(8, 1);
    let soon = Duration::from_millis(1);
    let paced = queue.reserve_paced(4, soon).unwrap();
    assert!(paced.is_some());
    assert!(queue.reserve_paced(1, soon).unwrap().is_none());
    assert!(queue.reserve(4).is_ok());
    drop(paced);
    assert!(queue.reserve_paced(1, soon).unwrap().is_some());
    let narrow = Queue::new(1, 1);
    assert!(narrow.reserve_paced(narrow.paced_chunk(), soon).unwrap().is_some());
}

#[test]
fn withdrawn_calls_take_their_work_with_them() {
    let queue = Queue::new(8, 1);
    let mut places = queue.reserve(3).unwrap();
    let (gone, stays) = (item(5), item(6));
    let call = gone.call.clone();
    places.push(vec![gone, stays], Priority::Ingest).unwrap();
    assert_eq!(queue.withdraw(&call), 1);
    assert!(call.is_abandoned());
    assert_eq!(take(&queue), [6]);
}

#[test]
fn stopping_fails_what_waits_and_sends_workers_away() {
    let queue = Queue::new(8, 1);
    let mut places = queue.reserve(2).unwrap();
    let waiting = item(5);
    let call = waiting.call.clone();
    places.push(vec![waiting], Priority::Search).unwrap();
    queue.stop();
    assert!(matches!(places.push(vec![item(1)], Priority::Search), Err(EncoderError::Stopped)));
    assert!(matches!(call.wait(Duration::ZERO), Some(Err(EncoderError::Stopped))));
    assert!(queue.take(0, |_| limits(10)).is_none());
    assert!(matches!(queue.reserve(1), Err(EncoderError::Stopped)));
}

#[test]
fn a_caller_stands_in_for_an_idle_worker_only() {
    let queue = Queue::new(8, 1);
    let place = queue.stand_in().unwrap();
    assert!(place.is_some());
    assert!(queue.stand_in().unwrap().is_none(), "there is one worker");
    drop(place);
    queue.reserve(1).unwrap().push(vec![item(3)], Priority::Ingest).unwrap();
    assert!(queue.stand_in().unwrap().is_none(), "others came first");
    assert_eq!(take(&queue), [3]);
    assert!(queue.stand_in().unwrap().is_some());
    queue.stop();
    assert!(matches!(queue.stand_in(), Err(EncoderError::Stopped)));
}

#[test]
fn surplus_workers_leave() {
    let queue = Queue::new(8, 2);
    queue.set_workers(1);
    assert!(queue.take(1, |_| limits(10)).is_none());
}
