//! Collects deprecation warnings of a request; the HTTP layer sends each as a `Warning` header.
//!
//! A request runs on one thread, so warnings are collected per thread: no parser needs an extra parameter,
//! and a request without warnings costs nothing. Operations that use several threads (`_msearch`) transfer
//! their warnings with [`take`] and [`add`].

use std::cell::RefCell;

/// Most warnings of one request, as the size of headers is limited.
const MOST: usize = 32;

thread_local! {
    static SAID: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// Adds a warning about a deprecated form to the running request, unless it already has the same one.
pub fn warn(sentence: impl Into<String>) {
    let sentence = sentence.into();
    SAID.with_borrow_mut(|said| {
        if said.len() < MOST && !said.contains(&sentence) {
            said.push(sentence);
        }
    });
}

/// Removes and returns the warnings of the current thread.
pub fn take() -> Vec<String> {
    SAID.with_borrow_mut(std::mem::take)
}

/// Adds warnings that were taken from another thread.
pub fn add(sentences: Vec<String>) {
    sentences.into_iter().for_each(warn);
}

#[cfg(test)]
mod tests {
    use super::{MOST, add, take, warn};

    #[test]
    fn says_each_sentence_once_and_a_bounded_number_of_them() {
        take();
        warn("a");
        warn("a");
        add(vec!["b".into(), "a".into()]);
        assert_eq!(take(), ["a", "b"]);
        assert_eq!(take(), Vec::<String>::new());
        (0..MOST + 5).for_each(|number| warn(number.to_string()));
        assert_eq!(take().len(), MOST);
    }
}
