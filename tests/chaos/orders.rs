//! The world outside, as far as it acts on what agents decide: orders the end of what was wished for only to be
//! stopped, answers questions, consents or not, has happen what hooks wait for, and sends the mail that others wait for.

use std::{
    collections::{BTreeMap, VecDeque},
    fs::{self, DirBuilder, File},
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use async_nats::HeaderMap;
use kairo_core::{bus::Bus, ids, record::Record, subjects::find_route};
use kairo_proto::{
    Decided,
    about::{self, Chain, Thread},
    v1::{DecidedEvent, Task, TaskFired},
};
use serde_json::json;

use super::{
    load::Clients,
    log::MAX_BODY,
    scenario::{MAIL, OUTSIDE, TO_BE_CANCELED, subject},
    verdict::effect,
};
use crate::audit::{decision, tool_calls};

/// Between two looks at the log.
const LOOK_AGAIN: Duration = Duration::from_millis(500);
/// Times a repeated task is due before its end is ordered.
const TIMES: u64 = 3;
/// Hooks of an agent that have been triggered and are kept, so that they could be once more.
const HOOKS_KEPT: usize = 40;

/// Something to be done, once or more often.
enum Chore {
    CancelAction {
        agent: String,
        action: String,
    },
    CancelTask {
        agent: String,
        user: String,
        task: String,
    },
    Choose {
        agent: String,
        user: String,
        offer: String,
        option: &'static str,
    },
    Approve {
        agent: String,
        user: String,
        request: String,
        verdict: &'static str,
    },
    /// Makes the event happen that this hook waits for.
    Happen {
        wish: String,
    },
    /// Sends the mail that this hook waits for.
    Mail {
        agent: String,
        wish: String,
    },
}

/// The tasks and hooks of all agents seen so far.
#[derive(Default)]
struct Watch {
    /// Tasks by id, with their agents.
    tasks: BTreeMap<String, (String, Task)>,
    /// Hooks that were triggered, by agent, the oldest first.
    triggered: BTreeMap<String, VecDeque<String>>,
}

/// Does every chore. Never returns.
pub async fn give(clients: Clients, bus: Bus, desks: PathBuf) {
    let (mut end, mut watch) = (0, Watch::default());
    loop {
        let mut chores = Vec::new();
        let read = bus.read_all("kairo.agent.*.decision.*", end, |raw| {
            end = raw.sequence;
            if let Ok(record) = raw.read(MAX_BODY) {
                watch.see(&record, &mut chores);
            }
        });
        // nats-server may be away just now.
        let _ = read.await;
        for chore in chores {
            chore.be_done(&clients, &bus, &desks).await;
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

impl Watch {
    fn see(&mut self, record: &Record, chores: &mut Vec<Chore>) {
        let agent = find_route(&record.subject).map(|(_, agent)| agent.to_string()).unwrap_or_default();
        let Some(decision) = decision(record) else { return };
        let stopped = tool_calls(decision)
            .filter(|(_, call)| effect(call).is_some_and(|it| it.name().ends_with(TO_BE_CANCELED)))
            .map(|(action, _)| Chore::CancelAction { agent: agent.clone(), action });
        chores.extend(stopped);
        chores.extend(decision.events.iter().filter_map(|event| self.follow(&agent, event)));
    }

    fn follow(&mut self, agent: &str, event: &DecidedEvent) -> Option<Chore> {
        let agent = agent.to_owned();
        match event.event.as_ref()?.about() {
            Decided::Thread(Thread::Suggested(asked)) => {
                // Half of the users do as they are advised.
                let option =
                    if event.event_id.ends_with(|last: char| last.is_ascii_digit()) { "accept" } else { "decline" };
                Some(Chore::Choose { agent, user: asked.user.clone(), offer: event.event_id.clone(), option })
            }
            Decided::Chain(Chain::ApprovalRequested(asked)) => {
                // Every third user is against it.
                let against = event.event_id.ends_with(['0', '3', '6', '9', 'c']);
                let verdict = if against { "rejected" } else { "approved" };
                Some(Chore::Approve { agent, user: asked.user.clone(), request: event.event_id.clone(), verdict })
            }
            Decided::Task(about::Task::Scheduled(scheduled)) => {
                let task = scheduled.task.clone()?;
                let wish = task.title.clone();
                let known = self.tasks.insert(task.task_id.clone(), (agent.clone(), task.clone()));
                match task.trigger.strip_prefix("post:") {
                    _ if known.is_some() => None,
                    Some(OUTSIDE) => Some(Chore::Happen { wish }),
                    Some(MAIL) => Some(Chore::Mail { agent, wish }),
                    _ => None,
                }
            }
            Decided::Task(about::Task::Fired(fired)) => self.end(fired),
            Decided::Task(about::Task::Changed(_) | about::Task::Started(_) | about::Task::Ended(_)) => None,
            Decided::Turn(_) | Decided::Memory(_) | Decided::State(_) => None,
            Decided::Chain(Chain::Started(_) | Chain::StepEnded(_) | Chain::Ended(_)) => None,
            Decided::Thread(Thread::Created(_) | Thread::Matched(_)) => None,
            Decided::Thread(
                Thread::Summarized(_) | Thread::Archived(_) | Thread::Completed(_) | Thread::Compacted(_),
            ) => None,
        }
    }

    /// Ends what would go on for ever.
    fn end(&mut self, fired: &TaskFired) -> Option<Chore> {
        let (agent, task) = self.tasks.get(&fired.task_id)?;
        let mut ended = (task.r#type == "repeat" && fired.occurrence >= TIMES).then(|| fired.task_id.clone());
        if task.kind == "hook" {
            let triggered = self.triggered.entry(agent.clone()).or_default();
            triggered.push_back(fired.task_id.clone());
            ended = if triggered.len() > HOOKS_KEPT { triggered.pop_front() } else { None };
        }
        let task = ended?;
        let user = self.tasks.get(&task).map(|(_, task)| task.user.clone()).unwrap_or_default();
        Some(Chore::CancelTask { agent: agent.clone(), user, task })
    }
}

impl Chore {
    /// Does it until it is done; what cannot be told from not done is done again.
    async fn be_done(self, clients: &Clients, bus: &Bus, desks: &Path) {
        match self {
            Self::CancelAction { agent, action } => clients.cancel(&agent, &action).await,
            Self::CancelTask { agent, user, task } => clients.cancel_task(&agent, &user, &task).await,
            Self::Choose { agent, user, offer, option } => clients.choose(&agent, &user, &offer, option).await,
            Self::Approve { agent, user, request, verdict } => {
                clients.approve(&agent, &user, &request, verdict).await;
            }
            Self::Happen { wish } => {
                while happen(bus, &wish).await.is_err() {
                    tokio::time::sleep(LOOK_AGAIN).await;
                }
            }
            Self::Mail { agent, wish } => {
                while deliver(&desks.join(&agent), &wish).is_err() {
                    tokio::time::sleep(LOOK_AGAIN).await;
                }
            }
        }
    }
}

/// Tells of it as another system would.
async fn happen(bus: &Bus, wish: &str) -> Result<(), async_nats::Error> {
    let mut headers = HeaderMap::new();
    // The same however often it is told.
    let id = ids::from_parts("chaos", &[wish]).to_string();
    for (name, value) in [("ce-specversion", "1.0"), ("ce-id", &id), ("ce-source", "/chaos"), ("ce-type", OUTSIDE)] {
        headers.insert(name, value);
    }
    let body = json!({ "wish": wish }).to_string();
    bus.nats()?.jetstream.publish_with_headers(format!("kairo.system.{OUTSIDE}"), headers, body.into()).await?.await?;
    Ok(())
}

/// Puts a mail into the mailbox in an agent's folder as mail servers do: whole, under a name of its own.
fn deliver(desk: &Path, wish: &str) -> std::io::Result<()> {
    // What others could write to is not looked at.
    DirBuilder::new().recursive(true).mode(0o700).create(desk)?;
    let mailbox = desk.join("mail");
    for part in ["tmp", "new", "cur"] {
        fs::create_dir_all(mailbox.join(part))?;
    }
    let (written, name) = (mailbox.join("tmp").join(wish), mailbox.join("new").join(wish));
    let subject = subject(wish);
    fs::write(&written, format!("From: Ann <ann@example.org>\r\nSubject: {subject}\r\n\r\nAs you wished.\r\n"))?;
    // What was just written might not be whole yet, for all that anybody knows who did not see it being moved.
    File::options().write(true).open(&written)?.set_modified(SystemTime::now() - Duration::from_secs(60))?;
    fs::rename(written, name)
}
