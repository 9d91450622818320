//! tool-runner's `control/action_cancel.rs`: stopping any tool call, wherever it is carried out.

use kairo_core::{
    bus::{BusError, append::Outgoing},
    envelope::Origin,
    ids::{self, Name},
    record::Record,
    subjects::{AGENT_DECISION, Service, TOOL_INVOKE},
};
use kairo_proto::v1::ToolInvoke;
use kairo_tool_runner::plan::{Asked, NOBODY, asked};
use uuid::Uuid;

use crate::{
    audit::decision,
    ledger::Entered,
    model,
    requests::Answer,
    results::Ended,
    runner::{Runner, executor_of},
};

/// Looks at the log before a call that does not end is left alone, and tries to have it stopped.
const LOOKS: u32 = 6;
const TRIES: u32 = 4;

/// The call to be stopped, and what is needed to end it.
struct Aim<'a> {
    agent: &'a Name,
    by: Uuid,
    decision: Record,
    since: u64,
    asked: Asked,
}

impl Runner {
    /// What the call `by` comes to; the error by its kind.
    pub async fn cancel(&self, agent: &Name, by: &Asked) -> Result<String, &'static str> {
        let target = by.target.filter(|target| *target != by.action).ok_or("not_found")?;
        let failed = |_: BusError| "failed";
        let aim = self.aim(agent, by, target).await.ok_or("not_found")?;
        for _ in 0..TRIES {
            if self.has_ended(&aim).await.map_err(failed)? {
                return Ok(r#"{"status":"ended"}"#.to_owned());
            }
            if self.try_to_stop(&aim).await.map_err(failed)? {
                for _ in 0..LOOKS {
                    if self.has_ended(&aim).await.map_err(failed)? {
                        return Ok(r#"{"status":"ended"}"#.to_owned());
                    }
                }
            }
        }
        Err("timed_out")
    }

    async fn aim<'a>(&self, agent: &'a Name, by: &Asked, target: Uuid) -> Option<Aim<'a>> {
        let decisions = self.replica.read_subject(&AGENT_DECISION.of(agent), by.target_after).await;
        decisions.into_iter().find_map(|record| {
            let body = decision(&record)?;
            let (since, found) = (body.cursor, asked(body).into_iter().find(|asked| asked.action == target)?);
            Some(Aim { agent, by: by.action, since, asked: found, decision: record })
        })
    }

    async fn has_ended(&self, aim: &Aim<'_>) -> Result<bool, BusError> {
        Ok(!self.results.ended(aim.agent, aim.since, &[aim.asked.action]).await?.is_empty())
    }

    /// Whether it has ended or is about to.
    async fn try_to_stop(&self, aim: &Aim<'_>) -> Result<bool, BusError> {
        let action = aim.asked.action;
        let invoke = loop {
            let entries = self.invocations.entries(aim.agent, aim.since, &[action]).await?;
            if let Some(entry) = entries.get(&action) {
                break self.replica.at(entry.sequence).await;
            }
            if let Entered::Written = self.invocations.enter(aim.agent, aim.since, &self.withdrawal(aim)).await? {
                self.report(aim, "canceled").await?;
                return Ok(true);
            }
        };
        match executor_of(&invoke, action) {
            Some((NOBODY, _)) => self.report(aim, "canceled").await?,
            Some(("process-supervisor", _)) => {
                let answer = self.replica.ask_to_stop(aim.agent, action, aim.since, aim.by).await;
                return Ok(matches!(answer, Answer::Done | Answer::NotBegun));
            }
            Some((_, runner)) => {
                let own = self.replica.instance.as_str();
                if self.replica.stop(runner, action).await || self.replica.stop(own, action).await {
                    return Ok(true);
                }
                if self.replica.is_held(runner, action).await {
                    return Ok(false);
                }
                let keyed = model::is_keyed(&aim.asked.tool);
                self.report(aim, if keyed { "canceled" } else { "in_doubt" }).await?;
            }
            None => {}
        }
        Ok(true)
    }

    fn withdrawal(&self, aim: &Aim<'_>) -> Outgoing {
        let body = ToolInvoke {
            runner: self.replica.instance.to_string(),
            decision_sequence: aim.decision.sequence,
            actions: vec![aim.asked.invocation(NOBODY)],
        };
        let id = ids::derived(aim.asked.action, &format!("withdrawn/{}", self.replica.instance));
        let now = self.replica.world.borrow().now();
        let envelope = aim.decision.envelope.follow(id, Service::ToolRunner, Origin::Tool, now);
        Outgoing::new(&TOOL_INVOKE, aim.agent, envelope, body)
    }

    async fn report(&self, aim: &Aim<'_>, kind: &'static str) -> Result<(), BusError> {
        let ended = Ended { action: aim.asked.action, tool: &aim.asked.tool, outcome: Err(kind) };
        self.results.report(aim.agent, aim.since, &aim.decision.envelope, ended).await
    }
}
