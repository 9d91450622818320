//! Names of users and threads, and ids of messages, for chat clients. Pure.
//!
//! Chat clients name users as they like. Ids of messages are derived from what clients send, so that a retry can be
//! found.

use jiff::Timestamp;
use kairo_core::ids::{self, Name};

/// The user if a client names none.
pub const DEFAULT_USER: &str = "openai";

/// Characters of a user's own name that are kept where it is not a name of Kairo's, and of the digest behind it.
const KEPT: usize = 48;
const DIGEST: usize = 12;

/// The user a client names. What is a name already stays as it is; of anything else, what can be kept is followed by a
/// digest of it all, so that no two of them are one: `Ann@Example.com` becomes `ann-example-com-` and 12 digits.
pub fn to_user_name(named: &str) -> Name {
    if let Ok(name) = Name::parse(named) {
        return name;
    }
    let mut kept = String::new();
    for letter in named.chars().map(|letter| letter.to_ascii_lowercase()) {
        match letter {
            'a'..='z' | '0'..='9' | '_' => kept.push(letter),
            _ if kept.is_empty() || kept.ends_with('-') => {}
            _ => kept.push('-'),
        }
        if kept.len() == KEPT {
            break;
        }
    }
    let digest = ids::from_parts("openai-user", &[named]).simple().to_string();
    let digest = digest.get(..DIGEST).unwrap_or_default();
    let name = match kept.trim_end_matches('-') {
        "" => format!("user-{digest}"),
        kept => format!("{kept}-{digest}"),
    };
    // Of letters that a name may have, and short enough.
    Name::parse(&name).unwrap_or_else(|_| default_user())
}

/// Returns the user if neither a client nor a key names one: one user for each key, so that no two keys share a memory.
pub fn default_user_of(principal: Option<&str>) -> Name {
    let own = |principal: &str| {
        let digest = ids::from_parts("openai-key-user", &[principal]).simple().to_string();
        Name::parse(&format!("{DEFAULT_USER}-{}", digest.get(..DIGEST)?)).ok()
    };
    principal.and_then(own).unwrap_or_else(default_user)
}

#[allow(clippy::expect_used, reason = "a constant, tested below")]
pub fn default_user() -> Name {
    Name::parse(DEFAULT_USER).expect("the default user is a name")
}

/// Converts a client's name of a thread into a [`Name`]: one that is valid already stays as it is.
pub fn to_thread_name(called: &str) -> Name {
    to_user_name(called)
}

/// The thread of a conversation that begins with this message.
pub fn new_thread(message_id: &str) -> String {
    let id = ids::from_parts("openai-thread", &[message_id]).simple().to_string();
    format!("chat-{id}")
}

/// The id of a message that a client gave a key for: of the first, and of those that ask again since a turn failed.
pub fn keyed_message_id(whose: &[&str], key: &str, number: u32) -> String {
    let number = number.to_string();
    let parts: Vec<&str> = whose.iter().copied().chain([key, number.as_str()]).collect();
    ids::from_parts("openai-key", &parts).to_string()
}

/// The window of time that a moment is in. A request that is sent again belongs to the one it was first sent in or, at most twice as
/// long, to the next one.
pub fn retry_window(now: Timestamp, window_ms: u64) -> u64 {
    u64::try_from(now.as_millisecond()).unwrap_or_default() / window_ms.max(1)
}

/// The id of a message of this digest: the number tells those apart that are the same and sent in one window.
pub fn message_id(whose: &[&str], digest: &str, window: u64, number: u32) -> String {
    let window = window.to_string();
    let number = number.to_string();
    let parts: Vec<&str> = whose.iter().copied().chain([digest, window.as_str(), number.as_str()]).collect();
    ids::from_parts("openai-message", &parts).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_mapped_to_names_and_never_two_to_one() {
        assert_eq!(to_user_name("ann").as_str(), "ann");
        assert_eq!(default_user().as_str(), DEFAULT_USER);
        let mapped = to_user_name("Ann@Example.com").to_string();
        assert!(mapped.starts_with("ann-example-com-") && mapped.len() == 28, "{mapped}");
        assert_eq!(mapped, to_user_name("Ann@Example.com").to_string());
        assert!(to_user_name("ünï 🦀").as_str().starts_with("n-"));
        assert!(to_user_name("🦀").as_str().starts_with("user-"));
        let long = to_user_name(&"x".repeat(10_000));
        assert!(long.as_str().len() <= Name::MAX_LEN && long != to_user_name(&"x".repeat(9_999)));
        assert_ne!(to_user_name("Ann"), to_user_name("ANN"));
    }

    #[test]
    fn keys_without_a_user_are_users_of_their_own() {
        assert_eq!(default_user_of(None).as_str(), DEFAULT_USER);
        let of = |key: &str| default_user_of(Some(key)).to_string();
        assert!(of("api_key:k1").starts_with("openai-") && of("api_key:k1") != of("api_key:k2"));
    }

    #[test]
    fn ids_tell_apart_what_is_not_the_same_request() {
        let now = |ms| retry_window(Timestamp::from_millisecond(ms).unwrap(), 1_000);
        assert_eq!((now(5_000), now(5_999), now(6_000)), (5, 5, 6));
        let id = |whose: &str, digest: &str, number| message_id(&[whose, "coach"], digest, 5, number);
        assert_eq!(id("ann", "d", 0), id("ann", "d", 0));
        let others =
            [id("bob", "d", 0), id("ann", "e", 0), id("ann", "d", 1), keyed_message_id(&["ann", "coach"], "d", 0)];
        assert!(others.iter().all(|other| *other != id("ann", "d", 0)));
        let thread = new_thread(&id("ann", "d", 0));
        assert!(Name::parse(&thread).is_ok() && thread != new_thread(&id("ann", "d", 1)));
        assert_eq!(to_thread_name("kitchen").as_str(), "kitchen");
    }
}
