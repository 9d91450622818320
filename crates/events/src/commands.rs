//! Commands that agents declare, such as `/search`: their syntax, the agent each is for, and the list of all. Pure.
//!
//! A command that several agents declare is for the one the user speaks with, if that is one of them, and else for the
//! first by name.

use std::collections::BTreeMap;

use kairo_proto::v1::ProfileCommand;

use crate::ids::Name;

/// Longest name of a command, in bytes.
pub const MAX_VALUE: usize = 32;
/// Longest list of commands that an agent is told, in bytes.
const TOLD_BYTES: usize = 2_000;

/// The command at the beginning of a text: `/search python` is `search`. A path is none.
pub fn parse_command(text: &str) -> Option<&str> {
    let value = text.trim_start().strip_prefix('/')?.split(char::is_whitespace).next()?;
    is_command_name(value).then_some(value)
}

/// Returns true if a command may have this name.
pub fn is_command_name(value: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'_' | b'-');
    !value.is_empty() && value.len() <= MAX_VALUE && value.bytes().all(allowed)
}

/// All commands, by the agents that declare them.
#[derive(Clone, Debug, Default)]
pub struct CommandRegistry {
    declared: BTreeMap<Name, Vec<ProfileCommand>>,
    count: usize,
    /// Commands that are known at most, of the first agents by name.
    capacity: usize,
    /// True if some commands were left out.
    lacks: bool,
}

impl CommandRegistry {
    pub fn new(capacity: usize) -> Self {
        Self { capacity, ..Self::default() }
    }

    /// Takes in what an agent declares, in place of what it declared before. Whether all that is known still has room.
    pub fn register(&mut self, agent: &Name, declared: Vec<ProfileCommand>) -> bool {
        self.count -= self.declared.remove(agent).map_or(0, |before| before.len());
        if !declared.is_empty() {
            self.count += declared.len();
            self.declared.insert(agent.clone(), declared);
        }
        let fits = self.count <= self.capacity;
        self.lacks |= !fits;
        while self.count > self.capacity {
            self.count -= self.declared.pop_last().map_or(self.count, |(_, last)| last.len());
        }
        fits
    }

    /// Returns true if there was always room for all of them.
    pub fn is_complete(&self) -> bool {
        !self.lacks
    }

    /// Returns the commands that each agent declares.
    pub fn by_agent(&self) -> impl Iterator<Item = (&Name, &[ProfileCommand])> {
        self.declared.iter().map(|(agent, commands)| (agent, commands.as_slice()))
    }

    /// The agent that a command is for, to whoever speaks with `current`.
    pub fn agent_of(&self, value: &str, current: &Name) -> Option<&Name> {
        let declares = |commands: &[ProfileCommand]| commands.iter().any(|command| command.value == value);
        let own = self.declared.get_key_value(current).filter(|(_, commands)| declares(commands));
        own.or_else(|| self.declared.iter().find(|(_, commands)| declares(commands))).map(|(agent, _)| agent)
    }

    /// Every command, by agent.
    pub fn all(&self) -> impl Iterator<Item = (&Name, &ProfileCommand)> {
        self.by_agent().flat_map(|(agent, commands)| commands.iter().map(move |command| (agent, command)))
    }

    /// Describes the known commands to an agent that was given an unknown one; none if there are no commands at all.
    pub fn describe_unknown(&self, unknown: &str) -> Option<String> {
        let mut told = String::new();
        let mut left_out = 0;
        for (agent, ProfileCommand { value, label, .. }) in self.all() {
            let line = format!("/{value} ({label}, {agent})");
            match told.len() + line.len() <= TOLD_BYTES && left_out == 0 {
                true if told.is_empty() => told = line,
                true => told.extend([", ", &line]),
                false => left_out += 1,
            }
        }
        let more = if left_out > 0 { format!(" and {left_out} more") } else { String::new() };
        (self.count > 0).then(|| format!("[There is no command /{unknown}. There are: {told}{more}.]"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Name {
        Name::parse(text).unwrap()
    }

    fn declared(values: &[&str]) -> Vec<ProfileCommand> {
        let command =
            |value: &&str| ProfileCommand { value: (*value).into(), label: value.to_uppercase(), ..Default::default() };
        values.iter().map(command).collect()
    }

    #[test]
    fn a_command_is_a_word_behind_a_slash() {
        let cases = [
            ("/search python tutorials", Some("search")),
            (" /ask_page", Some("ask_page")),
            ("/etc/passwd what is it?", None),
            ("/ search", None),
            ("/", None),
            ("/Search x", None),
            ("say /search", None),
            ("/über x", None),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_command(text), expected, "{text}");
        }
        assert_eq!(parse_command(&format!("/{}", "x".repeat(MAX_VALUE + 1))), None);
    }

    #[test]
    fn a_command_is_for_the_current_agent_and_else_for_the_first_that_declares_it() {
        let mut commands = CommandRegistry::new(9);
        commands.register(&name("cook"), declared(&["list", "buy"]));
        commands.register(&name("aide"), declared(&["list"]));
        let of = |commands: &CommandRegistry, value: &str, current: &str| {
            commands.agent_of(value, &name(current)).map(Name::to_string)
        };
        assert_eq!(of(&commands, "list", "nobody").as_deref(), Some("aide"));
        assert_eq!(of(&commands, "list", "cook").as_deref(), Some("cook"));
        assert_eq!(of(&commands, "buy", "aide").as_deref(), Some("cook"));
        assert_eq!(of(&commands, "sell", "aide"), None);
        commands.register(&name("cook"), declared(&["sell"]));
        assert_eq!((of(&commands, "buy", "aide"), of(&commands, "sell", "aide").as_deref()), (None, Some("cook")));
    }

    #[test]
    fn only_so_many_are_known() {
        let mut commands = CommandRegistry::new(2);
        assert!(commands.register(&name("b"), declared(&["x", "y"])) && commands.is_complete());
        assert!(!commands.register(&name("a"), declared(&["z"])));
        assert_eq!(
            commands.all().map(|(agent, command)| format!("{agent} {}", command.value)).collect::<Vec<_>>(),
            ["a z"]
        );
        assert!(commands.register(&name("a"), Vec::new()) && commands.all().next().is_none());
        assert!(!commands.is_complete(), "those of b are still left out");
    }

    #[test]
    fn who_is_told_of_a_command_that_is_none_is_told_of_those_there_are() {
        let mut commands = CommandRegistry::new(1_000);
        assert_eq!(commands.describe_unknown("x"), None);
        commands.register(&name("cook"), declared(&["list", "buy"]));
        let told = commands.describe_unknown("x").unwrap();
        assert_eq!(told, "[There is no command /x. There are: /list (LIST, cook), /buy (BUY, cook).]");
        let many: Vec<String> = (0..500).map(|number| format!("command-{number}")).collect();
        commands.register(&name("zoe"), declared(&many.iter().map(String::as_str).collect::<Vec<_>>()));
        let told = commands.describe_unknown("x").unwrap();
        assert!(told.len() < TOLD_BYTES + 100 && told.contains("more.]"), "{told}");
    }
}
