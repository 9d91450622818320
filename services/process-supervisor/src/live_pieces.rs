//! Output as it is sent out live: small frames put together, large ones cut.

use crate::protocol::{Output, Stream};

/// A piece of what a process wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamPiece {
    pub stream: Stream,
    pub text: String,
}

/// The text of `frames`, in order, in as few pieces of at most `max_bytes` as that takes. A piece is of one stream,
/// and no character is cut: with `max_bytes` below 4 a piece may be as long as one character.
pub fn repack_frames(frames: impl IntoIterator<Item = Output>, max_bytes: usize) -> Vec<StreamPiece> {
    let mut pieces: Vec<StreamPiece> = Vec::new();
    for Output { stream, text, .. } in frames {
        let mut rest = text.as_str();
        while let Some(first) = rest.chars().next() {
            let room = match pieces.last() {
                Some(last) if last.stream == stream => max_bytes.saturating_sub(last.text.len()),
                _ => 0,
            };
            let fits = rest.floor_char_boundary(room);
            match pieces.last_mut() {
                Some(last) if fits > 0 => {
                    let (head, tail) = rest.split_at(fits);
                    last.text.push_str(head);
                    rest = tail;
                }
                _ => {
                    let (head, tail) = rest.split_at(first.len_utf8());
                    pieces.push(StreamPiece { stream, text: head.to_owned() });
                    rest = tail;
                }
            }
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(stream: Stream, text: &str) -> Output {
        Output { stream, seq: 0, text: text.to_owned() }
    }

    fn cut(frames: &[(Stream, &str)], max_bytes: usize) -> Vec<(Stream, String)> {
        let frames = frames.iter().map(|(stream, text)| frame(*stream, text));
        repack_frames(frames, max_bytes).into_iter().map(|piece| (piece.stream, piece.text)).collect()
    }

    #[test]
    fn small_frames_of_a_stream_become_one_piece() {
        use Stream::{Stderr, Stdout};
        let frames = [(Stdout, "a"), (Stdout, "b"), (Stderr, "c"), (Stdout, "d")];
        assert_eq!(cut(&frames, 8), [(Stdout, "ab".into()), (Stderr, "c".into()), (Stdout, "d".into())]);
        assert_eq!(cut(&[], 8), []);
        assert_eq!(cut(&[(Stdout, "")], 8), []);
    }

    #[test]
    fn nothing_is_lost_and_no_character_is_cut_whatever_the_size() {
        let text = "aß€🦀z".repeat(5);
        for max_bytes in 0..=text.len() + 1 {
            let pieces = cut(&[(Stream::Stdout, &text), (Stream::Stdout, &text)], max_bytes);
            let whole: String = pieces.iter().map(|(_, text)| text.as_str()).collect();
            assert_eq!(whole, text.repeat(2));
            assert!(pieces.iter().all(|(_, text)| text.len() <= max_bytes.max(4)), "at {max_bytes}");
        }
    }
}
