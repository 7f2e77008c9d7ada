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
    /// Not said, and no list is read further than `most`.
    Capped { first: usize, most: usize },
}

impl Window {
    /// How far lists are read for the first page.
    pub fn first(self) -> usize {
        match self {
            Window::Given(first) | Window::Default(first) | Window::Capped { first, .. } => first,
        }
    }

    /// How far lists are read at most, whatever page is asked for.
    pub fn most(self) -> usize {
        match self {
            Window::Given(window) => window,
            Window::Default(_) => MAX_WINDOW,
            Window::Capped { most, .. } => most.min(MAX_WINDOW),
        }
    }
}

/// The windows to read one after another, in hits, each a part of the next. A window that the request names
/// is the only one. Otherwise the first hits come from the default window and later ones from windows ten
/// times as large, so that no page depends on which other pages are asked for.
pub fn windows(window: Window, wanted: usize) -> Vec<usize> {
    match window {
        Window::Given(window) => vec![window],
        Window::Default(first) | Window::Capped { first, .. } => {
            let most = window.most();
            let mut windows = vec![first.min(most)];
            while let Some(&last) = windows.last()
                && last < wanted
                && last < most
            {
                windows.push((last * 10).min(most));
            }
            windows
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Window, windows};

    #[test]
    fn later_pages_come_from_wider_windows_as_far_as_these_may_go() {
        assert_eq!(windows(Window::Given(20), 500), [20]);
        assert_eq!(windows(Window::Default(10), 10), [10]);
        assert_eq!(windows(Window::Default(10), 500), [10, 100, 1000]);
        let capped = Window::Capped { first: 10, most: 40 };
        assert_eq!((windows(capped, 10), windows(capped, 500)), (vec![10], vec![10, 40]));
        assert_eq!(windows(Window::Capped { first: 10, most: 10 }, 500), [10]);
    }
}
