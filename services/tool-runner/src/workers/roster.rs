//! The present replicas of a worker, and the tools they offer together: pure.
//!
//! Replicas may be of different versions. Each tool is offered as the replica describes it that was started last, so that
//! all replicas of tool-runner offer the same; a call reaches only replicas that have the tool.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use kairo_core::ids::Name;

use super::message::{AnnouncedTool, Announcement};

/// The replicas of one worker.
#[derive(Debug, Default)]
pub struct Roster {
    present: BTreeMap<Name, Present>,
}

#[derive(Debug)]
struct Present {
    started_ms: u64,
    tools: Vec<AnnouncedTool>,
    heard: Duration,
}

impl Roster {
    /// Takes an announcement in, heard at this time.
    ///
    /// # Errors
    /// When there are `most` others already.
    pub fn apply_announcement(
        &mut self,
        announcement: &Announcement,
        now: Duration,
        most: usize,
    ) -> Result<(), String> {
        if announcement.leaving {
            self.present.remove(&announcement.instance);
            return Ok(());
        }
        if self.present.len() >= most && !self.present.contains_key(&announcement.instance) {
            return Err(format!("there are {most} replicas of this worker already, which are max_replicas"));
        }
        let started_ms = announcement.started_ms;
        let tools = announcement.tools.clone();
        self.present.insert(announcement.instance.clone(), Present { started_ms, tools, heard: now });
        Ok(())
    }

    /// Forgets who was not heard since.
    pub fn forget_before(&mut self, then: Duration) {
        self.present.retain(|_, present| present.heard >= then);
    }

    /// Returns the number of replicas present.
    pub fn len(&self) -> usize {
        self.present.len()
    }

    pub fn is_empty(&self) -> bool {
        self.present.is_empty()
    }

    /// The names of the tools that somebody there has.
    pub fn names(&self) -> BTreeSet<String> {
        self.present.values().flat_map(|present| &present.tools).map(|tool| tool.name.clone()).collect()
    }

    /// Returns the tools that all replicas offer together, by name.
    pub fn tools(&self) -> Vec<AnnouncedTool> {
        let mut replicas: Vec<(&Name, &Present)> = self.present.iter().collect();
        replicas.sort_by_key(|(instance, present)| (std::cmp::Reverse(present.started_ms), *instance));
        let mut tools = BTreeMap::new();
        for tool in replicas.into_iter().flat_map(|(_, present)| &present.tools) {
            tools.entry(tool.name.as_str()).or_insert(tool);
        }
        tools.into_values().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tool(name: &str, description: &str) -> AnnouncedTool {
        serde_json::from_value(json!({"name": name, "description": description, "schema": {"type": "object"}})).unwrap()
    }

    fn announcement(instance: &str, started_ms: u64, tools: &[AnnouncedTool]) -> Announcement {
        let instance = Name::parse(instance).unwrap();
        Announcement { protocol: 1, instance, started_ms, leaving: false, tools: tools.to_vec() }
    }

    #[test]
    fn whoever_was_started_last_describes_a_tool() {
        let old = tool("a", "old");
        let new = tool("a", "new");
        let announcements =
            [announcement("x", 1, &[old.clone(), tool("b", "")]), announcement("y", 2, &[new.clone(), tool("c", "")])];
        for order in [[0, 1], [1, 0]] {
            let mut roster = Roster::default();
            for at in order {
                roster.apply_announcement(&announcements[at], Duration::ZERO, 9).unwrap();
            }
            assert_eq!(roster.tools(), [new.clone(), tool("b", ""), tool("c", "")]);
            let leaving = Announcement { leaving: true, ..announcements[1].clone() };
            roster.apply_announcement(&leaving, Duration::ZERO, 9).unwrap();
            assert_eq!(roster.tools(), [old.clone(), tool("b", "")]);
        }
    }

    #[test]
    fn who_is_silent_is_forgotten_and_so_many_are_known() {
        let mut roster = Roster::default();
        let seconds = Duration::from_secs;
        roster.apply_announcement(&announcement("x", 1, &[tool("a", "")]), seconds(1), 2).unwrap();
        roster.apply_announcement(&announcement("y", 1, &[]), seconds(5), 2).unwrap();
        assert!(roster.apply_announcement(&announcement("z", 1, &[]), seconds(5), 2).is_err());
        roster.apply_announcement(&announcement("y", 1, &[]), seconds(6), 2).unwrap();
        assert_eq!(roster.names(), BTreeSet::from(["a".to_owned()]));
        roster.forget_before(seconds(2));
        assert!(roster.names().is_empty() && !roster.is_empty());
    }
}
