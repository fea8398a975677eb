//! Bytes in any portions → lines.

use bytes::Bytes;

use super::{FrameError, MAX_FRAME};

/// Cuts a body into lines. A line that lies within one portion is not copied.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    /// The beginning of a line whose end has not come yet.
    carry: Vec<u8>,
    chunk: Bytes,
}

impl Lines {
    /// Adds the next portion. Call it when [`next`](Self::next) has given everything there is.
    pub(crate) fn push(&mut self, chunk: Bytes) -> Result<(), FrameError> {
        debug_assert!(self.chunk.is_empty());
        if self.carry.len() + chunk.len() > MAX_FRAME {
            return Err(FrameError::TooLong);
        }
        self.chunk = chunk;
        Ok(())
    }

    /// The next whole line without its end; empty lines are left out.
    pub(crate) fn next(&mut self) -> Option<Bytes> {
        loop {
            let Some(end) = memchr::memchr(b'\n', &self.chunk) else {
                self.carry.extend_from_slice(&self.chunk);
                self.chunk = Bytes::new();
                return None;
            };
            let tail = self.chunk.split_to(end + 1).slice(..end);
            let line = if self.carry.is_empty() {
                tail
            } else {
                // The buffer goes with the line, so that one huge object does not hold memory for ever.
                self.carry.extend_from_slice(&tail);
                std::mem::take(&mut self.carry).into()
            };
            if !line.trim_ascii().is_empty() {
                return Some(line);
            }
        }
    }

    /// What came after the last line end: a whole line where the server did not end it, or a broken one.
    pub(crate) fn rest(&mut self) -> Option<Bytes> {
        let rest = Bytes::from(std::mem::take(&mut self.carry));
        (!rest.trim_ascii().is_empty()).then_some(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_whole_however_the_body_is_cut() {
        let body = "{\"a\":\"naïve\"}\n\n{\"b\":1}\r\n \n{\"c\"".as_bytes();
        for size in 1..=body.len() {
            let mut lines = Lines::default();
            let mut found = vec![];
            for chunk in body.chunks(size) {
                lines.push(Bytes::copy_from_slice(chunk)).unwrap();
                found.extend(std::iter::from_fn(|| lines.next()));
            }
            assert_eq!(found, ["{\"a\":\"naïve\"}", "{\"b\":1}\r"].map(str::as_bytes));
            assert_eq!(lines.rest().unwrap(), "{\"c\"");
            assert_eq!(lines.rest(), None);
        }
    }

    #[test]
    fn a_line_without_end_is_refused_before_it_fills_the_memory() {
        let mut lines = Lines::default();
        let chunk = Bytes::from(vec![b'x'; 1 << 20]);
        let refused = (0..65).find(|_| {
            let refused = lines.push(chunk.clone()).is_err();
            assert_eq!(lines.next(), None);
            refused
        });
        assert_eq!(refused, Some(64));
    }
}
