//! Ids of threads that say whose they are.
//!
//! A thread is its user's own, for ever: also when the agent has forgotten it, or has not heard of it yet. So an id that a
//! user names has to show that it is theirs without anybody looking it up. What a user calls a thread is followed by a
//! digest of agent, user and that name; whoever names the same as somebody else gets a thread of their own.

use std::borrow::Cow;

use uuid::Uuid;

use crate::ids::{self, Name};

/// Hexadecimal digits of the digest behind a name.
const DIGEST: usize = 16;

/// The thread of a user with an agent where there is but one.
pub fn only(agent: &str, user: &str) -> String {
    ids::named("thread", &[agent, user]).to_string()
}

/// The id of the thread that a user calls so. An id that shows already that it is theirs stays as it is.
pub fn of(agent: &str, user: &str, called: &str) -> String {
    if is_theirs(agent, user, called) {
        return called.to_owned();
    }
    let name = named(called);
    format!("{name}-{}", digest(&["thread-of", agent, user, &name]))
}

/// The id of a thread that is begun by a turn of a user's.
pub fn begun(agent: &str, user: &str, turn: Uuid) -> String {
    of(agent, user, &ids::derived(turn, "thread").to_string())
}

/// Returns the name that the user gave the thread with this id; none for an id that does not show it.
pub fn called<'i>(agent: &str, user: &str, id: &'i str) -> Option<&'i str> {
    let (called, found) = id.rsplit_once('-')?;
    (found == digest(&["thread-of", agent, user, called])).then_some(called)
}

/// Returns true if an id shows that the thread is this user's.
pub fn is_theirs(agent: &str, user: &str, id: &str) -> bool {
    id == only(agent, user) || called(agent, user, id).is_some()
}

/// A name that leaves room for the digest behind it: the end of one that does not becomes a digest itself.
fn named(called: &str) -> Cow<'_, str> {
    match called.get(..Name::MAX_LEN - 2 * (DIGEST + 1)) {
        Some(beginning) if called.len() > Name::MAX_LEN - DIGEST - 1 => {
            format!("{beginning}-{}", digest(&["thread-name", called])).into()
        }
        _ => called.into(),
    }
}

fn digest(parts: &[&str]) -> String {
    // Its version and variant are always the same digits.
    let uuid = ids::named("thread-digest", parts).as_u128();
    format!("{:012x}{:04x}", uuid >> 80, uuid & 0xffff)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_a_user_calls_a_thread_is_theirs_alone() {
        let dinner = of("cook", "ann", "dinner");
        assert!(dinner.starts_with("dinner-") && dinner.len() == "dinner-".len() + DIGEST);
        assert_eq!(of("cook", "ann", &dinner), dinner);
        assert_eq!(called("cook", "ann", &dinner), Some("dinner"));
        for (agent, user) in [("cook", "bob"), ("other", "ann")] {
            assert!(!is_theirs(agent, user, &dinner));
            assert_ne!(of(agent, user, "dinner"), dinner);
            assert_ne!(of(agent, user, &dinner), dinner);
            assert_ne!(of(agent, user, &only("cook", "ann")), only("cook", "ann"));
        }
        assert_eq!(of("cook", "ann", &only("cook", "ann")), only("cook", "ann"));
        let begun = begun("cook", "ann", Uuid::from_u128(7));
        assert!(is_theirs("cook", "ann", &begun) && !is_theirs("cook", "bob", &begun));
    }

    proptest! {
        #[test]
        fn an_id_is_a_name_stays_as_it_is_and_no_two_names_share_one(one in "[a-z0-9_-]{1,64}", two in "[a-z0-9_-]{1,64}") {
            let id = of("cook", "ann", &one);
            prop_assert!(Name::parse(&id).is_ok(), "{}", id);
            prop_assert_eq!(of("cook", "ann", &id), id.clone());
            prop_assert!(!is_theirs("cook", "bob", &id));
            prop_assert!(one == two || of("cook", "ann", &two) != id || two == id || of("cook", "ann", &two) == two);
        }
    }
}
