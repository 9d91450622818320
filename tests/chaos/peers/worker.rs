//! The tool worker, by the protocol of `docs/tool-workers.md`.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use async_nats::{Client, Message};
use futures::StreamExt as _;
use kairo_local::Login;
use serde_json::{Value, json};
use tokio::time::{Instant, interval};

use super::{BOOK, Errand, PAY, Peer, WORKER_TIMES, Ways, behavior::Behavior, mcp};
use crate::{
    chaos::{Outcome, journal::locked},
    login,
};

/// Time for which it remembers an action.
const REMEMBERED: Duration = Duration::from_secs(120);
const INSTANCE: &str = "clerk-1";

/// Actions it has begun; an end is what it said of one.
#[derive(Clone)]
struct Worker {
    ways: Ways,
    nats: Client,
    actions: Arc<Mutex<BTreeMap<String, Option<Value>>>>,
}

/// Starts it; it works until the program ends.
pub async fn start(ways: Ways, login: &Login) -> Outcome<()> {
    let urls: Vec<&str> = login.url.split(',').collect();
    let nats = login::options(login).retry_on_initial_connect().connect(urls).await?;
    let worker = Worker { ways, nats, actions: Arc::default() };
    let subject = |verb: &str| format!("kairo.worker.{}.{verb}", Peer::Clerk.name());
    let calls = worker.nats.queue_subscribe(subject("call.*"), "workers".to_owned()).await?;
    let hello = worker.nats.subscribe(subject("hello")).await?;
    tokio::spawn(worker.clone().announce(hello));
    tokio::spawn(worker.work(calls));
    Ok(())
}

impl Worker {
    async fn announce(self, mut hello: async_nats::Subscriber) {
        let mut pace = interval(Duration::from_millis(WORKER_TIMES.2));
        let tool = |name: &str, is_keyed: bool| json!({ "name": name, "description": "Has an effect.", "schema": mcp::schema(), "idempotent": is_keyed });
        let announcement = json!({
            "protocol": 1, "instance": INSTANCE, "started_ms": 1, "leaving": false,
            "tools": [tool(PAY, false), tool(BOOK, true)],
        });
        loop {
            tokio::select! {
                _ = pace.tick() => {}
                asked = hello.next() => if asked.is_none() { return },
            }
            self.say("announce", &announcement).await;
        }
    }

    /// Publishes `what` under `verb`. A failure is ignored: the message is sent again later, or is not heard.
    async fn say(&self, verb: &str, what: &Value) {
        let subject = format!("kairo.worker.{}.{verb}", Peer::Clerk.name());
        let _ = self.nats.publish(subject, what.to_string().into()).await;
    }

    async fn work(self, mut calls: async_nats::Subscriber) {
        while let Some(message) = calls.next().await {
            let Ok(call) = serde_json::from_slice::<Value>(&message.payload) else { continue };
            let text = |field: &str| call.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
            let effect = call.pointer("/arguments/effect").and_then(Value::as_str).unwrap_or_default().to_owned();
            let (key, is_keyed) = (text("action_id"), text("tool") == BOOK);
            let is_new = !locked(&self.actions).contains_key(&key);
            let orders = self.nats.subscribe(format!("kairo.worker.{}.action.{key}", Peer::Clerk.name())).await;
            let Ok(orders) = orders else { continue };
            // It is to be heard of before anybody asks about it.
            let _ = self.nats.flush().await;
            self.accept(&message).await;
            if is_new {
                locked(&self.actions).insert(key.clone(), None);
                let errand = Errand { effect, key, caller: String::new(), is_keyed };
                tokio::spawn(self.clone().carry_out(errand, orders));
            }
        }
    }

    async fn accept(&self, asked: &Message) {
        let Some(reply) = asked.reply.clone() else { return };
        let answer = json!({ "type": "accepted", "instance": INSTANCE }).to_string();
        let _ = self.nats.publish(reply, answer.into()).await;
    }

    /// Works on an action, says how it ended until that was heard, and listens to orders about it.
    async fn carry_out(self, errand: Errand, mut orders: async_nats::Subscriber) {
        let (ways, said) = (self.ways.clone(), format!("said.{}", errand.key));
        let behavior = ways.behavior(Peer::Clerk, &errand);
        let is_silent = matches!(behavior, Behavior::Silence | Behavior::Loss | Behavior::LossBefore);
        let done = errand.clone();
        let mut work = tokio::spawn(async move {
            ways.carry_out(&done, behavior).await;
            ways.answer(&done, behavior);
        });
        let (mut beat, begun) = (interval(Duration::from_millis(WORKER_TIMES.0)), Instant::now());
        let (mut is_over, mut is_heard) = (false, false);
        let end = match behavior {
            Behavior::Refusal => json!({ "type": "error", "kind": "failed", "message": "no funds" }),
            _ => json!({ "type": "result", "value": { "did": errand.effect } }),
        };
        while begun.elapsed() < REMEMBERED {
            tokio::select! {
                _ = &mut work, if !is_over => {
                    is_over = true;
                    // Its replica is gone, and nobody knows the action any more.
                    if is_silent {
                        return;
                    }
                    locked(&self.actions).insert(errand.key.clone(), Some(end.clone()));
                    self.say(&said, &end).await;
                }
                _ = beat.tick(), if !is_heard => match is_over {
                    true => self.say(&said, &end).await,
                    false => self.say(&said, &json!({ "type": "alive" })).await,
                },
                order = orders.next() => {
                    let Some(order) = order else { return };
                    let order_type = serde_json::from_slice::<Value>(&order.payload).ok();
                    match order_type.as_ref().and_then(|order| order.get("type")).and_then(Value::as_str) {
                        Some("attach") => {
                            is_heard = false;
                            self.accept(&order).await;
                        }
                        Some("acknowledge") => is_heard = is_over,
                        // It does not look whether it is to stop.
                        _ => {}
                    }
                }
            }
        }
    }
}
