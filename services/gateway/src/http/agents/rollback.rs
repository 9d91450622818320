//! Finding an earlier version of an agent.

use std::ops::ControlFlow;

use kairo_core::{ids::Name, subjects::AGENT_DEFINED};
use kairo_proto::v1::AgentProfile;
use serde_json::Value;

use super::{definition_writer::decode_definition, redefinition::unknown_agent, versions::read_definitions};
use crate::{
    fields::{RequestFields, bounded_text, json_bool, json_text},
    http::Gateway,
    problem::Problem,
};

/// A request to return to an earlier version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RollbackRequest {
    pub version: VersionSelector,
    pub dry_run: bool,
}

/// The version that a rollback returns to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VersionSelector {
    /// By the position of its definition in the log.
    Sequence(u64),
    /// By the name that it was given.
    Name(String),
}

impl RollbackRequest {
    pub fn parse(body: &[u8]) -> Result<Self, Problem> {
        let mut fields = RequestFields::from_json(body)?;
        let given = [fields.has("sequence"), fields.has("version")];
        let sequence = fields.optional("sequence", "the position of a definition in the log", parse_sequence);
        let name = fields.optional("version", "text of 1 to 64 bytes", json_text(bounded_text(64)));
        let dry_run = fields.optional("dry_run", "true or false", json_bool).unwrap_or_default();
        if given[0] == given[1] {
            fields.reject("sequence", "exactly one of sequence and version: the version to return to");
        }
        let version = sequence.map(VersionSelector::Sequence).or(name.map(VersionSelector::Name));
        fields.complete(|| Some(Self { version: version?, dry_run }))
    }
}

fn parse_sequence(value: &Value) -> Option<u64> {
    value.as_u64().filter(|sequence| *sequence > 0)
}

/// An earlier version of an agent.
#[derive(Clone, Debug)]
pub struct EarlierVersion {
    pub profile: AgentProfile,
    /// Its name; empty if it has none.
    pub version: String,
}

/// The version of this name; of several with the same name, the newest.
pub async fn find_version(
    gateway: &Gateway,
    agent: &Name,
    wanted: &VersionSelector,
) -> Result<EarlierVersion, Problem> {
    let _permit = gateway.replay_permit()?;
    let longest = gateway.bus.limits.max_body_bytes;
    let mut found = None;
    let mut is_known = false;
    let each = |message: kairo_core::record::RawMessage| {
        is_known = true;
        let sequence = message.sequence;
        let Some(defined) = decode_definition(&message, longest) else { return ControlFlow::Continue(()) };
        let is_wanted = match wanted {
            VersionSelector::Sequence(wanted) => *wanted == sequence,
            VersionSelector::Name(wanted) => *wanted == defined.version,
        };
        if let (true, Some(profile)) = (is_wanted, defined.profile) {
            found = Some(EarlierVersion { profile, version: defined.version });
        }
        ControlFlow::Continue(())
    };
    let is_complete = read_definitions(gateway, &AGENT_DEFINED.of_owner(agent), each).await?;
    if !is_known {
        return Err(unknown_agent(agent));
    }
    found.ok_or_else(|| {
        let wanted = match wanted {
            VersionSelector::Sequence(sequence) => format!("no version at position {sequence} of the log"),
            VersionSelector::Name(name) => format!("no version named {name}"),
        };
        let lost = if is_complete { "" } else { " (the log no longer holds its oldest versions)" };
        Problem::not_found(format!("{agent} has {wanted}{lost}; kairo agents history {agent} lists those there are"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_named_in_exactly_one_way() {
        let read = |body: &str| RollbackRequest::parse(body.as_bytes());
        let by_sequence = RollbackRequest { version: VersionSelector::Sequence(7), dry_run: false };
        assert_eq!(read(r#"{"sequence": 7}"#), Ok(by_sequence));
        let by_name = RollbackRequest { version: VersionSelector::Name("brief".to_owned()), dry_run: true };
        assert_eq!(read(r#"{"version": "brief", "dry_run": true}"#), Ok(by_name));
        for wrong in [
            "{}",
            r#"{"sequence": 0}"#,
            r#"{"sequence": "7"}"#,
            r#"{"version": ""}"#,
            r#"{"sequence": 7, "version": "brief"}"#,
            r#"{"sequence": 7, "to": 8}"#,
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
