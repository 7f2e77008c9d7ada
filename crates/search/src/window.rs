//! How many hits of each ranked list are read before the lists are fused.

/// Largest window, in hits: each list is held in memory.
pub const MAX_WINDOW: usize = 10_000;

/// How many hits of each list are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Window {
    /// The window that the request names, in hits.
    Given(usize),
    /// The request names none: the first window has this many hits.
    Default(usize),
}

/// The windows to read one after another, in hits, each a part of the next. A window that the request names
/// is the only one. Otherwise the first hits come from the default window and later ones from windows ten
/// times as large, so that no page depends on which other pages are asked for.
pub fn windows(window: Window, wanted: usize) -> Vec<usize> {
    match window {
        Window::Given(window) => vec![window],
        Window::Default(first) => {
            let mut windows = vec![first.min(MAX_WINDOW)];
            while let Some(&last) = windows.last()
                && last < wanted
                && last < MAX_WINDOW
            {
                windows.push((last * 10).min(MAX_WINDOW));
            }
            windows
        }
    }
}
