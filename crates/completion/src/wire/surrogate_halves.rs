//! Halves of surrogate pairs. JSON writes a character beyond the basic plane as two escapes, and some servers cut an answer
//! between them: each piece then holds half a character, which no text can.
//!
//! Within this crate, a half is one of the last 2048 code points of Unicode's last private plane, which nobody uses.

use std::borrow::Cow;

const FIRST_HALF: u16 = 0xD800;
const LAST_HALF: u16 = 0xDFFF;
/// The first stand-in, for the first half.
const FIRST: u32 = 0x10_F800;

/// Returns the stand-in for a half within a text; the replacement character for a number that is no half.
pub fn stand_in(half: u16) -> char {
    let known = (FIRST_HALF..=LAST_HALF).contains(&half);
    let offset = u32::from(half.saturating_sub(FIRST_HALF));
    if known {
        char::from_u32(FIRST + offset).unwrap_or(char::REPLACEMENT_CHARACTER)
    } else {
        char::REPLACEMENT_CHARACTER
    }
}

/// The half that a character stands for.
fn half(character: char) -> Option<u16> {
    let offset = u32::from(character).checked_sub(FIRST)?;
    u16::try_from(offset).ok().map(|offset| FIRST_HALF + offset)
}

/// Joins halves of one text that arrives in pieces.
#[derive(Debug, Default)]
pub struct Joiner {
    /// The first half, whose second one may come with the next piece.
    first: Option<u16>,
}

impl Joiner {
    /// A piece with whole characters; half of one at its end is kept back.
    pub fn join<'t>(&mut self, piece: &'t str) -> Cow<'t, str> {
        if self.first.is_none() && !piece.chars().any(|character| half(character).is_some()) {
            return piece.into();
        }
        let mut whole = String::with_capacity(piece.len());
        for character in piece.chars() {
            match (self.first.take(), half(character)) {
                (None, None) => whole.push(character),
                (Some(_), None) => whole.extend([char::REPLACEMENT_CHARACTER, character]),
                (None, Some(half)) => self.begin(half, &mut whole),
                (Some(first), Some(second)) => match char::decode_utf16([first, second]).next() {
                    Some(Ok(joined)) => whole.push(joined),
                    _ => {
                        whole.push(char::REPLACEMENT_CHARACTER);
                        self.begin(second, &mut whole);
                    }
                },
            }
        }
        whole.into()
    }

    fn begin(&mut self, half: u16, whole: &mut String) {
        if half < 0xDC00 {
            self.first = Some(half);
        } else {
            whole.push(char::REPLACEMENT_CHARACTER);
        }
    }

    /// Returns the replacement for a half that nothing followed.
    pub fn finish(&mut self) -> &'static str {
        if self.first.take().is_some() { "\u{fffd}" } else { "" }
    }
}

/// A text of which no more comes.
pub fn whole(text: &str) -> String {
    let mut joiner = Joiner::default();
    let mut whole = joiner.join(text).into_owned();
    whole.push_str(joiner.finish());
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_joined_across_pieces_and_replaced_where_the_other_is_missing() {
        let first = stand_in(0xd83d);
        let second = stand_in(0xde00);
        let joined = |pieces: &[String]| {
            let mut joiner = Joiner::default();
            let mut all: String = pieces.iter().map(|piece| joiner.join(piece).into_owned()).collect();
            all.push_str(joiner.finish());
            all
        };
        assert_eq!(joined(&[format!("a{first}"), format!("{second}b")]), "a😀b");
        assert_eq!(joined(&[format!("a{first}"), "b".into()]), "a\u{fffd}b");
        assert_eq!(joined(&[format!("{second}{first}{first}{second}")]), "\u{fffd}\u{fffd}😀");
        assert_eq!(joined(&[format!("a{first}"), String::new()]), "a\u{fffd}");
        assert_eq!(whole("plain 😀"), "plain 😀");
    }
}
