//! Deprecated forms of a request, gathered while it is carried out: the HTTP layer sends each as a `Warning` header.
//!
//! A request runs on one thread, so what its parsers say is gathered per thread; nothing has to be handed through them,
//! and a request without a deprecated form pays nothing. Work that is shared among threads (`_msearch`) brings its own
//! part back with [`take`] and [`add`].

use std::cell::RefCell;

/// Most warnings of one request: they travel in headers, which are bounded.
const MOST: usize = 32;

thread_local! {
    static SAID: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// Says that the running request uses a deprecated form. The same sentence counts once.
pub fn warn(sentence: impl Into<String>) {
    let sentence = sentence.into();
    SAID.with_borrow_mut(|said| {
        if said.len() < MOST && !said.contains(&sentence) {
            said.push(sentence);
        }
    });
}

/// What was said on this thread since the last call.
pub fn take() -> Vec<String> {
    SAID.with_borrow_mut(std::mem::take)
}

/// Takes over what was said on another thread.
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
