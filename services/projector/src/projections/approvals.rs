//! Approvals: tools that are called only if a human agrees. Asked for, decided on, or no longer wanted.

use kairo_proto::{
    Body, Decided,
    about::Chain,
    v1::{AgentApproval, ApprovalRequested, DecidedEvent},
    words,
};
use kairo_read_model::sql_values::{SqlJson, SqlKey, Time};
use uuid::Uuid;

use super::{ProjectedRecord, chains::step_of, decided_events, entered_by, turn_of};
use crate::changes::{ActionVerdict, ApprovalExpiry, ApprovalRequest, ApprovalWithdrawal, TableChanges};

pub fn project(fact: &ProjectedRecord, changes: &mut TableChanges) {
    if let Body::AgentApproval(approval) = &fact.record.body {
        project_verdict(fact, approval, changes);
    }
    if let Body::TaskDue(due) = &fact.record.body
        && let Ok(action_id) = Uuid::parse_str(&due.task_id)
    {
        changes.expiries.push(ApprovalExpiry { sequence: fact.sequence, action_id });
    }
    for (position, event, what) in decided_events(fact) {
        let Decided::Chain(what) = what.about() else { continue };
        match what {
            Chain::ApprovalRequested(requested) => project_request(fact, position, event, requested, changes),
            Chain::StepEnded(ended) => {
                if let Some((chain_id, step)) = step_of(&ended.chain_id, ended.step) {
                    changes.withdrawals.push(ApprovalWithdrawal {
                        sequence: fact.sequence,
                        chain_id,
                        step: Some(step),
                    });
                }
            }
            Chain::Ended(ended) => {
                if let Ok(chain_id) = Uuid::parse_str(&ended.chain_id) {
                    changes.withdrawals.push(ApprovalWithdrawal { sequence: fact.sequence, chain_id, step: None });
                }
            }
            Chain::Started(_) => {}
        }
    }
}

fn project_request(
    fact: &ProjectedRecord,
    position: i32,
    event: &DecidedEvent,
    requested: &ApprovalRequested,
    changes: &mut TableChanges,
) {
    let Ok(action_id) = Uuid::parse_str(&event.event_id) else { return };
    changes.approvals.entry(action_id).or_insert_with(|| ApprovalRequest {
        sequence: fact.sequence,
        position,
        agent: fact.owner.clone(),
        user: requested.user.as_str().into(),
        thread_id: SqlKey::non_empty(&event.thread_id),
        correlation_id: turn_of(fact, event),
        tool: requested.tool.as_str().into(),
        arguments: SqlJson::from_text(&requested.arguments),
        chain_id: Uuid::parse_str(&requested.chain_id).ok(),
        step: i32::try_from(requested.step).unwrap_or(i32::MAX),
        requested_at: fact.at,
        outside: SqlJson::from_value(&requested.outside),
        expires_at: requested.expires_at.parse().ok().map(Time),
    });
}

fn project_verdict(fact: &ProjectedRecord, approval: &AgentApproval, changes: &mut TableChanges) {
    let Ok(action_id) = Uuid::parse_str(&approval.action_id) else { return };
    if matches!(approval.verdict_word(), words::Verdict::Approved | words::Verdict::Rejected) {
        let changed = Some(approval.arguments.as_str()).filter(|arguments| !arguments.is_empty());
        changes.consents.push(ActionVerdict {
            sequence: fact.sequence,
            changed_arguments: changed.map(SqlJson::from_text),
            action_id,
            agent: fact.owner.clone(),
            verdict: approval.verdict.as_str().into(),
            user: approval.user.as_str().into(),
            note: approval.note.as_str().into(),
            entered_by: entered_by(fact),
            at: fact.at,
        });
    }
}

#[cfg(test)]
mod tests {
    use kairo_core::principal::Principal;
    use kairo_proto::v1::{ChainEnded, ChainStepEnded, decided_event::Event};

    use super::{
        super::testing::{decision, project_all, record, sample_event_with},
        *,
    };

    #[test]
    fn an_approval_is_asked_for_and_decided_on_or_withdrawn() {
        let chain_id = Uuid::from_u128(5).to_string();
        let requested = ApprovalRequested {
            user: "ann".into(),
            tool: "email.send".into(),
            arguments: "{\"to\":\"x\"}".into(),
            chain_id: chain_id.clone(),
            step: 2,
            outside: vec!["mail:bob".into()],
            ..Default::default()
        };
        let requested = sample_event_with("t", "asked", Event::ApprovalRequested(requested));
        let action_id = requested.event_id.clone();
        let verdict = |sequence, verdict: &str| {
            let action_id = action_id.clone();
            let verdict = verdict.to_owned();
            let arguments = "{\"to\":\"y\"}".to_owned();
            let body = AgentApproval { action_id, verdict, user: "ann".into(), arguments, ..Default::default() };
            let mut record = record(sequence, "kairo.agent.bob.approval", body);
            record.envelope.entered_by = Some(Principal::api_key("k7"));
            record
        };
        let step = ChainStepEnded { chain_id: chain_id.clone(), step: 2, ..Default::default() };
        let chain = ChainEnded { chain_id, ..Default::default() };
        let changes = project_all([
            decision(3, "bob", [requested.clone()]),
            verdict(4, "happened"),
            verdict(5, "rejected"),
            decision(
                6,
                "bob",
                [
                    sample_event_with("t", "s", Event::ChainStepEnded(step)),
                    sample_event_with("t", "c", Event::ChainEnded(chain)),
                ],
            ),
        ]);
        let id = Uuid::parse_str(&action_id).unwrap();
        assert_eq!((changes.approvals[&id].tool.as_str(), changes.approvals[&id].step), ("email.send", 2));
        assert_eq!((changes.consents.len(), changes.consents[0].sequence), (1, 5));
        assert_eq!(changes.consents[0].entered_by, Some("api_key:k7".into()));
        assert_eq!(changes.consents[0].changed_arguments, Some(SqlJson::from_text("{\"to\":\"y\"}")));
        let withdrawn: Vec<_> = changes.withdrawals.iter().map(|withdrawal| withdrawal.step).collect();
        assert_eq!(withdrawn, [Some(2), None]);
    }
}
