//! Clients as they should be: they send a message until it is accepted, always under the same id.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use jiff::Timestamp;
use reqwest::{Client, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::{
    task::JoinSet,
    time::{sleep, sleep_until},
};

use super::{
    Outcome,
    balancer::Balancer,
    journal::{Journal, locked},
    machine::administrator,
    plan::{self, AGENTS, Message, PLANNERS, TEAMS},
    scenario::{WORKER, words},
};

/// The longest a client waits for an answer; a frozen gateway gives none.
const PATIENCE: Duration = Duration::from_secs(3);
/// Before a client tries again: at first, and at most.
const PAUSE: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));
/// The ways in which agents treat messages that come while they decide, each used by a part of the agents.
const INTERJECTIONS: [&str; 4] = ["order", "order", "join", "restart"];
/// Entries that the model is shown: more than bursts to one conversation put into it.
const HISTORY: u32 = 100;
/// Entries of a worker's thread: so few that those of a busy one are summed up.
const WORKERS_HISTORY: u32 = 60;

/// The outcome of sending a message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// The agent it is for.
    pub agent: String,
    /// The time of the first try.
    pub tried: Timestamp,
    /// The events it was accepted as; more than one would be wrong.
    pub accepted: Vec<String>,
    /// The gateway's final refusal, if there was one.
    pub refused: Option<String>,
}

/// All clients together.
#[derive(Clone)]
pub struct Clients {
    http: Client,
    gateways: Balancer,
    /// Requests that were not answered, or with an error that is not the client's: they were made again.
    failed: Arc<AtomicUsize>,
    sent: Arc<Mutex<BTreeMap<String, Sent>>>,
    journal: Arc<Journal>,
}

#[derive(Deserialize)]
struct Accepted {
    event_id: String,
}

/// All agents with their planning and threads, and what they do with messages that come while they decide.
fn agents() -> impl Iterator<Item = ((String, &'static str, &'static str), &'static str)> {
    let callers = (0..AGENTS).map(|number| (plan::agent(number), "tools", "single"));
    let planners = (0..PLANNERS).map(|number| (plan::planner(number), "chain", "topics"));
    callers.chain(planners).zip(INTERJECTIONS.into_iter().cycle())
}

/// Returns the further settings of an agent that calls tools itself: one agent of each kind, none for the others.
fn kind(number: u64) -> Value {
    let voice = |name: &str, wants_decisions: bool| json!({ "name": name, "prompt": "You think of dangers.", "wants_decisions": wants_decisions });
    let voices = json!([voice("critic", false), voice("diary", true)]);
    match number {
        1 => json!({ "submodules": voices }),
        2 => json!({ "guesses_goal": true, "max_reflections": 2 }),
        4 => json!({ "inner_state": true, "summary_after": 2 }),
        5 => json!({ "environment": [{ "tool": "tools.now", "arguments": {} }] }),
        6 => json!({ "submodules": voices, "max_reflections": 1, "inner_state": true }),
        7 => {
            let members = json!([{ "agent": plan::agent(0) }, { "agent": plan::agent(1) }]);
            // What goes on by itself is nothing that another could answer for.
            json!({ "members": members, "tools": ["process.spawn", "process.cancel"] })
        }
        _ => json!({}),
    }
}

/// Returns the further settings of an agent that calls tools itself, by the agent's name.
fn kind_of(agent: &str) -> Value {
    (0..AGENTS).find(|number| plan::agent(*number) == agent).map_or_else(|| json!({}), kind)
}

/// Those that begin a decision again when a message comes.
pub fn restarting() -> BTreeSet<String> {
    agents().filter(|(_, interjection)| *interjection == "restart").map(|((agent, ..), _)| agent).collect()
}

impl Clients {
    pub fn new(gateways: Balancer, journal: Arc<Journal>) -> Outcome<Self> {
        let http = administrator(PATIENCE)?;
        Ok(Self { http, gateways, failed: Arc::default(), sent: Arc::default(), journal })
    }

    /// Defines every agent and team of the plan.
    pub async fn define_agents(&self) -> Outcome<()> {
        let gateway = self.gateways.next();
        for ((agent, planning, threads), interjection) in agents() {
            let mut profile = json!({
                "agent": agent,
                "prompt": "You do what is wished for.",
                "history_limit": HISTORY,
                "interjection": interjection,
                "planning": planning,
                "threads": threads,
                // Nobody is there to consent to what is done after pages were read.
                "outside_content": "trusted",
            });
            if let (Some(profile), Value::Object(more)) = (profile.as_object_mut(), kind_of(&agent)) {
                profile.extend(more);
            }
            let request = self.http.post(format!("http://{gateway}/v1/agents")).json(&profile);
            request.send().await?.error_for_status()?;
        }
        for team in (0..TEAMS).map(plan::team) {
            let prompt = "You do what is wished for.";
            // It is not to begin by itself what nobody waits for.
            let lead = json!({ "prompt": prompt, "outside_content": "trusted", "next_run_after": 604_800 });
            let worker = json!({
                "name": WORKER, "prompt": prompt, "outside_content": "trusted", "history_limit": WORKERS_HISTORY,
            });
            let body = json!({
                "team": team, "owner": "owner", "mission": "Be there for wishes.", "lead": lead, "workers": [worker],
            });
            self.http.post(format!("http://{gateway}/v1/teams")).json(&body).send().await?.error_for_status()?;
        }
        Ok(())
    }

    /// Sends every message when its time has come. Returns when all were accepted, or refused.
    pub async fn send(self, messages: Vec<Message>, begins: tokio::time::Instant) -> Outcome<()> {
        let mut sending = JoinSet::new();
        for message in messages {
            sleep_until(begins + message.at).await;
            let sent = Sent { agent: message.agent.clone(), tried: Timestamp::now(), ..Sent::default() };
            locked(&self.sent).insert(message.id.clone(), sent);
            for _ in 0..message.copies {
                sending.spawn(self.clone().insist(message.clone()));
            }
        }
        while let Some(sent) = sending.join_next().await {
            sent?;
        }
        Ok(())
    }

    /// Orders the end of an action, until that is accepted.
    pub async fn cancel(&self, agent: &str, action: &str) {
        let order = json!({
            "user": "operator", "agent": agent, "command": "cancel", "action_id": action, "command_id": action,
        });
        self.insist_on("commands", &order).await;
    }

    /// Orders the end of a task, until that is accepted.
    pub async fn cancel_task(&self, agent: &str, user: &str, task: &str) {
        let order = json!({ "user": user, "agent": agent, "command": "cancel", "task_id": task, "command_id": task });
        self.insist_on("commands", &order).await;
    }

    /// Answers a question, until that is accepted.
    pub async fn choose(&self, agent: &str, user: &str, offer: &str, option: &str) {
        let choice = json!({ "user": user, "agent": agent, "offer_id": offer, "option": option, "choice_id": offer });
        self.insist_on("choices", &choice).await;
    }

    /// Says whether a step may be taken, until that is accepted.
    pub async fn approve(&self, agent: &str, user: &str, request: &str, verdict: &str) {
        let approval = json!({
            "user": user, "agent": agent, "action_id": request, "verdict": verdict, "approval_id": request,
        });
        self.insist_on("approvals", &approval).await;
    }

    async fn insist_on(&self, path: &str, body: &Value) {
        loop {
            let gateway = self.gateways.next();
            let answer = self.http.post(format!("http://{gateway}/v1/{path}")).json(body).send().await;
            self.count(&answer);
            if answer.is_ok_and(|answer| answer.status() == StatusCode::ACCEPTED) {
                return;
            }
            sleep(PAUSE.1).await;
        }
    }

    /// Counts a request that failed for a reason not its own. An agent with too much to do, or one that does not know
    /// yet what is asked, is no failure.
    fn count(&self, answer: &reqwest::Result<reqwest::Response>) {
        let failed = match answer {
            Ok(answer) => answer.status().is_server_error().then(|| answer.status().to_string()),
            Err(error) => Some(format!("{error:?}")),
        };
        if let Some(why) = failed {
            self.failed.fetch_add(1, Ordering::Relaxed);
            self.journal.note(format_args!("a request failed: {why}"));
        }
    }

    /// Requests that failed so far.
    pub fn failed(&self) -> usize {
        self.failed.load(Ordering::Relaxed)
    }

    /// The ids of the messages that were accepted so far.
    pub fn accepted(&self) -> Vec<String> {
        let sent = locked(&self.sent);
        sent.iter().filter(|(_, sent)| !sent.accepted.is_empty()).map(|(id, _)| id.clone()).collect()
    }

    /// Returns the messages sent so far, by message id.
    pub fn sent(&self) -> BTreeMap<String, Sent> {
        locked(&self.sent).clone()
    }

    /// Copies go to different gateways, if there are several.
    async fn insist(self, message: Message) {
        let text = words(message.wish, &message.id);
        let body = json!({ "user": message.user, "agent": message.agent, "text": text, "message_id": message.id });
        let mut pause = PAUSE.0;
        loop {
            let gateway = self.gateways.next();
            let answer = self.http.post(format!("http://{gateway}/v1/messages")).json(&body).send().await;
            self.count(&answer);
            // That there is no answer says nothing: it may have been accepted all the same.
            if let Ok(answer) = answer
                && self.settled(&message.id, answer).await
            {
                return;
            }
            sleep(pause).await;
            pause = PAUSE.1.min(pause * 2);
        }
    }

    /// Returns true if a message needs no further request after this answer.
    async fn settled(&self, id: &str, answer: reqwest::Response) -> bool {
        let status = answer.status();
        if status == StatusCode::ACCEPTED {
            // An answer that breaks off is none.
            let Ok(Accepted { event_id }) = answer.json().await else { return false };
            if let Some(sent) = locked(&self.sent).get_mut(id)
                && !sent.accepted.contains(&event_id)
            {
                sent.accepted.push(event_id);
            }
            return true;
        }
        if !status.is_client_error() || status == StatusCode::TOO_MANY_REQUESTS {
            return false;
        }
        let text = answer.text().await.unwrap_or_default();
        self.journal.note(format_args!("message {id} refused: {status} {text}"));
        if let Some(sent) = locked(&self.sent).get_mut(id) {
            sent.refused = Some(format!("{status} {text}"));
        }
        true
    }
}
