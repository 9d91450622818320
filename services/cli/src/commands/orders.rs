//! Giving an order to an agent, and waiting for what comes of it.

use std::{process::ExitCode, time::Duration};

use clap::Args;
use kairo_core::ids::Name;
use kairo_proto::words::OrderedCommand;
use serde::Serialize;
use serde_json::json;
use tokio::time::timeout;

use super::{Session, ask, duration, name};
use crate::{
    Error,
    client::{Client, ClientError, EventFilter, NewCommand, NewSubmodule, Ordered, Told},
    event_lines::printable,
    order::{Awaited, Order, Outcome, in_words},
    terminal,
};

pub(super) const STATUS: &str = "\
Exit status:
  0  done
  2  the agent cannot do it, or what it did failed
  3  nothing has come of it in time; it may still: kairo events --correlation ID";

/// User who gives the order, and the wait for its result.
#[derive(Debug, Args)]
pub(super) struct Manner {
    /// User who gives the order
    #[arg(long, default_value = "you", value_parser = name, value_name = "NAME")]
    pub(super) user: Name,
    #[command(flatten)]
    pub(super) patience: Patience,
}

/// User who answers an agent's question, and the wait for the result.
#[derive(Debug, Args)]
pub(super) struct Answering {
    /// User who answers; by default whoever was asked
    #[arg(long, value_parser = name, value_name = "NAME")]
    user: Option<Name>,
    #[command(flatten)]
    patience: Patience,
}

impl Answering {
    /// Turns the answer into an order of the named user or, without one, of the user who was asked.
    pub(super) fn into_manner(self, asked: Option<&str>) -> Result<Manner, Error> {
        let user = self.user.or_else(|| Name::parse(asked?).ok());
        let unknown =
            || Error::Advice("it was asked too long ago to know of whom; say who answers: --user NAME".to_owned());
        Ok(Manner { user: user.ok_or_else(unknown)?, patience: self.patience })
    }
}

/// Longest wait for the result of an order.
#[derive(Debug, Args)]
pub(super) struct Patience {
    /// Return as soon as it is in the log
    #[arg(long)]
    no_wait: bool,
    /// Longest wait for the result
    #[arg(long, default_value = "120s", value_parser = duration, value_name = "TIME", conflicts_with = "no_wait")]
    timeout: Duration,
}

/// The daily budget of a resumed team from now on; a field that is `None` leaves it as it is.
#[derive(Debug, Default)]
pub(super) struct TeamBudget {
    pub(super) tokens_per_day: Option<u64>,
    pub(super) cost_per_day: Option<String>,
}

/// An order about a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TaskOrder {
    Pause,
    Resume,
    Run,
    Cancel,
    Share,
    Unshare,
}

impl Manner {
    /// Orders an end to an action or a process.
    pub(super) async fn command(&self, command: &NewCommand, session: &Session) -> Result<ExitCode, Error> {
        self.give("v1/commands", command, &command.agent, Awaited::End, session).await
    }

    /// Orders an end to a chain.
    pub(super) async fn cancel_chain(
        &self,
        agent: String,
        chain: String,
        session: &Session,
    ) -> Result<ExitCode, Error> {
        let command = NewCommand { chain_id: Some(chain), ..self.order(agent, &OrderedCommand::Cancel) };
        self.give("v1/commands", &command, &command.agent, Awaited::Effect, session).await
    }

    /// Pauses, resumes, runs or cancels a task.
    pub(super) async fn task(
        &self,
        agent: String,
        task: String,
        order: TaskOrder,
        session: &Session,
    ) -> Result<ExitCode, Error> {
        let word = match order {
            TaskOrder::Pause => OrderedCommand::Pause,
            TaskOrder::Resume => OrderedCommand::Resume,
            TaskOrder::Run => OrderedCommand::Run,
            TaskOrder::Share => OrderedCommand::Share,
            TaskOrder::Unshare => OrderedCommand::Unshare,
            TaskOrder::Cancel => OrderedCommand::Cancel,
        };
        let command = NewCommand { task_id: Some(task), ..self.order(agent, &word) };
        self.give("v1/commands", &command, &command.agent, Awaited::Effect, session).await
    }

    /// Puts a thread away, or takes it out again.
    pub(super) async fn archive_thread(
        &self,
        agent: String,
        thread: &Name,
        archived: bool,
        session: &Session,
    ) -> Result<ExitCode, Error> {
        let word = if archived { OrderedCommand::Archive } else { OrderedCommand::Unarchive };
        let command = NewCommand { thread_id: Some(thread.to_string()), ..self.order(agent, &word) };
        self.give("v1/commands", &command, &command.agent, Awaited::Effect, session).await
    }

    /// Pauses, resumes or archives a team.
    pub(super) async fn team(
        &self,
        team: String,
        word: &OrderedCommand,
        budget: TeamBudget,
        session: &Session,
    ) -> Result<ExitCode, Error> {
        let TeamBudget { tokens_per_day, cost_per_day } = budget;
        let command = NewCommand { team: Some(team.clone()), tokens_per_day, cost_per_day, ..self.order(team, word) };
        self.give("v1/commands", &command, &command.agent, Awaited::Effect, session).await
    }

    /// Adds or removes a submodule.
    pub(super) async fn submodule(
        &self,
        agent: String,
        word: &OrderedCommand,
        submodule: NewSubmodule,
        session: &Session,
    ) -> Result<ExitCode, Error> {
        let command = NewCommand { submodule: Some(submodule), ..self.order(agent, word) };
        self.give("v1/commands", &command, &command.agent, Awaited::Effect, session).await
    }

    fn order(&self, agent: String, word: &OrderedCommand) -> NewCommand {
        NewCommand { user: self.user.to_string(), agent, command: word.text(), ..NewCommand::default() }
    }

    /// Posts the order to this agent and waits for what comes of it.
    pub(super) async fn give(
        &self,
        path: &str,
        order: &impl Serialize,
        agent: &str,
        awaited: Awaited,
        session: &Session,
    ) -> Result<ExitCode, Error> {
        let ordered: Ordered = session.client.post(path, order).await?;
        if self.patience.no_wait {
            match session.json {
                true => terminal::json(&ordered)?,
                false => terminal::line(format!("accepted as event {} at {}", ordered.event_id, ordered.sequence))?,
            }
            return Ok(ExitCode::SUCCESS);
        }
        let followed = follow(&session.client, ordered, agent, awaited);
        let outcome = timeout(self.patience.timeout, followed).await.ok().transpose()?;
        if session.json {
            terminal::json(&json!({"accepted": ordered, "ending": outcome}))?;
        } else {
            show(ordered, outcome.as_ref())?;
        }
        Ok(ExitCode::from(match outcome {
            Some(Outcome::Done { .. } | Outcome::Asked { .. }) => 0,
            Some(Outcome::Failed { .. }) => 2,
            None => 3,
        }))
    }
}

/// Follows the order from just before it in the log, so that nothing that came of it is missed: what it led to itself,
/// and what the agent goes on with because of it, which may belong to an earlier message.
async fn follow(client: &Client, ordered: Ordered, agent: &str, awaited: Awaited) -> Result<Outcome, ClientError> {
    let after = Some(ordered.sequence.saturating_sub(1));
    let of_order = EventFilter { correlation: Some(ordered.correlation_id), after, ..EventFilter::default() };
    let of_agent = EventFilter { agent: Name::parse(agent).ok(), after, ..EventFilter::default() };
    let mut order = Order::new(ordered.correlation_id, awaited);
    let (mut of_order, mut of_agent) = (client.follow(of_order, false), client.follow(of_agent, false));
    loop {
        let told = tokio::select! {
            told = of_order.next() => told?,
            told = of_agent.next() => told?,
        };
        if let Told::Event(event) = told
            && let Some(outcome) = order.observe(&event)
        {
            return Ok(outcome);
        }
    }
}

fn show(ordered: Ordered, outcome: Option<&Outcome>) -> Result<(), Error> {
    match outcome {
        Some(Outcome::Done { text }) => terminal::line(printable(&in_words(text)))?,
        Some(Outcome::Failed { reason }) => eprintln!("kairo: {}", printable(reason)),
        Some(Outcome::Asked { question }) => ask::show(question)?,
        None => eprintln!(
            "kairo: nothing has come of it in time; it may still: kairo events --correlation {}",
            ordered.correlation_id
        ),
    }
    Ok(())
}
