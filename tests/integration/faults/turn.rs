//! The turn that faults strike: the model thinks for a while, a program runs until the test lets it end, a clock is
//! read beside it, and the model answers for a while.

use async_nats::Subscriber;
use futures::StreamExt;
use kairo_core::subjects::LIVE_TOKEN;
use kairo_local::Service;
use kairo_proto::v1;
use serde_json::json;
use tokio::time::timeout;

use super::workpiece::{SCRIPT, Workpiece};
use crate::world::{DEADLINE, Sent, Wanted, World, agent};

pub const AGENT: &str = "default";

/// When a fault strikes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// The message has just been accepted.
    Accepted,
    /// The model writes what it thinks; the decision is not made.
    Thinking,
    /// The program runs.
    Working,
    /// The model writes its answer.
    Answering,
}

impl Moment {
    pub const ALL: [Moment; 4] = [Moment::Accepted, Moment::Thinking, Moment::Working, Moment::Answering];
}

/// A turn that has come to its reply.
pub struct Turn {
    pub reply: String,
    pub workpiece: Workpiece,
}

/// A Kairo whose model knows this turn, and echoes everything else.
pub fn wanted() -> Wanted {
    let slow = json!({ "chunk_delay_ms": 100, "chunk_chars": 16 });
    let mut work = json!({
        "reasoning": "Let me think about what to do, and for how long.",
        "tool_calls": [
            { "tool": "process.run", "arguments": { "program": "work", "args": ["{{ captures.place }}"] } },
            { "tool": "tools.now", "arguments": {} },
        ],
    });
    let mut answer = json!({ "text": "It took me a while to say it: {{ results[0].text }}" });
    for reply in [&mut work, &mut answer] {
        reply.as_object_mut().unwrap().extend(slow.as_object().unwrap().clone());
    }
    let scenario = json!({ "rules": [
        { "name": "work", "when": { "user_matches": r"work at (?<place>\S+)" }, "turn": [work, answer] },
        { "name": "echo", "when": {}, "reply": "You said: {{ user }}" },
    ] });
    let programs = json!({ "work": { "path": "/bin/sh", "args": ["-c", SCRIPT, "work"] } });
    Wanted::new(&scenario.to_string())
        .env(Service::ProcessSupervisor, "KAIRO_PROCESS_SUPERVISOR__PROGRAMS", programs.to_string())
        .env(Service::Projector, "KAIRO_PROJECTOR__SESSION_TIMEOUT_MS", "2000")
}

/// Starts it, with an agent that is offered its tools.
pub async fn start(wanted: Wanted) -> World {
    let world = wanted.start().await;
    world.define(AGENT).await;
    world.log.wait(|event| event.type_name == v1::ToolCatalogue::TYPE && event.text().contains("process.run")).await;
    world
}

/// Sends the message that begins the turn.
pub async fn send(world: &World, workpiece: &Workpiece) -> Sent {
    world.send(AGENT, &format!("work at {}", workpiece.folder().display())).await
}

/// Has a turn worked off, with a fault at a moment of it.
pub async fn with_fault(world: &mut World, moment: Moment, fault: impl AsyncFnOnce(&mut World)) -> Turn {
    let mut workpiece = Workpiece::new();
    let mut tokens = tokens(world).await;
    let sent = send(world, &workpiece).await;
    if moment == Moment::Thinking {
        next(&mut tokens).await;
    }
    if matches!(moment, Moment::Working | Moment::Answering) {
        workpiece.begun().await;
    }
    if moment == Moment::Answering {
        tokens = self::tokens(world).await;
        workpiece.release();
        next(&mut tokens).await;
        fault(world).await;
    } else {
        fault(world).await;
        workpiece.release();
    }
    let reply = world.reply(&sent).await;
    Turn { reply, workpiece }
}

/// Subscribes to the model's tokens, live from now on.
pub async fn tokens(world: &World) -> Subscriber {
    let tokens = world.bus.nats().unwrap().client.subscribe(LIVE_TOKEN.of_owner(&agent(AGENT))).await.unwrap();
    // The server has it once it has answered.
    world.bus.nats().unwrap().client.flush().await.unwrap();
    tokens
}

/// Waits until the model writes.
pub async fn next(tokens: &mut Subscriber) {
    timeout(DEADLINE, tokens.next()).await.expect("the model never wrote").unwrap();
}
