//! The agent that a user speaks with: named once, it stays so until another is named. Pure.
//!
//! The log knows it: each change stands there with the message that it came of ([`kairo_proto::v1::UserSwitched`]). So a
//! message that is read again is for the same agent as before, whatever was said since.

use std::collections::VecDeque;

use kairo_core::ids::Name;
use kairo_proto::v1::UserSwitched;

/// The agent that a user speaks with, from some message on.
#[derive(Clone, Debug, PartialEq)]
pub struct CurrentAgent {
    agent: Name,
    /// Changes that came of later messages, by their sequences.
    later: VecDeque<(u64, Name)>,
    /// Sequence of the last change; 0 for none.
    last: u64,
}

impl CurrentAgent {
    /// Returns the state of a user who has never named an agent.
    pub fn new(default_agent: Name) -> Self {
        Self { agent: default_agent, later: VecDeque::new(), last: 0 }
    }

    /// Applies a change that stands at `sequence`, in the order of the log.
    pub fn apply_switch(&mut self, sequence: u64, switched: &UserSwitched) {
        let Ok(agent) = Name::parse(&switched.agent) else { return };
        self.later.push_back((switched.at, agent));
        self.last = sequence;
    }

    /// Returns the agent that the user speaks with at the message of this sequence, and true if this very message set
    /// it. Sequences must not go down from one call to the next.
    pub fn agent_at(&mut self, sequence: u64) -> (Name, bool) {
        let mut of_this = false;
        while let Some((at, agent)) = self.later.pop_front_if(|(at, _)| *at <= sequence) {
            of_this = at == sequence;
            self.agent = agent;
        }
        (self.agent.clone(), of_this)
    }

    /// Returns true if no later message is known to have changed it.
    pub fn is_newest(&self) -> bool {
        self.later.is_empty()
    }

    /// Returns the sequence of the last change; 0 for none.
    pub fn last_switch(&self) -> u64 {
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn switched(agent: &str, at: u64) -> UserSwitched {
        UserSwitched { agent: agent.into(), at, ..Default::default() }
    }

    #[test]
    fn a_message_that_is_read_again_is_for_whom_it_was_for() {
        let mut current = CurrentAgent::new(Name::parse("default").unwrap());
        assert!(current.is_newest());
        current.apply_switch(5, &switched("cook", 4));
        current.apply_switch(9, &switched("coach", 8));
        let mut at = |sequence| {
            let (agent, of_this) = current.agent_at(sequence);
            (agent.to_string(), of_this, current.is_newest())
        };
        assert_eq!(at(3), ("default".to_owned(), false, false));
        assert_eq!(at(4), ("cook".to_owned(), true, false));
        assert_eq!(at(6), ("cook".to_owned(), false, false));
        assert_eq!(at(8), ("coach".to_owned(), true, true));
        assert_eq!(at(20), ("coach".to_owned(), false, true));
        assert_eq!(current.last_switch(), 9);
    }
}
