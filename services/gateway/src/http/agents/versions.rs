//! `GET /v1/agents/{agent}/versions`: the definitions of an agent, as the log has them.

use std::{collections::VecDeque, ops::ControlFlow};

use axum::extract::{Path, RawQuery, State, rejection::PathRejection};
use kairo_core::{
    bus::BusError,
    envelope::Envelope,
    profile_document,
    record::{RawMessage, Record},
    subjects::AGENT_DEFINED,
};
use kairo_proto::v1::{AgentDefined, AgentProfile, AgentVersionRow, ListAgentVersionsResponse};

use super::redefinition::unknown_agent;
use crate::{
    config::GatewayConfig,
    fields::{RequestFields, parse_text, query_value},
    http::{Gateway, query, sorted_json::SortedJson},
    problem::Problem,
};

/// The most versions of a page: each of them holds a whole profile.
const MAX_VERSIONS: usize = 100;

/// The versions, newest first.
pub async fn list_versions(
    State(gateway): State<Gateway>,
    path: Result<Path<String>, PathRejection>,
    RawQuery(query): RawQuery,
) -> Result<SortedJson<ListAgentVersionsResponse>, Problem> {
    let agent = query::path_agent(path)?;
    let _permit = gateway.replay_permit()?;
    let (before, limit) = parse_page_query(query.as_deref(), &gateway.config)?;
    let mut page = VersionPage::new(limit);
    let mut is_known = false;
    let each = |message: RawMessage| {
        is_known = true;
        if before.is_some_and(|before| message.sequence >= before) {
            return ControlFlow::Break(());
        }
        page.push(&message, gateway.bus.limits.max_body_bytes);
        ControlFlow::Continue(())
    };
    let is_complete = read_definitions(&gateway, &AGENT_DEFINED.of_owner(&agent), each).await?;
    if !is_known {
        return Err(unknown_agent(&agent));
    }
    let (versions, next_before) = page.into_rows();
    Ok(SortedJson(ListAgentVersionsResponse { versions, next_before, is_complete }))
}

fn parse_page_query(url_query: Option<&str>, config: &GatewayConfig) -> Result<(Option<u64>, usize), Problem> {
    let mut fields = RequestFields::from_query(url_query);
    let before: Option<u64> = fields.optional("before", "a sequence", query_value(parse_text));
    let limit = query::parse_row_count("limit", &mut fields, config).unwrap_or(config.default_limit);
    fields.complete(|| Some((before, usize::try_from(limit).unwrap_or(usize::MAX).min(MAX_VERSIONS))))
}

/// Hands over all definitions on this subject, the oldest first: those of the archive, too, if there is one. Returns
/// true if none is missing.
pub async fn read_definitions(
    gateway: &Gateway,
    subject: &str,
    mut each: impl FnMut(RawMessage) -> ControlFlow<()>,
) -> Result<bool, Problem> {
    let subjects = [subject.to_owned()];
    let whole = gateway.bus.read_full_history(&subjects, |message| each(message.without_carried_mark())).await;
    match whole {
        Ok(()) => Ok(true),
        // The log has lost its beginning, and there is no archive.
        Err(BusError::Refused(_)) => {
            let rest = |message: RawMessage| {
                let _ = each(message.without_carried_mark());
            };
            gateway.bus.read_all(subject, 0, rest).await?;
            Ok(false)
        }
        Err(error) => Err(error.into()),
    }
}

/// The newest versions of those handed over, with the one before them, which the oldest of them is compared with.
struct VersionPage {
    limit: usize,
    versions: VecDeque<(VersionHead, AgentDefined)>,
}

/// The part of a version that is not in its definition.
struct VersionHead {
    sequence: u64,
    envelope: Envelope,
}

impl VersionPage {
    fn new(limit: usize) -> Self {
        Self { limit, versions: VecDeque::new() }
    }

    fn push(&mut self, message: &RawMessage, longest: usize) {
        let Ok(Record { sequence, envelope, body, .. }) = message.read(longest) else { return };
        let Ok(defined) = AgentDefined::try_from(body) else { return };
        self.add(VersionHead { sequence, envelope }, defined);
    }

    fn add(&mut self, head: VersionHead, defined: AgentDefined) {
        // A definition that was carried forward when the log was trimmed is in the archive, too.
        if self.versions.back().is_some_and(|(last, _)| last.envelope.id == head.envelope.id) {
            return;
        }
        self.versions.push_back((head, defined));
        if self.versions.len() > self.limit.saturating_add(1) {
            self.versions.pop_front();
        }
    }

    /// The rows, newest first, and the position before which the next page begins.
    fn into_rows(mut self) -> (Vec<AgentVersionRow>, Option<u64>) {
        let has_more = self.versions.len() > self.limit;
        let oldest = if has_more { self.versions.pop_front() } else { None };
        let mut before = oldest.and_then(|(_, defined)| defined.profile);
        let mut rows = Vec::with_capacity(self.versions.len());
        for (head, AgentDefined { profile, version }) in self.versions {
            let profile = profile.unwrap_or_default();
            rows.push(version_row(&head, &profile, version, before.as_ref()));
            before = Some(profile);
        }
        rows.reverse();
        let next_before = rows.last().filter(|_| has_more).map(|row| row.sequence);
        (rows, next_before)
    }
}

fn version_row(
    head: &VersionHead,
    profile: &AgentProfile,
    version: String,
    before: Option<&AgentProfile>,
) -> AgentVersionRow {
    let VersionHead { sequence, envelope } = head;
    AgentVersionRow {
        sequence: *sequence,
        event_id: envelope.id.to_string(),
        defined_at: Some(kairo_proto::time::message(envelope.time)),
        entered_by: envelope.entered_by.as_ref().map(ToString::to_string),
        version: Some(version).filter(|version| !version.is_empty()),
        profile: Some(profile.clone()),
        changes: profile_document::changes(before, profile),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;
    use kairo_core::{envelope::Origin, ids, subjects::Service};

    fn page(limit: usize, versions: u64) -> (Vec<AgentVersionRow>, Option<u64>) {
        let mut page = VersionPage::new(limit);
        for number in 1..=versions {
            let id = ids::generate();
            let envelope = Envelope::from_outside(id, Service::Gateway, Origin::User, Timestamp::UNIX_EPOCH);
            let profile = AgentProfile { agent: "cook".into(), prompt: format!("{number}"), ..Default::default() };
            let defined = AgentDefined { profile: Some(profile), version: String::new() };
            page.add(VersionHead { sequence: number, envelope: envelope.clone() }, defined.clone());
            // Carried forward.
            page.add(VersionHead { sequence: number + 100, envelope }, defined);
        }
        page.into_rows()
    }

    #[test]
    fn a_page_has_the_newest_versions_each_compared_with_the_one_before() {
        for (limit, versions, expected, next) in [
            (2, 0, vec![], None),
            (2, 1, vec![1], None),
            (2, 2, vec![2, 1], None),
            (2, 3, vec![3, 2], Some(2)),
            (1, 5, vec![5], Some(5)),
        ] {
            let (rows, next_before) = page(limit, versions);
            assert_eq!(rows.iter().map(|row| row.sequence).collect::<Vec<_>>(), expected);
            assert_eq!(next_before, next, "{limit} of {versions}");
            for row in rows {
                let prompt = row.changes.iter().find(|change| change.field == "prompt").unwrap();
                let before = prompt.before.as_ref().map(kairo_proto::v1::Json::value);
                assert_eq!(before, (row.sequence > 1).then(|| (row.sequence - 1).to_string().into()));
            }
        }
    }
}
