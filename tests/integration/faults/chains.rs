//! Chains of an agent that plans, and whatever they wait for, while the services that carry them are killed.

use kairo_core::event_json::EventJson;
use kairo_local::Service;
use kairo_proto::v1;
use serde_json::{Value, json};

use super::{
    audit, killed, read_model,
    turn::{self, AGENT},
    workpiece::{SCRIPT, Workpiece},
};
use crate::world::{Sent, Wanted, World};

/// The number of tool calls in the chain: the clock, two programs at once, and one given the results of all three.
pub(super) const CALLS: usize = 4;

/// When a fault strikes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Moment {
    /// The model writes the plan; nothing is decided.
    Planning,
    /// Both programs of a step run.
    Working,
    /// One of them has ended, the other runs.
    Half,
    /// Both have ended; whether to take the step that follows is being asked.
    Between,
    /// The model writes its answer.
    Answering,
}

impl Moment {
    const ALL: [Self; 5] = [Self::Planning, Self::Working, Self::Half, Self::Between, Self::Answering];

    /// Returns true if a program runs at this moment.
    fn runs(self) -> bool {
        matches!(self, Self::Working | Self::Half)
    }
}

/// A message that has been answered by a chain, and the programs that it ran at once.
struct Answered {
    sent: Sent,
    reply: String,
    pieces: [Workpiece; 2],
}

/// A Kairo whose model plans this chain: read the clock, work at two places at once, write down what came of it if that
/// is wanted, answer.
pub(super) fn wanted() -> Wanted {
    let work = |place: &str| json!({ "event": "process.run", "params": { "program": "work", "args": [place] } });
    let written = json!(["{process.run[0].stdout}", "{process.run[1].stdout}", "{tools.now.date}"]);
    let chain = json!([
        "tools.now",
        [work("{{ captures.one }}"), work("{{ captures.other }}")],
        {
            "event": "process.run",
            "params": { "program": "echo", "args": written, "decide": "whether it is worth writing down" },
        },
        "agent.think",
    ]);
    let plan = json!({
        "event": "agent.chain",
        "params": { "plan": "1. the time 2. work at {{ captures.one }} and {{ captures.other }} 3. write it down" },
    });
    let places = r"work at (?<one>\S+) and (?<other>\S+)";
    let step = |name: &str| json!(format!("You are {name}"));
    let answer = "It took me a while: {% for result in results %}{{ result.text }} {% endfor %}";
    let slowly = |reply: Value| {
        let mut reply = reply;
        reply["chunk_delay_ms"] = json!(50);
        reply["chunk_chars"] = json!(16);
        reply
    };
    let scenario = json!({ "rules": [
        {
            "name": "tell",
            "when": { "system_starts_with": step("agent.think"), "user_matches": places, "step_at_least": 1 },
            "reply": slowly(json!({ "text": answer })),
        },
        {
            "name": "plan",
            "when": { "system_starts_with": step("agent.think"), "user_matches": places },
            "reply": slowly(json!({ "json": plan })),
        },
        {
            "name": "compile",
            "when": { "system_starts_with": step("agent.chain"), "user_matches": places },
            "reply": { "json": chain, "delay_ms": 100 },
        },
        {
            "name": "decide",
            "when": { "system_starts_with": step("agent.decide") },
            "reply": { "json": { "action": "continue" }, "delay_ms": 300 },
        },
        {
            "name": "sum up",
            "when": { "system_starts_with": step("thread.summarize") },
            "reply": { "json": { "title": "work", "summary": "Work was done." } },
        },
        { "name": "echo", "when": {}, "reply": "You said: {{ user }}" },
    ] });
    let programs = json!({ "work": { "path": "/bin/sh", "args": ["-c", SCRIPT, "work"] }, "echo": "/bin/echo" });
    Wanted::new(&scenario.to_string())
        .env(Service::ProcessSupervisor, "KAIRO_PROCESS_SUPERVISOR__PROGRAMS", programs.to_string())
        .env(Service::Projector, "KAIRO_PROJECTOR__SESSION_TIMEOUT_MS", "2000")
}

pub(super) async fn start(wanted: Wanted) -> World {
    let world = turn::start(wanted).await;
    plans(&world, AGENT).await;
    world
}

/// Defines an agent that plans.
async fn plans(world: &World, agent: &str) {
    let profile = json!({ "agent": agent, "prompt": "You are a helpful agent.", "planning": "chain" });
    let answer = world.post("/v1/agents", &profile).await;
    assert!(answer.0 == 200 || answer.0 == 201, "{answer:?}");
}

pub(super) async fn send(world: &World, agent: &str, pieces: &[Workpiece; 2]) -> Sent {
    let [one, other] = pieces.each_ref().map(|piece| piece.folder().display());
    world.send(agent, &format!("work at {one} and {other}")).await
}

fn is_result(event: &EventJson, sent: &Sent) -> bool {
    event.correlation_id == sent.event_id && event.type_name == v1::ToolResult::TYPE
}

/// Waits until so many calls of the chain have ended.
async fn ended(world: &World, sent: &Sent, count: usize) {
    world.log.wait_for(count, |event| is_result(event, sent)).await;
}

/// Has a chain run, with a fault at a moment of it.
async fn with_fault(world: &mut World, moment: Moment, fault: impl AsyncFn(&mut World)) -> Answered {
    let mut pieces = [Workpiece::new(), Workpiece::new()];
    let sent = send(world, AGENT, &pieces).await;
    if moment == Moment::Planning {
        world
            .log
            .wait(|event| event.correlation_id == sent.event_id && event.type_name == v1::AgentMessage::TYPE)
            .await;
        fault(world).await;
        pieces.iter().for_each(Workpiece::release);
    } else {
        // Neither ends before the test lets it: that both have begun says that they run at once.
        for piece in &mut pieces {
            piece.begun().await;
        }
        if moment == Moment::Working {
            fault(world).await;
        }
        pieces[0].release();
        if moment == Moment::Half {
            ended(world, &sent, 2).await;
            fault(world).await;
        }
        let mut tokens = turn::tokens(world).await;
        pieces[1].release();
        match moment {
            Moment::Between => {
                ended(world, &sent, 3).await;
                fault(world).await;
            }
            Moment::Answering => {
                turn::next(&mut tokens).await;
                fault(world).await;
            }
            Moment::Planning | Moment::Working | Moment::Half => {}
        }
    }
    let reply = world.reply(&sent).await;
    Answered { sent, reply, pieces }
}

/// Checks that each of these is in the log exactly once: the chain, its end, the call of each step, the reply.
pub(super) async fn is_whole(world: &World, sent: &Sent, calls: usize) {
    let events = world.events_of(sent).await;
    let of = |type_name: &str| events.iter().filter(|event| event.type_name == type_name).collect::<Vec<_>>();
    assert_eq!(of(v1::ChainStarted::TYPE).len(), 1, "{}", world.log.text());
    let [end] = of(v1::ChainEnded::TYPE)[..] else { panic!("{}", world.log.text()) };
    assert_eq!(end.payload["outcome"], "done");
    let called = events.iter().filter(|event| is_call(event));
    let mut steps: Vec<u64> = called.map(|call| call.payload["step"].as_u64().unwrap_or_default()).collect();
    // What is consented to begins in the order in which consent comes.
    steps.sort_unstable();
    assert_eq!(steps, (0..calls as u64).collect::<Vec<_>>(), "{}", world.log.text());
    assert_eq!(events.iter().filter(|event| event.is_final_reply()).count(), 1, "{}", world.log.text());
}

/// Both programs were called for in the same decision.
async fn at_once(world: &World, sent: &Sent) {
    let events = world.events_of(sent).await;
    let mut runs = events.iter().filter(|event| event.payload["tool"] == "process.run" && is_call(event));
    assert_eq!(runs.next().unwrap().sequence, runs.next().unwrap().sequence, "called for one after the other");
}

fn is_call(event: &EventJson) -> bool {
    event.payload["type"] == "tool_call"
}

/// The chain went on to its end and did everything once.
async fn went_on(world: &World, chain: &Answered, moment: Moment, lost: bool) {
    for piece in &chain.pieces {
        assert_eq!(piece.effects(), 1, "{moment:?}: {}", chain.reply);
    }
    // A step that cannot be done is passed over, and what follows it, too, up to the answer.
    is_whole(world, &chain.sent, if lost { CALLS - 1 } else { CALLS }).await;
    at_once(world, &chain.sent).await;
    let said = if lost { "in_doubt" } else { "done done 20" };
    assert!(chain.reply.replace("\\n", "").contains(said), "{moment:?}: {}", chain.reply);
}

/// Kills a service at every moment of a chain, a chain for each moment, and starts it again.
async fn killed_at_every_moment(service: Service) {
    let mut world = start(wanted()).await;
    for moment in Moment::ALL {
        let chain = with_fault(&mut world, moment, async |world| {
            world.stack.kill9(service, 0).await.unwrap();
            world.stack.restart(service, 0).await.unwrap();
        })
        .await;
        let lost = service == Service::ProcessSupervisor && moment.runs();
        went_on(&world, &chain, moment, lost).await;
    }
    audit::passes(&world).await;
    world.end().await;
}

#[tokio::test]
async fn a_chain_goes_on_when_agent_runtime_is_killed() {
    killed_at_every_moment(Service::AgentRuntime).await;
}

#[tokio::test]
async fn a_chain_goes_on_when_tool_runner_is_killed() {
    killed_at_every_moment(Service::ToolRunner).await;
}

#[tokio::test]
async fn a_chain_goes_on_when_process_supervisor_is_killed() {
    killed_at_every_moment(Service::ProcessSupervisor).await;
}

#[tokio::test]
async fn a_chain_goes_on_when_router_is_killed() {
    killed_at_every_moment(Service::Router).await;
}

#[tokio::test]
async fn a_chain_goes_on_when_nats_is_killed() {
    let mut world = start(wanted().replicas_of_all(2)).await;
    for moment in Moment::ALL {
        let chain = with_fault(&mut world, moment, async |world| {
            world.nats.kill9().await.unwrap();
            world.nats.restart().await.unwrap();
        })
        .await;
        went_on(&world, &chain, moment, false).await;
    }
    audit::passes(&world).await;
    world.end().await;
}

#[tokio::test]
async fn a_chain_goes_on_when_postgres_is_killed() {
    let mut world = start(wanted()).await;
    for moment in Moment::ALL {
        let chain = with_fault(&mut world, moment, async |world| {
            world.postgres.kill9().await.unwrap();
            world.postgres.restart().await.unwrap();
        })
        .await;
        went_on(&world, &chain, moment, false).await;
    }
    audit::passes(&world).await;
    read_model::is_that_of_the_log(&world).await;
    world.end().await;
}

#[tokio::test]
async fn a_chain_goes_on_when_everything_is_killed_at_once() {
    let mut world = start(wanted()).await;
    for moment in Moment::ALL {
        let chain = with_fault(&mut world, moment, async |world| {
            killed::all_killed(world).await;
            world.nats.kill9().await.unwrap();
            world.nats.restart().await.unwrap();
            killed::all_restarted(world).await;
        })
        .await;
        went_on(&world, &chain, moment, moment.runs()).await;
    }
    audit::passes(&world).await;
    world.end().await;
}

/// Chains of several agents at once, while a replica after the other is killed.
async fn with_replicas(replicas: usize) {
    let mut world = start(wanted().replicas(Service::AgentRuntime, replicas)).await;
    let agents = ["anna", "boris", "carla", "dmitri"];
    let mut chains = Vec::new();
    for agent in agents {
        plans(&world, agent).await;
        let pieces = [Workpiece::new(), Workpiece::new()];
        let sent = send(&world, agent, &pieces).await;
        chains.push((sent, pieces));
    }
    for (victim, (sent, pieces)) in chains.iter().enumerate().take(replicas) {
        // One of them lets its chain go on, so that something is always being decided on.
        pieces.iter().for_each(Workpiece::release);
        ended(&world, sent, 2).await;
        world.stack.kill9(Service::AgentRuntime, victim).await.unwrap();
        world.stack.restart(Service::AgentRuntime, victim).await.unwrap();
    }
    for (sent, pieces) in &chains {
        pieces.iter().for_each(Workpiece::release);
        let reply = world.reply(sent).await;
        assert!(reply.replace("\\n", "").contains("done done 20"), "{reply}");
        is_whole(&world, sent, CALLS).await;
        at_once(&world, sent).await;
        assert!(pieces.iter().all(|piece| piece.effects() == 1));
    }
    audit::passes(&world).await;
    world.end().await;
}

#[tokio::test]
async fn chains_of_several_agents_go_on_with_two_replicas_killed_in_turns() {
    with_replicas(2).await;
}

#[tokio::test]
async fn chains_of_several_agents_go_on_with_three_replicas_killed_in_turns() {
    with_replicas(3).await;
}

#[tokio::test]
async fn a_chain_goes_on_while_minds_freeze_in_turns() {
    let mut world = start(wanted().replicas(Service::AgentRuntime, 2)).await;
    for (moment, frozen) in Moment::ALL.into_iter().zip([0, 1, 0, 1, 0]) {
        let chain = with_fault(&mut world, moment, async |world| {
            world.stack.freeze(Service::AgentRuntime, frozen).unwrap();
        })
        .await;
        went_on(&world, &chain, moment, false).await;
        world.stack.thaw(Service::AgentRuntime, frozen).unwrap();
    }
    audit::passes(&world).await;
    world.end().await;
}
