//! Teams: how it is with them by the last that was said of it, and what their owners are told unasked.

use kairo_proto::{
    Decided,
    about::Turn,
    v1::{AgentBriefed, DecidedEvent, TeamChanged},
};
use kairo_read_model::sql_values::SqlKey;
use uuid::Uuid;

use super::{ProjectedRecord, decided_events};
use crate::changes::{SessionBriefing, TableChanges, TeamState};

pub fn project(fact: &ProjectedRecord, changes: &mut TableChanges) {
    for (_, event, what) in decided_events(fact) {
        let Decided::Turn(what) = what.about() else { continue };
        match what {
            Turn::Briefed(briefed) => project_briefing(fact, event, briefed, changes),
            Turn::TeamChanged(changed) => project_team_change(fact, changed, changes),
            Turn::Thought(_) | Turn::Action(_) | Turn::Failed(_) | Turn::Joined(_) => {}
            Turn::Goal(_) | Turn::Reflected(_) | Turn::Answered(_) => {}
            Turn::SubmoduleChanged(_) | Turn::SubmoduleFailed(_) | Turn::SubmoduleAsked(_) | Turn::Broadcast(_) => {}
        }
    }
}

fn project_team_change(fact: &ProjectedRecord, changed: &TeamChanged, changes: &mut TableChanges) {
    let state = TeamState {
        sequence: fact.sequence,
        at: fact.at,
        status: changed.status.as_str().into(),
        reason: changed.reason.as_str().into(),
        over_budget: changed.over_budget,
    };
    changes.teams.insert(fact.owner.clone(), state);
}

fn project_briefing(fact: &ProjectedRecord, event: &DecidedEvent, briefed: &AgentBriefed, changes: &mut TableChanges) {
    let Ok(event_id) = Uuid::parse_str(&event.event_id) else { return };
    changes.briefings.entry(event_id).or_insert_with(|| SessionBriefing {
        sequence: fact.sequence,
        agent: fact.owner.clone(),
        user: briefed.user.as_str().into(),
        thread_id: SqlKey::non_empty(&event.thread_id),
        work_thread_id: SqlKey::non_empty(&briefed.thread_id),
        told: briefed.told,
        reason: briefed.reason.as_str().into(),
        summary: briefed.summary.as_str().into(),
        at: fact.at,
    });
}

#[cfg(test)]
mod tests {
    use kairo_proto::v1::decided_event::Event;

    use super::{
        super::testing::{decision, project_all, sample_event_with},
        *,
    };

    #[test]
    fn the_last_that_was_said_of_a_team_is_in_force() {
        let changed = |status: &str, over_budget| {
            let body = TeamChanged {
                status: status.into(),
                reason: format!("now {status}"),
                over_budget,
                ..Default::default()
            };
            sample_event_with("", status, Event::TeamChanged(body))
        };
        let changes = project_all([
            decision(3, "market", [changed("paused", true), changed("active", false)]),
            decision(4, "market", [changed("paused", true)]),
            decision(5, "market-reader", [changed("archived", false)]),
        ]);
        let state = &changes.teams[&"market".into()];
        assert_eq!((state.status.as_str(), state.over_budget, state.sequence), ("paused", true, 4));
        assert_eq!(changes.teams[&"market-reader".into()].status.as_str(), "archived");
    }

    #[test]
    fn every_briefing_is_kept_once_told_or_not() {
        let briefed = |thread: &str, told| {
            let reason = "because".to_owned();
            let summary = if told { "a lot" } else { "" }.to_owned();
            let body = AgentBriefed { thread_id: "w".into(), user: "ann".into(), told, reason, summary };
            sample_event_with(thread, "briefed", Event::Briefed(body))
        };
        let changes = project_all([
            decision(3, "market", [briefed("talk", true)]),
            decision(4, "market", [briefed("talk", true), briefed("", false)]),
        ]);
        let mut kept: Vec<_> = changes.briefings.values().collect();
        kept.sort_by_key(|briefing| briefing.sequence);
        assert_eq!(kept.iter().map(|it| (it.sequence, it.told)).collect::<Vec<_>>(), [(3, true), (4, false)]);
        assert_eq!((&kept[0].thread_id, &kept[0].work_thread_id), (&Some("talk".into()), &Some("w".into())));
        assert_eq!((&kept[1].thread_id, kept[1].reason.as_str()), (&None, "because"));
    }
}
