//! Giving an order to an agent, and waiting for what comes of it.

use std::{process::ExitCode, time::Duration};

use clap::Args;
use kairo_core::ids::Name;
use kairo_proto::words::OrderedCommand;
use serde::Serialize;
use serde_json::json;
use tokio::time::timeout;

use super::{GatewaySession, duration, name, question_prompt};
use crate::{
    Error,
    client::{AcceptedOrder, Client, ClientError, EventFilter, NewCommand, NewSubmodule, StreamUpdate},
    event_lines::printable,
    order::{AwaitedEvent, OrderOutcome, OrderTracker, describe_result},
    terminal,
};

pub(super) const STATUS: &str = "\
Exit status:
  0  done
  2  the agent cannot do it, or what it did failed
  3  nothing has come of it in time; it may still: kairo events --correlation ID";

/// User who gives the order, and the wait for its result.
#[derive(Debug, Args)]
pub(super) struct OrderOptions {
    /// User who gives the order
    #[arg(long, default_value = "you", value_parser = name, value_name = "NAME")]
    pub(super) user: Name,
    #[command(flatten)]
    pub(super) patience: WaitOptions,
}

/// User who answers an agent's question, and the wait for the result.
#[derive(Debug, Args)]
pub(super) struct AnswerOptions {
    /// User who answers; by default whoever was asked
    #[arg(long, value_parser = name, value_name = "NAME")]
    user: Option<Name>,
    #[command(flatten)]
    patience: WaitOptions,
}

impl AnswerOptions {
    /// Turns the answer into an order of the named user or, without one, of the user who was asked.
    pub(super) fn into_order_options(self, asked: Option<&str>) -> Result<OrderOptions, Error> {
        let user = self.user.or_else(|| Name::parse(asked?).ok());
        let unknown =
            || Error::Advice("it was asked too long ago to know of whom; say who answers: --user NAME".to_owned());
        Ok(OrderOptions { user: user.ok_or_else(unknown)?, patience: self.patience })
    }
}

/// Longest wait for the result of an order.
#[derive(Debug, Args)]
pub(super) struct WaitOptions {
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

impl OrderOptions {
    /// Orders an end to an action or a process.
    pub(super) async fn send_command(&self, command: &NewCommand, session: &GatewaySession) -> Result<ExitCode, Error> {
        self.post_and_wait("v1/commands", command, &command.agent, AwaitedEvent::End, session).await
    }

    /// Orders an end to a chain.
    pub(super) async fn cancel_chain(
        &self,
        agent: String,
        chain: String,
        session: &GatewaySession,
    ) -> Result<ExitCode, Error> {
        let command = NewCommand { chain_id: Some(chain), ..self.new_command(agent, &OrderedCommand::Cancel) };
        self.post_and_wait("v1/commands", &command, &command.agent, AwaitedEvent::Effect, session).await
    }

    /// Pauses, resumes, runs or cancels a task.
    pub(super) async fn order_task(
        &self,
        agent: String,
        task: String,
        order: TaskOrder,
        session: &GatewaySession,
    ) -> Result<ExitCode, Error> {
        let word = match order {
            TaskOrder::Pause => OrderedCommand::Pause,
            TaskOrder::Resume => OrderedCommand::Resume,
            TaskOrder::Run => OrderedCommand::Run,
            TaskOrder::Share => OrderedCommand::Share,
            TaskOrder::Unshare => OrderedCommand::Unshare,
            TaskOrder::Cancel => OrderedCommand::Cancel,
        };
        let command = NewCommand { task_id: Some(task), ..self.new_command(agent, &word) };
        self.post_and_wait("v1/commands", &command, &command.agent, AwaitedEvent::Effect, session).await
    }

    /// Puts a thread away, or takes it out again.
    pub(super) async fn archive_thread(
        &self,
        agent: String,
        thread: &Name,
        archived: bool,
        session: &GatewaySession,
    ) -> Result<ExitCode, Error> {
        let word = if archived { OrderedCommand::Archive } else { OrderedCommand::Unarchive };
        let command = NewCommand { thread_id: Some(thread.to_string()), ..self.new_command(agent, &word) };
        self.post_and_wait("v1/commands", &command, &command.agent, AwaitedEvent::Effect, session).await
    }

    /// Pauses, resumes or archives a team.
    pub(super) async fn order_team(
        &self,
        team: String,
        word: &OrderedCommand,
        budget: TeamBudget,
        session: &GatewaySession,
    ) -> Result<ExitCode, Error> {
        let TeamBudget { tokens_per_day, cost_per_day } = budget;
        let command =
            NewCommand { team: Some(team.clone()), tokens_per_day, cost_per_day, ..self.new_command(team, word) };
        self.post_and_wait("v1/commands", &command, &command.agent, AwaitedEvent::Effect, session).await
    }

    /// Adds or removes a submodule.
    pub(super) async fn order_submodule(
        &self,
        agent: String,
        word: &OrderedCommand,
        submodule: NewSubmodule,
        session: &GatewaySession,
    ) -> Result<ExitCode, Error> {
        let command = NewCommand { submodule: Some(submodule), ..self.new_command(agent, word) };
        self.post_and_wait("v1/commands", &command, &command.agent, AwaitedEvent::Effect, session).await
    }

    fn new_command(&self, agent: String, word: &OrderedCommand) -> NewCommand {
        NewCommand { user: self.user.to_string(), agent, command: word.text(), ..NewCommand::default() }
    }

    /// Posts the order to this agent and waits for what comes of it.
    pub(super) async fn post_and_wait(
        &self,
        path: &str,
        order: &impl Serialize,
        agent: &str,
        awaited: AwaitedEvent,
        session: &GatewaySession,
    ) -> Result<ExitCode, Error> {
        let ordered: AcceptedOrder = session.client.post(path, order).await?;
        if self.patience.no_wait {
            match session.json {
                true => terminal::json(&ordered)?,
                false => terminal::line(format!("accepted as event {} at {}", ordered.event_id, ordered.sequence))?,
            }
            return Ok(ExitCode::SUCCESS);
        }
        let followed = follow_order(&session.client, ordered, agent, awaited);
        let outcome = timeout(self.patience.timeout, followed).await.ok().transpose()?;
        if session.json {
            terminal::json(&json!({"accepted": ordered, "ending": outcome}))?;
        } else {
            print_outcome(ordered, outcome.as_ref())?;
        }
        Ok(ExitCode::from(match outcome {
            Some(OrderOutcome::Done { .. } | OrderOutcome::Asked { .. }) => 0,
            Some(OrderOutcome::Failed { .. }) => 2,
            None => 3,
        }))
    }
}

/// Follows the order from just before it in the log, so that nothing that came of it is missed: what it led to itself,
/// and what the agent goes on with because of it, which may belong to an earlier message.
async fn follow_order(
    client: &Client,
    ordered: AcceptedOrder,
    agent: &str,
    awaited: AwaitedEvent,
) -> Result<OrderOutcome, ClientError> {
    let after = Some(ordered.sequence.saturating_sub(1));
    let of_order = EventFilter { correlation: Some(ordered.correlation_id), after, ..EventFilter::default() };
    let of_agent = EventFilter { agent: Name::parse(agent).ok(), after, ..EventFilter::default() };
    let mut order = OrderTracker::new(ordered.correlation_id, awaited);
    let mut of_order = client.follow(of_order, false);
    let mut of_agent = client.follow(of_agent, false);
    loop {
        let told = tokio::select! {
            told = of_order.next() => told?,
            told = of_agent.next() => told?,
        };
        if let StreamUpdate::Event(event) = told
            && let Some(outcome) = order.observe(&event)
        {
            return Ok(outcome);
        }
    }
}

fn print_outcome(ordered: AcceptedOrder, outcome: Option<&OrderOutcome>) -> Result<(), Error> {
    match outcome {
        Some(OrderOutcome::Done { text }) => terminal::line(printable(&describe_result(text)))?,
        Some(OrderOutcome::Failed { reason }) => eprintln!("kairo: {}", printable(reason)),
        Some(OrderOutcome::Asked { question }) => question_prompt::print_question(question)?,
        None => eprintln!(
            "kairo: nothing has come of it in time; it may still: kairo events --correlation {}",
            ordered.correlation_id
        ),
    }
    Ok(())
}
