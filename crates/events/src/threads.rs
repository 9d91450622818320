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
pub fn single_thread_id(agent: &str, user: &str) -> String {
    ids::from_parts("thread", &[agent, user]).to_string()
}

/// The id of the thread that a user calls so. An id that shows already that it is theirs stays as it is.
pub fn id_for_name(agent: &str, user: &str, called: &str) -> String {
    if is_owned_by(agent, user, called) {
        return called.to_owned();
    }
    let name = shorten_name(called);
    format!("{name}-{}", short_digest(&["thread-of", agent, user, &name]))
}

/// The id of a thread that is begun by a turn of a user's.
pub fn id_for_turn(agent: &str, user: &str, turn: Uuid) -> String {
    id_for_name(agent, user, &ids::derive(turn, "thread").to_string())
}

/// Returns the name that the user gave the thread with this id; none for an id that does not show it.
pub fn name_from_id<'i>(agent: &str, user: &str, id: &'i str) -> Option<&'i str> {
    let (called, found) = id.rsplit_once('-')?;
    (found == short_digest(&["thread-of", agent, user, called])).then_some(called)
}

/// Returns true if an id shows that the thread is this user's.
pub fn is_owned_by(agent: &str, user: &str, id: &str) -> bool {
    id == single_thread_id(agent, user) || name_from_id(agent, user, id).is_some()
}

/// A name that leaves room for the digest behind it: the end of one that does not becomes a digest itself.
fn shorten_name(called: &str) -> Cow<'_, str> {
    match called.get(..Name::MAX_LEN - 2 * (DIGEST + 1)) {
        Some(beginning) if called.len() > Name::MAX_LEN - DIGEST - 1 => {
            format!("{beginning}-{}", short_digest(&["thread-name", called])).into()
        }
        _ => called.into(),
    }
}

fn short_digest(parts: &[&str]) -> String {
    // Its version and variant are always the same digits.
    let uuid = ids::from_parts("thread-digest", parts).as_u128();
    format!("{:012x}{:04x}", uuid >> 80, uuid & 0xffff)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_a_user_calls_a_thread_is_theirs_alone() {
        let dinner = id_for_name("cook", "ann", "dinner");
        assert!(dinner.starts_with("dinner-") && dinner.len() == "dinner-".len() + DIGEST);
        assert_eq!(id_for_name("cook", "ann", &dinner), dinner);
        assert_eq!(name_from_id("cook", "ann", &dinner), Some("dinner"));
        for (agent, user) in [("cook", "bob"), ("other", "ann")] {
            assert!(!is_owned_by(agent, user, &dinner));
            assert_ne!(id_for_name(agent, user, "dinner"), dinner);
            assert_ne!(id_for_name(agent, user, &dinner), dinner);
            assert_ne!(id_for_name(agent, user, &single_thread_id("cook", "ann")), single_thread_id("cook", "ann"));
        }
        assert_eq!(id_for_name("cook", "ann", &single_thread_id("cook", "ann")), single_thread_id("cook", "ann"));
        let begun = id_for_turn("cook", "ann", Uuid::from_u128(7));
        assert!(is_owned_by("cook", "ann", &begun) && !is_owned_by("cook", "bob", &begun));
    }

    proptest! {
        #[test]
        fn an_id_is_a_name_stays_as_it_is_and_no_two_names_share_one(one in "[a-z0-9_-]{1,64}", two in "[a-z0-9_-]{1,64}") {
            let id = id_for_name("cook", "ann", &one);
            prop_assert!(Name::parse(&id).is_ok(), "{}", id);
            prop_assert_eq!(id_for_name("cook", "ann", &id), id.clone());
            prop_assert!(!is_owned_by("cook", "bob", &id));
            prop_assert!(one == two || id_for_name("cook", "ann", &two) != id || two == id || id_for_name("cook", "ann", &two) == two);
        }
    }
}
