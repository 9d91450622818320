//! Reading addresses: of a message the agent it names, `@agent` at its beginning, or the default agent; of anything else
//! the agent it names. Pure.
//!
//! A message to an agent that was named before, or with a `/command`, is left to the router, which knows that agent
//! ([`addressee_of`]). The gateway uses the address to check that the agent takes messages, and there knows the default agent
//! alone.

use crate::{commands, ids::Name};

/// The agent something is for or, for the sender, what was expected.
pub type AgentAddress = Result<Name, String>;

/// The address of what must name its agent.
pub fn parse_agent(agent: &str) -> AgentAddress {
    Name::parse(agent).map_err(|error| format!("agent: {error}"))
}

/// The address of a message that names `agent` (empty for none) and says `text`, and what it says there.
pub fn split_message<'m>(agent: &'m str, text: &'m str, default_agent: &'m str) -> (AgentAddress, &'m str) {
    let (agent, text) = match parse_mention(text) {
        _ if !agent.is_empty() => (agent, text),
        Some((agent, rest)) => (agent, rest),
        None => (default_agent, text),
    };
    (parse_agent(agent), text)
}

/// The addressee of a message, as far as the message itself says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Addressee<'m> {
    /// The agent that its sender names beside the words; what the words begin with are words.
    Named,
    /// `@agent`: that one, from here on.
    Mentioned(&'m str),
    /// `/command`: whoever declares it, from here on.
    Command(&'m str),
    /// The agent that the user is speaking with.
    Current,
}

/// Returns the addressee of a message that names `agent` (empty for none) and says `text`.
pub fn addressee_of<'m>(agent: &'m str, text: &'m str) -> Addressee<'m> {
    match (parse_mention(text), commands::parse_command(text)) {
        _ if !agent.is_empty() => Addressee::Named,
        (Some((agent, _)), _) => Addressee::Mentioned(agent),
        (None, Some(command)) => Addressee::Command(command),
        (None, None) => Addressee::Current,
    }
}

/// `@agent the rest`. An `@` that is followed by something else than a name is just text.
fn parse_mention(text: &str) -> Option<(&str, &str)> {
    let (name, rest) = text.trim_start().strip_prefix('@')?.split_once(char::is_whitespace)?;
    let rest = rest.trim_start();
    (Name::parse(name).is_ok() && !rest.is_empty()).then_some((name, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(agent: &str, text: &str) -> Result<(String, String), String> {
        let (to, says) = split_message(agent, text, "default");
        to.map(|to| (to.to_string(), says.to_owned()))
    }

    #[test]
    fn the_agent_named_wins_then_the_mention_then_the_default() {
        let cases = [
            ("", "hello", "default", "hello"),
            ("coach", "hello", "coach", "hello"),
            ("coach", "@cook hello", "coach", "@cook hello"),
            ("", " @cook  what is for dinner?", "cook", "what is for dinner?"),
            ("", "@", "default", "@"),
            ("", "@cook", "default", "@cook"),
            ("", "@Sarah said hi", "default", "@Sarah said hi"),
        ];
        for (agent, text, to, says) in cases {
            assert_eq!(read_text(agent, text), Ok((to.into(), says.into())), "{agent} {text}");
        }
    }

    #[test]
    fn a_message_says_whom_it_is_for_or_leaves_it_to_what_was_said_before() {
        let cases = [
            ("coach", "/search x", Addressee::Named),
            ("", "@cook what is for dinner?", Addressee::Mentioned("cook")),
            ("", "@cook", Addressee::Current),
            ("", "/search x", Addressee::Command("search")),
            ("", "/etc/passwd", Addressee::Current),
            ("", "hello", Addressee::Current),
        ];
        for (agent, text, expected) in cases {
            assert_eq!(addressee_of(agent, text), expected, "{agent} {text}");
        }
    }

    #[test]
    fn a_name_that_is_none_is_refused() {
        assert!(read_text("No Such", "hello").unwrap_err().contains("expected 1 to 64"));
    }
}
