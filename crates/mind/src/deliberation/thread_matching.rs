//! Finds the thread that a message belongs to: `thread.match`.

use kairo_events::ids;
use kairo_proto::v1::{AgentJoined, ThreadCreated, ThreadMatched, ThreadSuggested, decided_event::Event};
use kairo_proto::words::{ChainOutcome, MatchedBy, OfferAction, ThreadKind, ThreadMatch};
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{AnswerFailure, Deliberation, Purpose};
use crate::{
    answer_schemas,
    message_content::MessageContent,
    model_answer::extract_json,
    prompts,
    request::ModelRequest,
    state::AgentTurn,
    thread::{Thread, cut_to},
};

/// Threads a model chooses from, those used last.
const CANDIDATES: usize = 30;
/// Longest excerpt of each summary that the model is shown, in bytes.
const SUMMARY_BYTES: usize = 500;
/// Longest reason that is kept, in bytes.
const REASON_BYTES: usize = 1_000;

#[derive(Deserialize)]
struct MatchAnswer {
    action: String,
    #[serde(default)]
    thread_id: String,
    #[serde(default)]
    reason: String,
}

impl Deliberation<'_> {
    /// Finds the thread, if need be by asking a model.
    pub(super) fn match_thread(&mut self, turn_id: Uuid) {
        let Some(turn) = self.turn(turn_id) else { return };
        if let Some(offer) = &turn.offer {
            let Some(accepted) = offer.accepted else { return };
            let action = match (accepted, self.mind.threads.contains_key(&offer.thread_id)) {
                (false, _) => ThreadMatch::Continue,
                (true, true) => ThreadMatch::Switch,
                (true, false) => ThreadMatch::New,
            };
            let thread_id = if accepted { offer.thread_id.clone() } else { offer.current_thread_id.clone() };
            return self.go_to_thread(turn_id, &thread_id, &action, "", &MatchedBy::User);
        }
        let user = turn.user.clone();
        let Some(current) = self.current_thread(&user) else {
            return self.go_to_thread(turn_id, &new_thread_id(turn_id), &ThreadMatch::New, "", &MatchedBy::Only);
        };
        let joined = self.turns_joined_with(turn_id).into_iter().map(|(_, turn)| turn);
        let words: Vec<String> =
            joined.chain([turn]).filter_map(|turn| turn.unplaced.as_ref()).map(MessageContent::in_words).collect();
        let words = words.join("\n");
        let described = |(id, thread): (&String, &Thread)| {
            let summary = cut_to(&subject_of(thread), SUMMARY_BYTES);
            json!({ "thread_id": id, "title": thread.title, "summary": summary })
        };
        let threads: Vec<Value> = self.threads_of(&user).into_iter().take(CANDIDATES).map(described).collect();
        let asked = json!({ "message": words, "thread_id": current, "threads": threads });
        let request = ModelRequest::from_prompt("fast", prompts::MATCH, asked.to_string());
        self.ask_model(turn_id, Purpose::Match, request.with_answer_schema(answer_schemas::thread_match()));
    }

    /// Acts on the model's choice of a thread for the message.
    pub(super) fn act_on_match(&mut self, turn_id: Uuid, text: &str) -> Result<(), AnswerFailure> {
        let found: MatchAnswer = serde_json::from_value(extract_json(text).map_err(AnswerFailure::malformed_answer)?)
            .map_err(|error| {
            AnswerFailure::malformed_answer(format!("expected an action and a thread_id: {error}"))
        })?;
        let Some(turn) = self.turn(turn_id) else { return Ok(()) };
        let user = turn.user.clone();
        let message_id = turn.message_id.clone();
        let current = self.current_thread(&user).unwrap_or_default();
        let reason = cut_to(&found.reason, REASON_BYTES);
        // Models say `switch` where they are asked for `suggest_switch`.
        let offered = OfferAction::known(&found.action);
        let matched = ThreadMatch::known(&found.action);
        let elsewhere = offered == Some(OfferAction::SuggestSwitch) || matched == Some(ThreadMatch::Switch);
        let switches = elsewhere && found.thread_id != current;
        let (thread_id, summary) = match (&offered, &matched) {
            (_, Some(ThreadMatch::New)) => {
                self.go_to_thread(turn_id, &new_thread_id(turn_id), &ThreadMatch::New, &reason, &MatchedBy::Model);
                return Ok(());
            }
            (Some(OfferAction::SuggestNew), _) => (new_thread_id(turn_id), String::new()),
            _ if switches => match self.mind.threads.get(&found.thread_id).filter(|thread| thread.user == user) {
                Some(thread) => (found.thread_id.clone(), subject_of(thread)),
                None => {
                    return Err(AnswerFailure::malformed_answer(format!(
                        "there is no thread {:?} among them",
                        found.thread_id
                    )));
                }
            },
            _ if elsewhere || matched == Some(ThreadMatch::Continue) => {
                self.go_to_thread(turn_id, &current, &ThreadMatch::Continue, &reason, &MatchedBy::Model);
                return Ok(());
            }
            _ => {
                let other = found.action;
                let expected = "expected continue, suggest_switch, suggest_new or new";
                return Err(AnswerFailure::malformed_answer(format!("the action {other:?} is none: {expected}")));
            }
        };
        self.make_room_for_offer(&user);
        let suggested = ThreadSuggested {
            message_id,
            user,
            action: if switches { OfferAction::SuggestSwitch } else { OfferAction::SuggestNew }.text(),
            thread_id,
            current_thread_id: current.clone(),
            reason,
            summary,
        };
        let correlation = self.turn(turn_id).map_or(turn_id, |turn| turn.correlation);
        self.add_event_to(turn_id, &current, correlation, Event::ThreadSuggested(suggested));
        Ok(())
    }

    /// Without an answer the message stays where its user is.
    pub(super) fn stay_in_thread(&mut self, turn_id: Uuid) {
        let user = self.turn(turn_id).map(|turn| turn.user.clone()).unwrap_or_default();
        let current = self.current_thread(&user).unwrap_or_else(|| new_thread_id(turn_id));
        self.go_to_thread(turn_id, &current, &ThreadMatch::Continue, "", &MatchedBy::Only);
    }

    pub(super) fn go_to_thread(
        &mut self,
        turn_id: Uuid,
        thread_id: &str,
        action: &ThreadMatch,
        reason: &str,
        by: &MatchedBy,
    ) {
        let Some(turn) = self.turn(turn_id) else { return };
        let correlation = turn.correlation;
        let matched = ThreadMatched {
            message_id: turn.message_id.clone(),
            thread_id: thread_id.to_owned(),
            action: action.text(),
            reason: reason.to_owned(),
            by: by.text(),
        };
        self.add_event_to(turn_id, thread_id, correlation, Event::ThreadMatched(matched));
        if *by != MatchedBy::Joined {
            self.work.push_back(turn_id);
        }
    }

    /// Says that a thread has begun, the first time something is thought in it.
    pub(super) fn announce_thread(&mut self, turn_id: Uuid) {
        let Some(turn) = self.turn(turn_id) else { return };
        let thread_id = turn.thread_id.clone();
        if self.mind.threads.get(&thread_id).is_some_and(|thread| thread.announced) || thread_id.is_empty() {
            return;
        }
        let kind = if turn.agent_request().is_some() { ThreadKind::Request } else { ThreadKind::Topic };
        let user = turn.user.clone();
        let kind = kind.text();
        self.add_event(turn_id, Event::ThreadCreated(ThreadCreated { thread_id, kind, user, title: String::new() }));
    }

    /// The turns of messages that came before this one and are answered with it.
    pub(super) fn join_earlier_messages(&mut self, turn_id: Uuid) {
        let Some(turn) = self.turn(turn_id) else { return };
        let into = turn.correlation;
        let into_message = turn.message_id.clone();
        let thread_id = turn.thread_id.clone();
        let joined = self.turns_joined_with(turn_id).into_iter();
        let joined: Vec<_> = joined.map(|(id, turn)| (id, turn.message_id.clone(), turn.unplaced.is_some())).collect();
        for (id, message_id, unplaced) in joined {
            // Of a turn that ends before it has a thread, they are answered where it is.
            if unplaced && !thread_id.is_empty() {
                // What it says must be in the thread before it is answered there.
                self.go_to_thread(id, &thread_id, &ThreadMatch::Continue, "", &MatchedBy::Joined);
                self.apply_decided();
            }
            // Of a turn that was to go on from its calls, what came of them stands in the thread.
            self.end_chain_of(id, &ChainOutcome::Replaced, "another message came, which is answered with it");
            let event = AgentJoined {
                message_id,
                into_correlation_id: into.to_string(),
                into_message_id: into_message.clone(),
            };
            self.add_event(id, Event::Joined(event));
        }
    }

    /// The turns that are answered with this one: of the same thread or, where that is not known yet, of the same user.
    fn turns_joined_with(&self, turn_id: Uuid) -> Vec<(Uuid, &AgentTurn)> {
        // Nobody is answered in a thread of work, which may be the same user's.
        let own = self.turn(turn_id).filter(|own| !self.mind.is_background_thread(&own.thread_id));
        let Some(own) = own else { return Vec::new() };
        let together = |turn: &AgentTurn| match turn.unplaced {
            Some(_) => turn.user == own.user,
            None => turn.thread_id == own.thread_id,
        };
        let joined = self.mind.turns_due_before(self.decision.cursor).into_iter();
        joined.filter(|(id, turn)| **id != turn_id && together(turn)).map(|(id, turn)| (*id, turn)).collect()
    }

    /// The thread a user is in: where they last said something.
    pub(super) fn current_thread(&self, user: &str) -> Option<String> {
        self.threads_of(user).into_iter().next().map(|(id, _)| id.clone())
    }

    /// A user's threads that are not put away, those used last first.
    fn threads_of(&self, user: &str) -> Vec<(&String, &Thread)> {
        let all = self.mind.threads.iter().map(|(id, thread)| (id, &**thread));
        let his = all.filter(|(_, thread)| thread.user == user && !thread.archived);
        let mut threads: Vec<_> = his.filter(|(_, thread)| thread.heard > 0).collect();
        threads.sort_by_key(|(_, thread)| std::cmp::Reverse(thread.heard));
        threads
    }
}

/// The id of the thread that a message begins.
fn new_thread_id(turn_id: Uuid) -> String {
    ids::derive(turn_id, "thread").to_string()
}

/// Returns the subject of a thread: its summary or, before it has one, the words it began with.
fn subject_of(thread: &Thread) -> String {
    match thread.summary.is_empty() {
        false => thread.summary.clone(),
        true => thread.first_words(),
    }
}
