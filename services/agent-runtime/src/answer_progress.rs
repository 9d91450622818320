//! The part of an answer that has arrived so far: its cost counts even if nobody waits for the rest.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes that count as a token where nobody says how many there were.
const TOKEN_BYTES: u64 = 4;

/// Told by whoever takes in the answer, and asked by whoever waits for it.
#[derive(Clone, Debug, Default)]
pub struct ProgressHandle(Arc<Mutex<AnswerProgress>>);

/// The amount received so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AnswerProgress {
    /// Empty until the answer says it.
    pub model: String,
    /// Of words, reasoning and calls.
    pub bytes: u64,
    pub pieces: u32,
    /// As the model server says; 0 until then.
    pub input_tokens: u64,
    pub output_tokens: u64,
}

impl ProgressHandle {
    pub fn set(&self, so_far: &AnswerProgress) {
        self.lock().clone_from(so_far);
    }

    pub fn get(&self) -> AnswerProgress {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, AnswerProgress> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AnswerProgress {
    /// Tokens of the answer, and whether that is a guess.
    pub fn output_estimate(&self) -> (u64, bool) {
        match self.output_tokens {
            0 => (self.bytes.div_ceil(TOKEN_BYTES), self.bytes > 0),
            said => (said, false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_four_bytes_unless_somebody_says_how_many_there_were() {
        let answered = |bytes, output_tokens| {
            AnswerProgress { bytes, output_tokens, ..AnswerProgress::default() }.output_estimate()
        };
        assert_eq!(
            [answered(0, 0), answered(1, 0), answered(4, 0), answered(5, 0)],
            [(0, false), (1, true), (1, true), (2, true)]
        );
        assert_eq!(answered(400, 7), (7, false));
    }
}
