//! Who speaks, in which thread, and whether it was said before. Pure.
//!
//! Chat clients name users as they like, have no word for threads and say nothing of repeating themselves. All of it is
//! derived from what they send, so that the same request is the same message.

use jiff::Timestamp;
use kairo_core::ids::{self, Name};

/// Who speaks where a client does not say.
pub const DEFAULT_USER: &str = "openai";

/// Characters of a user's own name that are kept where it is not a name of Kairo's, and of the digest behind it.
const KEPT: usize = 48;
const DIGEST: usize = 12;

/// The user a client names. What is a name already stays as it is; of anything else, what can be kept is followed by a
/// digest of it all, so that no two of them are one: `Ann@Example.com` becomes `ann-example-com-` and 12 digits.
pub fn user(named: &str) -> Name {
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
    let digest = ids::named("openai-user", &[named]).simple().to_string();
    let digest = digest.get(..DIGEST).unwrap_or_default();
    let name = match kept.trim_end_matches('-') {
        "" => format!("user-{digest}"),
        kept => format!("{kept}-{digest}"),
    };
    // Of letters that a name may have, and short enough.
    Name::parse(&name).unwrap_or_else(|_| default_user())
}

#[allow(clippy::expect_used, reason = "a constant, tested below")]
pub fn default_user() -> Name {
    Name::parse(DEFAULT_USER).expect("the default user is a name")
}

/// The thread of a chat that names none: chats of a user with an agent are told apart by the words they begin with.
pub fn thread(user: &Name, agent: &Name, first: &str) -> String {
    ids::named("openai-thread", &[user.as_str(), agent.as_str(), first]).to_string()
}

/// The id of a message that a client gave a key for.
pub fn keyed(thread: &str, key: &str) -> String {
    ids::named("openai-key", &[thread, key]).to_string()
}

/// The ids that a message may have, the one it was given if it was said a while ago first.
///
/// The same words to the same agent in the same place of a chat are the same message for a while: at least `window_ms`, at
/// most twice as long. Later they are said anew. Time is cut into windows, and a message belongs to the one it was first
/// said in.
pub fn message_ids(agent: &Name, thread: &str, said: &[String], now: Timestamp, window_ms: u64) -> [String; 2] {
    let said: Vec<&str> = said.iter().map(String::as_str).collect();
    let said = ids::named("openai-said", &said).to_string();
    let window = u64::try_from(now.as_millisecond()).unwrap_or_default() / window_ms.max(1);
    let id =
        |window: u64| ids::named("openai-message", &[agent.as_str(), thread, &said, &window.to_string()]).to_string();
    [id(window.saturating_sub(1)), id(window)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_mapped_to_names_and_never_two_to_one() {
        assert_eq!(user("ann").as_str(), "ann");
        assert_eq!(default_user().as_str(), DEFAULT_USER);
        let mapped = user("Ann@Example.com").to_string();
        assert!(mapped.starts_with("ann-example-com-") && mapped.len() == 28, "{mapped}");
        assert_eq!(mapped, user("Ann@Example.com").to_string());
        assert!(user("ünï 🦀").as_str().starts_with("n-"));
        assert!(user("🦀").as_str().starts_with("user-"));
        let long = user(&"x".repeat(10_000));
        assert!(long.as_str().len() <= Name::MAX_LEN && long != user(&"x".repeat(9_999)));
        assert_ne!(user("Ann"), user("ANN"));
    }

    #[test]
    fn chats_that_begin_differently_are_different_threads() {
        let (ann, bob) = (user("ann"), user("bob"));
        assert_eq!(thread(&ann, &bob, "hi"), thread(&ann, &bob, "hi"));
        assert_ne!(thread(&ann, &bob, "hi"), thread(&bob, &ann, "hi"));
        assert_ne!(thread(&ann, &bob, "hi"), thread(&ann, &bob, "ho"));
        assert!(Name::parse(&thread(&ann, &bob, "hi")).is_ok());
    }

    #[test]
    fn the_same_words_at_the_same_place_are_the_same_message_for_a_while() {
        let at = |ms| Timestamp::from_millisecond(ms).unwrap();
        let said = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let ids = |ms, words: &[&str]| message_ids(&user("cook"), "t", &said(words), at(ms), 1_000);
        assert_ne!(ids(5_000, &["a"]), message_ids(&user("coach"), "t", &said(&["a"]), at(5_000), 1_000));
        assert_eq!(ids(5_000, &["a"]), ids(5_999, &["a"]));
        assert_eq!(ids(5_999, &["a"])[1], ids(6_000, &["a"])[0]);
        assert!(!ids(7_000, &["a"]).contains(&ids(5_999, &["a"])[1]));
        assert_ne!(ids(5_000, &["a"]), ids(5_000, &["a", "a"]));
        // What was said before was changed: this is another chat from there on.
        assert_ne!(ids(5_000, &["a", "yes"]), ids(5_000, &["b", "yes"]));
        assert_ne!(ids(5_000, &["ab", "c"]), ids(5_000, &["a", "bc"]));
    }
}
