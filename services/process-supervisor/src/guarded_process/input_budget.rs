//! Standard input on its way to a process: counted here, so that the writer learns at once whether there is room, even
//! while the guard waits for its reports to be read.

/// The reason why nothing was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InputError {
    #[error("its standard input is not open; only a process that was started with one can be written to")]
    NotOpen,
    #[error("its standard input is closed: it was closed on request, or by the program, or the program has ended")]
    Closed,
    #[error(
        "the process has not read what was written before: {waiting} bytes wait, and with these {bytes} there would be \
         more than {max}; write again when it has read, or less"
    )]
    Full { bytes: usize, waiting: usize, max: usize },
}

/// The standard input of one process.
#[derive(Debug)]
pub(super) struct InputBudget {
    state: Result<(), InputError>,
    waiting: usize,
    max: usize,
}

impl InputBudget {
    /// With room for `max` bytes, if it is `open` at all.
    pub(super) fn new(open: bool, max: usize) -> Self {
        let state = if open { Ok(()) } else { Err(InputError::NotOpen) };
        Self { state, waiting: 0, max }
    }

    /// Counts what is about to be written.
    ///
    /// # Errors
    /// When it must not be.
    pub(super) fn reserve(&mut self, bytes: usize, close: bool) -> Result<(), InputError> {
        self.state?;
        if bytes > self.max.saturating_sub(self.waiting) {
            return Err(InputError::Full { bytes, waiting: self.waiting, max: self.max });
        }
        self.waiting += bytes;
        if close {
            self.close();
        }
        Ok(())
    }

    /// The guard has passed on `bytes` of what was accepted.
    pub(super) fn release(&mut self, bytes: usize) {
        self.waiting = self.waiting.saturating_sub(bytes);
    }

    /// From now on nothing can be written.
    pub(super) fn close(&mut self) {
        if self.state.is_ok() {
            self.state = Err(InputError::Closed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_takes_room_until_it_is_taken() {
        let mut input = InputBudget::new(true, 10);
        assert_eq!(input.reserve(6, false), Ok(()));
        assert_eq!(input.reserve(5, false), Err(InputError::Full { bytes: 5, waiting: 6, max: 10 }));
        assert_eq!(input.reserve(4, false), Ok(()), "what was refused takes no room");
        input.release(5);
        assert_eq!(input.reserve(5, false), Ok(()));
        assert_eq!(input.reserve(1, false), Err(InputError::Full { bytes: 1, waiting: 10, max: 10 }));
    }

    #[test]
    fn a_closing_that_is_refused_leaves_it_open() {
        let mut input = InputBudget::new(true, 1);
        assert!(matches!(input.reserve(2, true), Err(InputError::Full { .. })));
        assert_eq!(input.reserve(1, true), Ok(()));
        assert_eq!(input.reserve(0, false), Err(InputError::Closed));
    }

    #[test]
    fn what_never_was_open_does_not_count_as_closed() {
        let mut input = InputBudget::new(false, 10);
        assert_eq!(input.reserve(0, false), Err(InputError::NotOpen));
        input.close();
        assert_eq!(input.reserve(0, true), Err(InputError::NotOpen));
    }
}
