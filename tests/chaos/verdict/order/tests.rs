use std::collections::BTreeSet;

use jiff::Timestamp;
use kairo_core::{
    envelope::{Envelope, Origin},
    record::Record,
    subjects::Service,
};
use kairo_proto::v1::{AgentDecision, AgentJoined, AgentMessage, DecidedEvent, UserMessage};
use uuid::Uuid;

use super::*;
use crate::chaos::log::{Entry, Log};

/// A log of users' messages, deliveries to agents and decisions, in order.
#[derive(Default)]
struct Told(Log);

fn id(kind: &str, message: &str) -> Uuid {
    kairo_core::ids::from_parts(kind, &[message])
}

impl Told {
    fn write(mut self, subject: &str, envelope: Envelope, body: Body, again: bool) -> Self {
        let sequence = self.0.entries.len() as u64 + 1;
        let stored = Timestamp::UNIX_EPOCH;
        self.0.entries.push(Entry {
            stored,
            record: Record { sequence, subject: subject.to_owned(), envelope, body },
            again,
        });
        self
    }

    fn says(self, user: &str, message: &str) -> Self {
        let envelope =
            Envelope::from_outside(id("user", message), Service::Gateway, Origin::User, Timestamp::UNIX_EPOCH);
        let (user, message_id) = (user.to_owned(), message.to_owned());
        let subject = format!("kairo.user.{user}.message");
        self.write(&subject, envelope, UserMessage { user, message_id, ..UserMessage::default() }.into(), false)
    }

    fn delivered(self, agent: &str, message: &str) -> Self {
        let entered =
            Envelope::from_outside(id("user", message), Service::Gateway, Origin::User, Timestamp::UNIX_EPOCH);
        let envelope = entered.follow_up(id("agent", message), Service::Router, Origin::User, Timestamp::UNIX_EPOCH);
        self.write(&format!("kairo.agent.{agent}.message"), envelope, AgentMessage::default().into(), false)
    }

    fn decided(self, agent: &str, message: &str, joined: &[&str], again: bool) -> Self {
        let event = |joined: &&str| DecidedEvent {
            correlation_id: id("user", joined).to_string(),
            event: Some(Event::Joined(AgentJoined {
                into_correlation_id: id("user", message).to_string(),
                ..AgentJoined::default()
            })),
            ..DecidedEvent::default()
        };
        let input_id = id("agent", message).to_string();
        let decision =
            AgentDecision { input_id, events: joined.iter().map(event).collect(), ..AgentDecision::default() };
        let envelope =
            Envelope::from_outside(Uuid::nil(), Service::AgentRuntime, Origin::Internal, Timestamp::UNIX_EPOCH);
        self.write(&format!("kairo.agent.{agent}.decision"), envelope, decision.into(), again)
    }

    fn out_of_order(&self) -> Vec<String> {
        let (sent, effects, restarting) = Default::default();
        let evidence = Evidence {
            log: &self.0,
            sent: &sent,
            effects: &effects,
            errands: &[],
            gone: &[],
            requests: &[],
            struck: &[],
            over: Timestamp::MAX,
            restarting: &restarting as &BTreeSet<String>,
        };
        let mut verdict = Verdict::default();
        evidence.judge_order(&mut verdict);
        verdict.out_of_order
    }
}

#[test]
fn a_user_is_answered_by_an_agent_in_the_order_of_the_acknowledgements() {
    let told = Told::default().says("ann", "m1").says("ann", "m2").says("ann", "m3");
    let told = told.delivered("a", "m1").delivered("a", "m3").delivered("a", "m2");
    let told = told.decided("a", "m1", &[], false).decided("a", "m3", &[], false).decided("a", "m2", &[], false);
    assert_eq!(told.out_of_order(), ["ann to a: m3 before m2, which was acknowledged first"]);
}

#[test]
fn what_is_joined_to_a_message_that_was_asked_about_before_is_no_disorder() {
    let told = Told::default().says("ann", "m1").says("ann", "m2").delivered("a", "m1").delivered("a", "m2");
    let told = told.decided("a", "m2", &[], false).decided("a", "m2", &["m1"], false);
    assert!(told.out_of_order().is_empty(), "{:?}", told.out_of_order());
}

#[test]
fn other_users_other_agents_and_what_is_joined_or_published_again_are_no_disorder() {
    let told = Told::default().says("ann", "m1").says("bob", "m2").says("ann", "m3").says("ann", "m4");
    let told = ["m1", "m2", "m4"].into_iter().fold(told, |told, message| told.delivered("a", message));
    let told = told.delivered("b", "m3").decided("b", "m3", &[], false).decided("a", "m2", &[], false);
    let told = told.decided("a", "m4", &[], true).decided("a", "m4", &["m1"], false);
    assert!(told.out_of_order().is_empty(), "{:?}", told.out_of_order());
}
