//! Usage of models by agents: every completion of a decision, answered or failed, and every call that was given up.

use kairo_proto::{
    About, Body, Decided,
    about::{Chain, State, Thread, Turn},
    v1::{AgentDecision, Completion, CompletionError, DecidedEvent, GivenUpCall},
};
use kairo_read_model::sql_values::SqlKey;

use super::ProjectedRecord;
use crate::changes::{ModelCall, TableChanges};

pub fn project(fact: &ProjectedRecord, changes: &mut TableChanges) {
    project_entry(fact, changes);
    let (Body::AgentDecision(decision), Some(agent)) = (&fact.record.body, &fact.agent) else { return };
    let thread_id = decision.events.iter().find_map(|event| SqlKey::non_empty(&event.thread_id));
    let user = find_user(decision).and_then(SqlKey::non_empty);
    let given_up: Vec<Completion> = decision.given_up.iter().map(abandoned_completion).collect();
    for (index, completion) in (0..).zip(decision.completions.iter().chain(&given_up)) {
        let call = || model_call(fact, agent.clone(), thread_id.clone(), user.clone(), completion);
        changes.model_calls.entry((fact.record.envelope.id, index)).or_insert_with(call);
    }
}

/// Notes the API key that a user's message was sent with.
fn project_entry(fact: &ProjectedRecord, changes: &mut TableChanges) {
    let envelope = &fact.record.envelope;
    let is_sent = matches!(fact.record.body.about(), About::User(_)) && envelope.id == envelope.correlation_id;
    let key = envelope.entered_by.as_ref().filter(|by| is_sent && by.is_api_key());
    if let Some(key) = key {
        changes.entries.entry(envelope.id).or_insert_with(|| key.to_string().as_str().into());
    }
}

/// A call that was given up counts as one that failed.
fn abandoned_completion(call: &GivenUpCall) -> Completion {
    Completion {
        tier: call.tier.clone(),
        model: call.model.clone(),
        input_tokens: call.input_tokens,
        output_tokens: call.output_tokens,
        cached_tokens: call.cached_tokens,
        is_estimate: call.estimated,
        latency_ms: call.latency_ms,
        error: Some(CompletionError { kind: call.reason.clone(), ..Default::default() }),
        ..Default::default()
    }
}

fn model_call(
    fact: &ProjectedRecord,
    agent: SqlKey,
    thread_id: Option<SqlKey>,
    user: Option<SqlKey>,
    completion: &Completion,
) -> ModelCall {
    ModelCall {
        sequence: fact.sequence,
        agent,
        thread_id,
        user,
        tier: completion.tier.as_str().into(),
        model: completion.model.as_str().into(),
        module: completion.module.as_str().into(),
        decided_at: fact.at,
        input_tokens: clamp_tokens(completion.input_tokens),
        output_tokens: clamp_tokens(completion.output_tokens),
        latency_ms: i64::from(completion.latency_ms),
        failed: completion.error.as_ref().map(|error| error.kind.as_str().into()),
        cached_tokens: clamp_tokens(completion.cached_tokens.min(completion.input_tokens)),
        is_estimate: completion.is_estimate,
        correlation_id: fact.record.envelope.correlation_id,
    }
}

/// More than any model takes is cut, so that sums of what a model server makes up do not overflow.
fn clamp_tokens(tokens: u64) -> i64 {
    i64::from(u32::try_from(tokens).unwrap_or(u32::MAX))
}

/// The user that a decision names. Where it names none, it is the one of its thread.
fn find_user(decision: &AgentDecision) -> Option<&str> {
    decision.events.iter().filter_map(user_of_event).find(|user| !user.is_empty())
}

fn user_of_event(event: &DecidedEvent) -> Option<&str> {
    match event.event.as_ref()?.about() {
        Decided::Turn(Turn::Action(_)) => event.say().map(|say| say.user.as_str()),
        Decided::Thread(Thread::Created(created)) => Some(&created.user),
        Decided::Thread(Thread::Suggested(suggested)) => Some(&suggested.user),
        Decided::Chain(Chain::ApprovalRequested(requested)) => Some(&requested.user),
        Decided::Turn(Turn::Briefed(briefed)) => Some(&briefed.user),
        Decided::Turn(Turn::Thought(_) | Turn::Failed(_) | Turn::Joined(_) | Turn::TeamChanged(_)) => None,
        Decided::Turn(Turn::Goal(_) | Turn::Reflected(_) | Turn::Answered(_)) => None,
        Decided::Turn(Turn::SubmoduleChanged(_) | Turn::SubmoduleFailed(_)) => None,
        Decided::Turn(Turn::SubmoduleAsked(_) | Turn::Broadcast(_)) => None,
        Decided::Thread(Thread::Matched(_) | Thread::Summarized(_)) => None,
        Decided::Thread(Thread::Archived(_) | Thread::Completed(_) | Thread::Compacted(_)) => None,
        Decided::Chain(Chain::Started(_) | Chain::StepEnded(_) | Chain::Ended(_)) => None,
        Decided::State(State::Written(written)) => Some(&written.user),
        Decided::State(State::Deleted(deleted)) => Some(&deleted.user),
        Decided::Task(_) | Decided::Memory(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use kairo_core::{principal::Principal, record::Record};
    use kairo_proto::v1::{Say, ThreadMatched, UserMessage, agent_action::Action, decided_event::Event};

    use super::{
        super::testing::{project_all, record, sample_event_with},
        *,
    };
    use crate::projections::testing::sample_event;

    fn decision(sequence: u64, events: Vec<DecidedEvent>, completions: Vec<Completion>) -> Record {
        let body = AgentDecision { events, completions, ..Default::default() };
        record(sequence, "kairo.agent.bob.decision", body)
    }

    fn completion(model: &str, input_tokens: u64, output_tokens: u64) -> Completion {
        Completion {
            tier: "heavy".into(),
            model: model.into(),
            input_tokens,
            output_tokens,
            latency_ms: 250,
            ..Default::default()
        }
    }

    #[test]
    fn every_call_of_a_decision_is_counted_once() {
        let failed = Completion {
            error: Some(CompletionError { kind: "model_timeout".into(), ..Default::default() }),
            ..completion("large", 0, 0)
        };
        let once = decision(3, vec![sample_event("t", "think")], vec![completion("large", 100, 7), failed]);
        // Told again elsewhere in the log.
        let again = Record { sequence: 4, ..once.clone() };
        let changes = project_all([once, again]);
        let calls: Vec<&ModelCall> = changes.model_calls.values().collect();
        assert_eq!(calls.len(), 2);
        assert_eq!((calls[0].sequence, calls[0].agent.as_str(), calls[0].model.as_str()), (3, "bob", "large"));
        assert_eq!((calls[0].input_tokens, calls[0].output_tokens, calls[0].latency_ms), (100, 7, 250));
        assert_eq!(calls[0].thread_id, Some("t".into()));
        assert_eq!((&calls[0].failed, &calls[1].failed), (&None, &Some("model_timeout".into())));
    }

    #[test]
    fn calls_that_were_given_up_are_counted_with_what_they_took() {
        let given_up = GivenUpCall { output_tokens: 5, reason: "unused".into(), ..Default::default() };
        let body = AgentDecision {
            completions: vec![completion("large", 100, 7)],
            given_up: vec![given_up],
            ..Default::default()
        };
        let changes = project_all([record(3, "kairo.agent.bob.decision", body)]);
        let calls: Vec<&ModelCall> = changes.model_calls.values().collect();
        assert_eq!((calls.len(), calls[1].output_tokens, calls[1].failed.clone()), (2, 5, Some("unused".into())));
    }

    #[test]
    fn what_came_from_a_cache_and_what_is_an_estimate_is_kept() {
        let cached = Completion { cached_tokens: 60, ..completion("large", 100, 7) };
        let guessed = Completion { cached_tokens: 900, is_estimate: true, ..completion("large", 100, 7) };
        let changes = project_all([decision(3, vec![], vec![cached, guessed])]);
        let told: Vec<_> = changes.model_calls.values().map(|call| (call.cached_tokens, call.is_estimate)).collect();
        assert_eq!(told, [(60, false), (100, true)]);
    }

    #[test]
    fn what_is_sent_with_an_api_key_is_an_entry_of_it() {
        let sent = |sequence, by: Option<Principal>| {
            let mut record = record(sequence, "kairo.user.ann.message", UserMessage::default());
            record.envelope.correlation_id = record.envelope.id;
            record.envelope.entered_by = by;
            record
        };
        let changes =
            project_all([sent(3, Some(Principal::api_key("k7"))), sent(4, Some(Principal::loopback())), sent(5, None)]);
        assert_eq!(changes.entries.into_values().collect::<Vec<_>>(), ["api_key:k7".into()]);
    }

    #[test]
    fn a_call_is_of_the_first_thread_and_the_first_user_that_are_named() {
        let matched = sample_event_with("", "match", Event::ThreadMatched(ThreadMatched::default()));
        let say = Say { user: "ann".into(), ..Default::default() };
        let act = |say| Event::Action(kairo_proto::v1::AgentAction { action: Some(Action::Say(say)) });
        let events = vec![matched, sample_event("t", "think"), sample_event_with("u", "say", act(say))];
        let changes = project_all([decision(3, events, vec![completion("m", 1, 1)])]);
        let call = changes.model_calls.values().next().unwrap();
        assert_eq!((call.thread_id.clone(), call.user.clone()), (Some("t".into()), Some("ann".into())));
    }

    #[test]
    fn what_was_decided_without_a_model_took_nothing_and_no_number_is_too_large() {
        assert!(project_all([decision(3, vec![sample_event("t", "say")], vec![])]).model_calls.is_empty());
        let changes = project_all([decision(3, vec![], vec![completion("m", u64::MAX, 1)])]);
        let call = changes.model_calls.values().next().unwrap();
        assert_eq!((call.input_tokens, call.thread_id.clone()), (i64::from(u32::MAX), None));
    }
}
