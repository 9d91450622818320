//! Making the decisions of a log again, message by message, and what came of each.

use std::collections::BTreeSet;

use kairo_events::ids::Name;
use kairo_mind::replay::changes::ReplayChanges;
use kairo_proto::v1::LogMessage;

use crate::{
    replay_dispatch::{Dispatch, DispatchStep, RerunDecision, Share},
    report::{DecisionReport, Range, Report},
    timeline::BrokenLog,
};

/// The result of replaying a message.
#[derive(Debug)]
pub enum ReplayProgress {
    /// There is nothing to be told of it.
    NoDecision,
    /// It is a decision, which was made again.
    Decision(Box<DecisionReport>),
    /// It takes a newer build, or stands behind what is looked at: the rest of the log need not be read.
    End,
}

/// Agents of a log, as far as it was taken in.
#[derive(Debug)]
pub struct Replayer {
    dispatch: Dispatch,
    share: Share,
}

impl Replayer {
    /// Makes the decisions of these agents again, or of all where none are named. Where secrets were sealed on the way, that
    /// takes their key.
    pub fn new(agents: BTreeSet<Name>, range: Range, changes: ReplayChanges, secret_key: Option<[u8; 32]>) -> Self {
        let dispatch = Dispatch::new(agents, range, &changes);
        Self { dispatch, share: Share::new(changes, secret_key) }
    }

    /// Takes in the next message of the log.
    ///
    /// # Errors
    /// When the message is none of a log, or does not stand where it belongs; before the range also when a decision does not
    /// follow from what was taken in, since nothing behind it could be trusted.
    pub fn replay(&mut self, message: &LogMessage) -> Result<ReplayProgress, BrokenLog> {
        let Self { dispatch, share } = self;
        let came = match dispatch.next(message)? {
            DispatchStep::Skip => None,
            DispatchStep::Stop => return Ok(ReplayProgress::End),
            DispatchStep::ForAgent(_, task) | DispatchStep::ForAll(task) => share.run(task)?,
        };
        Ok(came.map_or(ReplayProgress::NoDecision, |RerunDecision { decision, .. }| {
            dispatch.count(&decision);
            ReplayProgress::Decision(decision)
        }))
    }

    /// The agents that were asked for and of which the log had nothing.
    pub fn missing(&self) -> Vec<&Name> {
        self.dispatch.missing()
    }

    /// Builds the report on all messages taken in, by a build of this version; `decisions` are those reported.
    pub fn report(&self, version: &str, decisions: Vec<DecisionReport>) -> Report {
        self.dispatch.report(version, self.share.states(), decisions)
    }
}

#[cfg(test)]
mod tests {
    use kairo_mind::{
        replay::{RequestPart, changes::ReplayLimit},
        request::Tool,
    };
    use kairo_proto::v1::{ToolSpec, agent_action::Action, decided_event::Event};

    use super::*;
    use crate::report::OutcomeClass;
    use crate::testing::{TestAgent, call_completion, name, text_completion, tools, with_changed_decision};

    /// A log with three decisions, and where they stand.
    fn log() -> (Vec<LogMessage>, [u64; 3]) {
        let mut agent = TestAgent::new("cook");
        agent.hears("", "time please");
        let asks = agent.decide(&[call_completion("tools.now")]);
        agent.learns(asks, "2");
        let tells = agent.decide(&[text_completion("It is 2.")]);
        agent.hears("", "thanks");
        let last = agent.decide(&[text_completion("You are welcome.")]);
        (agent.messages(), [asks, tells, last])
    }

    fn replayed(messages: &[LogMessage], range: Range, changes: ReplayChanges) -> Report {
        let mut replaying = Replayer::new(BTreeSet::new(), range, changes, None);
        let mut decisions = Vec::new();
        for message in messages {
            match replaying.replay(message).unwrap() {
                ReplayProgress::NoDecision => {}
                ReplayProgress::Decision(decision) => decisions.push(*decision),
                ReplayProgress::End => break,
            }
        }
        replaying.report("1", decisions)
    }

    fn classes(report: &Report) -> Vec<(u64, OutcomeClass)> {
        report.decisions.iter().map(|it| (it.sequence, it.outcome)).collect()
    }

    #[test]
    fn decisions_before_the_range_are_folded_and_those_behind_it_are_not_read() {
        let (messages, [asks, tells, last]) = log();
        let whole = replayed(&messages, Range::default(), ReplayChanges::default());
        assert_eq!(classes(&whole), [asks, tells, last].map(|at| (at, OutcomeClass::Same)));
        assert!(whole.counts.all_same() && whole.states.contains_key(&name("cook")));
        let range = Range { from: Some(tells), to: Some(tells) };
        let part = replayed(&messages, range, ReplayChanges::default());
        assert_eq!((classes(&part), part.range), (vec![(tells, OutcomeClass::Same)], range));
        let read: Report = serde_json::from_str(&serde_json::to_string(&part).unwrap()).unwrap();
        assert_eq!(read, part, "it is read as it was written");
    }

    #[test]
    fn another_prompt_or_catalogue_drifts_in_that_part_and_is_never_the_same() {
        let (messages, [asks, tells, last]) = log();
        let prompt = ReplayChanges { prompt: Some("Be long.".into()), ..ReplayChanges::default() };
        let report = replayed(&messages, Range::default(), prompt);
        assert_eq!(classes(&report), [asks, tells, last].map(|at| (at, OutcomeClass::Drifted)));
        assert_eq!((report.counts.same, report.counts.drifted), (0, 3));
        assert_eq!(report.changed, ["prompt"]);
        let first = &report.decisions[0];
        assert_eq!(first.drifted[0].parts, [RequestPart::System]);
        assert!(first.differences.is_empty() && first.recorded.is_some(), "the recorded answers lead to the same");

        let other = ToolSpec { description: "The time of day".into(), ..tools()[0].clone() };
        let changes = ReplayChanges { tools: Some(vec![Tool::from(other)]), ..ReplayChanges::default() };
        let report = replayed(&messages, Range { from: Some(last), to: None }, changes);
        assert_eq!(report.decisions[0].drifted[0].parts, [RequestPart::Tools]);
    }

    #[test]
    fn a_limit_changes_what_is_decided_where_it_counts() {
        let (messages, [asks, ..]) = log();
        let wide = ReplayChanges { limits: vec![(ReplayLimit::MaxSteps, 40)], ..ReplayChanges::default() };
        assert!(replayed(&messages, Range::default(), wide).counts.all_same());
        let narrow = ReplayChanges { limits: vec![(ReplayLimit::MaxSteps, 1)], ..ReplayChanges::default() };
        let report = replayed(&messages, Range::default(), narrow);
        assert_ne!(report.decisions.iter().find(|it| it.sequence == asks).unwrap().outcome, OutcomeClass::Same);
        assert_eq!(report.changed, ["max_steps=1"]);
    }

    #[test]
    fn what_was_changed_in_a_log_is_told_with_its_place() {
        let (messages, [_, tells, _]) = log();
        let changed = with_changed_decision(&messages, tells, |decision| {
            let said = decision.events.iter_mut().find_map(|event| {
                let Some(Event::Action(action)) = &mut event.event else { return None };
                action.action.as_mut()
            });
            if let Some(Action::Say(say)) = said {
                say.text = "It is 3.".into();
            }
        });
        let report = replayed(&changed, Range { from: Some(tells), to: Some(tells) }, ReplayChanges::default());
        let decision = &report.decisions[0];
        assert_eq!(decision.outcome, OutcomeClass::Reworded);
        let place = &decision.differences[0];
        assert_eq!((place.recorded.as_str(), place.made.as_str()), (r#""It is 3.""#, r#""It is 2.""#));
        assert!(decision.recorded.is_some() && decision.made.is_some());
    }

    #[test]
    fn what_was_done_to_something_else_that_was_there_is_never_the_same() {
        let [soup, cake] = [1, 2].map(|id| uuid::Uuid::from_u128(id).to_string());
        let mut agent = TestAgent::new("cook");
        agent.hears(&soup, "soup please");
        agent.decide(&[text_completion("Soup.")]);
        agent.hears(&cake, "cake please");
        let last = agent.decide(&[text_completion("Cake.")]);
        let messages = agent.messages();
        assert!(replayed(&messages, Range::default(), ReplayChanges::default()).counts.all_same());
        let changed = with_changed_decision(&messages, last, |decision| {
            let text = serde_json::to_string(decision).unwrap().replace(&cake, &soup);
            *decision = serde_json::from_str(&text).unwrap();
        });
        let report = replayed(&changed, Range::default(), ReplayChanges::default());
        let decision = report.decisions.iter().find(|it| it.sequence == last).unwrap();
        assert_eq!(decision.outcome, OutcomeClass::Differs);
        assert!(decision.differences[0].at.ends_with("thread_id"), "{:?}", decision.differences);
    }

    #[test]
    fn holes_swapped_messages_and_decisions_that_cannot_be_read_are_never_the_same() {
        let (messages, [asks, tells, _]) = log();
        let without =
            |gone: u64| -> Vec<LogMessage> { messages.iter().filter(|it| it.sequence != gone).cloned().collect() };
        let hole = replayed(&without(asks - 1), Range::default(), ReplayChanges::default());
        assert_eq!(classes(&hole)[0], (asks, OutcomeClass::NotReplayable));
        let range = Range { from: Some(tells), to: None };
        let mut replaying = Replayer::new(BTreeSet::new(), range, ReplayChanges::default(), None);
        let broken = without(asks - 1).iter().find_map(|message| replaying.replay(message).err());
        assert!(matches!(broken, Some(BrokenLog::Hole { sequence }) if sequence == asks), "{broken:?}");

        let mut swapped = messages.clone();
        swapped.swap(3, 4);
        let mut replaying = Replayer::new(BTreeSet::new(), Range::default(), ReplayChanges::default(), None);
        let broken = swapped.iter().find_map(|message| replaying.replay(message).err());
        assert!(matches!(broken, Some(BrokenLog::Order { .. })), "{broken:?}");

        let mut garbage = messages;
        garbage.iter_mut().find(|it| it.sequence == tells).unwrap().data = vec![0xff; 9];
        let report = replayed(&garbage, Range::default(), ReplayChanges::default());
        assert_eq!(classes(&report)[1], (tells, OutcomeClass::NotReplayable));
        assert_eq!(report.counts.unreadable, 1);
    }

    #[test]
    fn only_the_agents_that_were_asked_for_are_looked_at_and_those_without_a_log_are_named() {
        let (messages, _) = log();
        let agents: BTreeSet<Name> = ["cook", "gardener"].map(name).into();
        let mut replaying = Replayer::new(agents, Range::default(), ReplayChanges::default(), None);
        messages.iter().for_each(|message| drop(replaying.replay(message).unwrap()));
        assert_eq!(replaying.missing(), [&name("gardener")]);
        let mut others = Replayer::new([name("gardener")].into(), Range::default(), ReplayChanges::default(), None);
        assert!(messages.iter().all(|message| matches!(others.replay(message).unwrap(), ReplayProgress::NoDecision)));
    }
}
