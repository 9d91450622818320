//! Ids of actions and processes, as people write them: shortened.

use std::str::FromStr;

use uuid::Uuid;

use crate::Error;

/// Digits that are written at least, so that a slip of the hand does not hit something else.
const SHORTEST: usize = 6;
/// Digits that are shown.
const SHOWN: usize = 8;

/// An id, or its beginning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct IdPrefix(String);

impl FromStr for IdPrefix {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let digits: String = hex_digits(text).collect();
        let fits = (SHORTEST..=32).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        fits.then_some(Self(digits))
            .ok_or_else(|| format!("expected an id, or at least the first {SHORTEST} digits of one"))
    }
}

impl IdPrefix {
    /// The id, if it is written in full.
    pub(super) fn full_id(&self) -> Option<String> {
        Uuid::parse_str(&self.0).ok().map(|id| id.to_string())
    }

    /// The one of these whose id begins so; `what` they are, and where they are `listed`, is for people.
    pub(super) fn find_unique<T>(
        &self,
        all: impl IntoIterator<Item = T>,
        id: impl Fn(&T) -> &str,
        what: &str,
        listed: &str,
    ) -> Result<T, Error> {
        let begins = |each: &T| hex_digits(id(each)).collect::<String>().starts_with(&self.0);
        let mut fitting: Vec<T> = all.into_iter().filter(begins).collect();
        match (fitting.pop(), fitting.len()) {
            (Some(one), 0) => Ok(one),
            (None, _) => Err(Error::Advice(format!("no {what} has an id that begins with {}; see {listed}", self.0))),
            (Some(_), more) => Err(Error::Advice(format!(
                "{} {what}s have ids that begin with {}; write more digits, see {listed} --json",
                more + 1,
                self.0
            ))),
        }
    }
}

/// The id as it is shown, long enough to be written back.
pub(super) fn short_id(id: &str) -> String {
    hex_digits(id).take(SHOWN).collect()
}

/// The digits of an id, however it is written.
fn hex_digits(id: &str) -> impl Iterator<Item = char> {
    id.chars().filter(|c| *c != '-').map(|c| c.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find_id(prefix: &str) -> Result<&'static str, Error> {
        let ids = ["abcdef00-0000-0000-0000-000000000001", "abcdef00-0000-0000-0000-000000000002"];
        let ids = ids.into_iter().chain(["12345678-0000-0000-0000-000000000000"]);
        prefix.parse::<IdPrefix>().unwrap().find_unique(ids, |id| *id, "action", "kairo actions")
    }

    #[test]
    fn an_id_may_be_shortened_as_long_as_it_names_one() {
        let id = "12345678-0000-0000-0000-000000000000";
        for prefix in [&short_id(id), "123456", "12345678-00", id] {
            assert_eq!(find_id(prefix).unwrap(), id, "{prefix}");
        }
        let whole = "ABCDEF00-0000-0000-0000-000000000002";
        assert_eq!(find_id(whole).unwrap(), whole.to_lowercase());
        assert_eq!(whole.parse::<IdPrefix>().unwrap().full_id(), Some(whole.to_lowercase()));
        assert!(find_id("abcdef").unwrap_err().to_string().starts_with("2 actions have ids that begin with abcdef"));
        assert!(find_id("fedcba").unwrap_err().to_string().starts_with("no action has an id that begins with fedcba"));
    }

    #[test]
    fn what_is_no_id_is_told_so() {
        for text in ["", "12345", "12345g", "123456789012345678901234567890123"] {
            assert!(text.parse::<IdPrefix>().is_err(), "{text}");
        }
        assert_eq!("abcdef".parse::<IdPrefix>().unwrap().full_id(), None);
    }
}
