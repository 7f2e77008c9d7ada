//! How far ranked lists are read before they are fused.

/// Longest window: each list is held in memory.
pub const MAX_WINDOW: usize = 10_000;

/// How far lists are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Window {
    /// As the request says.
    Given(usize),
    /// Not said: the first window is this one.
    Default(usize),
}

/// The windows to read one after another, each a part of the next. A window that the request names is the only one.
/// Otherwise the first page is what the usual window gives, and what lies behind it comes from wider ones, so that
/// no page depends on which other pages are asked for.
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
