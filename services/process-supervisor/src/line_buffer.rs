//! Cuts a byte stream into lines, with a bound on what an unfinished line may take.

/// Bytes that were read and are not yet a line.
#[derive(Debug)]
pub struct LineBuffer {
    pending: Vec<u8>,
    max_bytes: usize,
}

/// A line did not end within the bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a line is longer than {max_bytes} bytes")]
pub struct LineTooLong {
    max_bytes: usize,
}

impl LineBuffer {
    pub fn new(max_bytes: usize) -> Self {
        Self { pending: Vec::new(), max_bytes }
    }

    pub fn push(&mut self, bytes: &[u8]) {
        self.pending.extend_from_slice(bytes);
    }

    /// Takes the next whole line, without its end.
    ///
    /// # Errors
    /// When what is pending is longer than a line may be and holds none.
    pub fn next_line(&mut self) -> Result<Option<Vec<u8>>, LineTooLong> {
        match self.pending.iter().position(|byte| *byte == b'\n') {
            Some(end) => {
                let rest = self.pending.split_off(end + 1);
                let mut line = std::mem::replace(&mut self.pending, rest);
                line.pop();
                Ok(Some(line))
            }
            None if self.pending.len() > self.max_bytes => Err(LineTooLong { max_bytes: self.max_bytes }),
            None => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_out_whole_however_they_went_in() {
        let mut lines = LineBuffer::new(16);
        lines.push(b"one\ntw");
        assert_eq!(lines.next_line(), Ok(Some(b"one".to_vec())));
        assert_eq!(lines.next_line(), Ok(None));
        lines.push(b"o\n\n");
        assert_eq!(lines.next_line(), Ok(Some(b"two".to_vec())));
        assert_eq!(lines.next_line(), Ok(Some(Vec::new())));
        assert_eq!(lines.next_line(), Ok(None));
    }

    #[test]
    fn an_endless_line_is_refused() {
        let mut lines = LineBuffer::new(4);
        lines.push(b"12345");
        assert_eq!(lines.next_line(), Err(LineTooLong { max_bytes: 4 }));
    }
}
