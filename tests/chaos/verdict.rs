//! The verdict on a run: the log against the messages sent and the effects outside. Pure.

mod errands;
mod minds;
mod order;
mod work;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use kairo_core::{event_json, record::Record};
use kairo_proto::{
    Body,
    v1::{ProcessExited, ToolCall, ToolResult, decided_event::Event},
};

pub use self::{errands::Errands, work::Work};
use super::{
    calls::{Bill, Calls, Request, Struck},
    load::Sent,
    log::{Entry, Log},
    oracle::Effects,
    peers::{self, book::Line},
    scenario,
};
use crate::audit::{decision, tool_calls};

/// All that is known in the end.
pub struct Evidence<'a> {
    pub log: &'a Log,
    /// By message id.
    pub sent: &'a BTreeMap<String, Sent>,
    pub effects: &'a Effects,
    /// Lines that peers wrote down.
    pub errands: &'a [Line],
    /// Processes that ended, for any reason.
    pub gone: &'a [Struck],
    /// Requests to the model.
    pub requests: &'a [Request],
    /// Processes that were killed or frozen.
    pub struck: &'a [Struck],
    /// When everything had come to rest.
    pub over: Timestamp,
    /// Agents that begin a decision again when a message comes.
    pub restarting: &'a BTreeSet<String>,
}

/// The counts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Verdict {
    pub messages: usize,
    pub replies: usize,
    /// Answered together with another.
    pub joined: usize,
    /// Accepted and never answered.
    pub lost: Vec<String>,
    /// Answered more than once, or accepted as more than one event.
    pub doubled: Vec<String>,
    /// Answered with something else than what was asked for.
    pub misanswered: Vec<String>,
    pub refused: Vec<String>,
    /// Dealt with before another of the same user that was acknowledged earlier.
    pub out_of_order: Vec<String>,
    pub calls: Calls,
    pub asked: usize,
    pub done_once: usize,
    pub not_done: usize,
    /// Effects that can be tried again until they are done, and were not.
    pub not_done_keyed: Vec<String>,
    pub done_twice_keyed: Vec<String>,
    pub done_twice_unkeyed: Vec<String>,
    /// Said to have been done, but not done.
    pub pretended: Vec<String>,
    /// Done, though nobody asked for it.
    pub unasked: Vec<String>,
    pub in_doubt: usize,
    /// Actions in doubt that could have been done again under their key.
    pub needlessly_in_doubt: Vec<String>,
    /// Effects that failed in another way than being stopped, which is all that the load gives reason for.
    pub needlessly_failed: Vec<String>,
    /// Other ways in which actions did not succeed.
    pub failures: BTreeMap<String, usize>,
    pub chains: usize,
    pub chains_not_ended: Vec<String>,
    pub chains_ended_twice: Vec<String>,
    /// Steps whose tool was called more than once.
    pub steps_twice: Vec<String>,
    /// Times that tasks were due, or hooks triggered, and that were dealt with.
    pub task_times: usize,
    pub task_times_twice: Vec<String>,
    /// Tasks of which a time was left out, or that never came to be.
    pub task_times_missed: Vec<String>,
    /// Tasks of which a time was dealt with and nothing was done, or done more than once.
    pub task_times_idle: Vec<String>,
    /// To which thread a message belongs, and whether a tool may be called.
    pub questions: usize,
    pub questions_open: Vec<String>,
    /// Calls that nobody had consented to.
    pub unconsented: Vec<String>,
    /// Messages that were put into more than one thread.
    pub placed_twice: Vec<String>,
    pub work: Work,
    pub errands: Errands,
    pub longest_reply: Option<Stall>,
    pub longest_silence: Option<Stall>,
}

impl Verdict {
    /// Judges an action that did not succeed by its error; `asked` is the effect it was asked for, if any.
    fn judge_failure(&mut self, result: &ToolResult, asked: Option<&Asked>) {
        let kind = result.error.as_ref().map_or("", |error| error.kind.as_str());
        match kind {
            "in_doubt" if asked.is_some_and(|asked| asked.keyed && !asked.is_of_peer) => {
                self.needlessly_in_doubt.push(result.action_id.clone());
            }
            "in_doubt" => self.in_doubt += 1,
            other => {
                *self.failures.entry(other.to_owned()).or_default() += 1;
                // Asking about another action may fail: then it is said that it can be tried again.
                if asked.is_some_and(|asked| !asked.is_of_peer) && !matches!(other, "timed_out" | "canceled") {
                    self.needlessly_failed.push(format!("{other}: {}", result.action_id));
                }
            }
        }
    }
}

/// A wait: how long, and for what.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Stall {
    pub seconds: f64,
    pub what: String,
}

/// An effect that an action asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    keyed: bool,
    effect: String,
    background: bool,
    /// True if one of the peers has the effect, which may refuse.
    is_of_peer: bool,
    /// True if an agent may call again, so that a reported failure does no harm.
    is_repeatable: bool,
}

impl Asked {
    /// The name under which the oracle counts it.
    pub fn name(&self) -> &str {
        &self.effect
    }
}

impl Evidence<'_> {
    pub fn judge(&self) -> Verdict {
        let mut verdict = Verdict { messages: self.accepted().count(), ..Verdict::default() };
        self.judge_replies(&mut verdict);
        self.judge_effects(&mut verdict);
        self.judge_minds(&mut verdict);
        self.judge_order(&mut verdict);
        verdict.work = self.judge_work();
        verdict.errands = self.judge_errands();
        verdict.calls = self.calls();
        verdict.longest_silence = self.longest_silence();
        verdict
    }

    fn calls(&self) -> Calls {
        let agents = self.sent.iter().map(|(id, sent)| (id.clone(), sent.agent.clone())).collect();
        let Self { requests, struck, over, restarting, .. } = *self;
        Bill { requests, struck, over, restarting, agents: &agents }.judge(self.own())
    }

    /// The events of the log as Kairo wrote them, for the audit of its invariants. What stands there twice because it
    /// was sent twice, from outside or by the router, which remembers nothing, the agent leaves out; so does this.
    pub fn records(&self) -> Vec<Record> {
        let mut seen = BTreeSet::new();
        let own = self.own().map(|entry| &entry.record);
        let may_stand_twice = |body: &Body| matches!(body, Body::UserMessage(_) | Body::AgentMessage(_));
        own.filter(|record| !may_stand_twice(&record.body) || seen.insert(record.envelope.id)).cloned().collect()
    }

    fn own(&self) -> impl Iterator<Item = &Entry> {
        self.log.entries.iter().filter(|entry| !entry.again)
    }

    fn accepted(&self) -> impl Iterator<Item = (&String, &Sent)> {
        self.sent.iter().filter(|(_, sent)| !sent.accepted.is_empty())
    }

    fn judge_replies(&self, verdict: &mut Verdict) {
        let mut replies: BTreeMap<String, Vec<(Timestamp, String)>> = BTreeMap::new();
        for entry in self.own() {
            for event in event_json::events(&entry.record).into_iter().filter(|event| event.is_final_reply()) {
                let answered = event.payload.get("message_id").and_then(|id| id.as_str()).unwrap_or_default();
                let reply = (entry.stored, event.text().to_owned());
                replies.entry(answered.to_owned()).or_default().push(reply);
            }
        }
        let joined = self.joined();
        for (id, sent) in self.accepted() {
            let own = replies.get(id).map(Vec::as_slice).unwrap_or_default();
            let others = joined.get(id).map(Vec::as_slice).unwrap_or_default();
            verdict.replies += own.len();
            verdict.joined += others.len();
            if own.len() + others.len() > 1 || sent.accepted.len() > 1 {
                verdict.doubled.push(id.clone());
            }
            let answered = others.first().unwrap_or(id);
            match replies.get(answered).and_then(|replies| replies.first()) {
                None => verdict.lost.push(id.clone()),
                Some((stored, text)) => {
                    if !scenario::answers(text, answered) {
                        verdict.misanswered.push(format!("{id}: {text}"));
                    }
                    longer(&mut verdict.longest_reply, sent.tried, *stored, || format!("the reply to {id}"));
                }
            }
        }
        let refused = self.sent.iter().filter_map(|(id, sent)| Some(format!("{id}: {}", sent.refused.as_ref()?)));
        verdict.refused.extend(refused);
    }

    /// The messages that others were answered with, by those.
    fn joined(&self) -> BTreeMap<String, Vec<String>> {
        let mut into: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for event in self.own().filter_map(|entry| decision(&entry.record)).flat_map(|decision| &decision.events) {
            if let Some(Event::Joined(joined)) = &event.event {
                into.entry(joined.message_id.clone()).or_default().push(joined.into_message_id.clone());
            }
        }
        into
    }

    fn judge_effects(&self, verdict: &mut Verdict) {
        let asked = self.asked();
        let (mut ended_well, mut exited) = (BTreeSet::new(), BTreeSet::new());
        for entry in self.own() {
            let process = ProcessExited::of(&entry.record.body).filter(|process| process.outcome == "exited");
            exited.extend(process.map(|process| process.action_id.as_str()));
            let Some(result) = ToolResult::of(&entry.record.body) else { continue };
            if result.ok {
                ended_well.insert(result.action_id.as_str());
            } else {
                verdict.judge_failure(result, asked.get(&result.action_id));
            }
        }
        let mut effects = BTreeSet::new();
        for (action, asked) in &asked {
            let done = self.done(asked);
            // A process that goes on by itself has only been started.
            let done_it_says =
                ended_well.contains(action.as_str()) && (!asked.background || exited.contains(action.as_str()));
            if done_it_says && done == 0 {
                verdict.pretended.push(format!("{} by action {action}", asked.effect));
            }
            if !effects.insert(asked.effect.as_str()) {
                continue;
            }
            match done {
                0 => {
                    verdict.not_done += 1;
                    if asked.keyed && !asked.is_of_peer {
                        verdict.not_done_keyed.push(asked.effect.clone());
                    }
                }
                1 => verdict.done_once += 1,
                _ if asked.keyed => verdict.done_twice_keyed.push(asked.effect.clone()),
                _ => verdict.done_twice_unkeyed.push(asked.effect.clone()),
            }
        }
        verdict.asked = effects.len();
        let happened = self.effects.keyed.keys().chain(self.effects.unkeyed.keys());
        verdict.unasked.extend(happened.filter(|effect| !effects.contains(effect.as_str())).cloned());
    }

    fn done(&self, asked: &Asked) -> usize {
        let effects = if asked.keyed { &self.effects.keyed } else { &self.effects.unkeyed };
        effects.get(&asked.effect).copied().unwrap_or(0)
    }

    /// The effects that agents have asked for, by action.
    fn asked(&self) -> BTreeMap<String, Asked> {
        let decisions = self.own().filter_map(|entry| decision(&entry.record));
        decisions.flat_map(tool_calls).filter_map(|(action, call)| Some((action, effect(call)?))).collect()
    }

    fn longest_silence(&self) -> Option<Stall> {
        let first = self.accepted().map(|(_, sent)| sent.tried).min()?;
        let mut longest = None;
        let mut before: Option<&Entry> = None;
        for entry in self.log.entries.iter().filter(|entry| entry.stored >= first) {
            if let Some(before) = before {
                let between =
                    || format!("nothing was written between {} and {}", before.record.sequence, entry.record.sequence);
                longer(&mut longest, before.stored, entry.stored, between);
            }
            before = Some(entry);
        }
        longest
    }
}

fn longer(longest: &mut Option<Stall>, from: Timestamp, to: Timestamp, what: impl FnOnce() -> String) {
    let seconds = to.duration_since(from).as_secs_f64();
    if longest.as_ref().is_none_or(|longest| longest.seconds < seconds) {
        *longest = Some(Stall { seconds, what: what() });
    }
}

/// The effect that a call asks for, if it is one of ours.
pub fn effect(call: &ToolCall) -> Option<Asked> {
    let arguments: serde_json::Value = serde_json::from_str(&call.arguments).ok()?;
    if let Some((peer, keyed)) = peers::of_tool(&call.tool) {
        let is_repeatable = peer.is_repeatable(&call.tool);
        let effect = arguments.get("effect")?.as_str()?.to_owned();
        return Some(Asked { keyed, effect, background: false, is_of_peer: true, is_repeatable });
    }
    let keyed = call.tool == "http.get";
    let effect = if keyed {
        arguments.get("url")?.as_str()?.rsplit('/').next()?
    } else {
        arguments.get("args")?.get(0)?.as_str()?
    };
    let background = call.tool == "process.spawn";
    Some(Asked { keyed, effect: effect.to_owned(), background, is_of_peer: false, is_repeatable: false })
}

#[cfg(test)]
mod tests;
