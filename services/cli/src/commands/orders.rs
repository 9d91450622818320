//! Giving an order to an agent, and waiting for what comes of it.

use std::{process::ExitCode, time::Duration};

use clap::Args;
use kairo_core::ids::Name;
use serde::Serialize;
use serde_json::json;
use tokio::time::timeout;

use super::{Session, duration, name};
use crate::{
    Error,
    chain::printable,
    client::{Client, ClientError, EventFilter, NewCommand, Ordered, Told},
    order::{Awaited, Order, Outcome, in_words},
    terminal,
};

pub(super) const STATUS: &str = "\
Exit status:
  0  done
  2  the agent cannot do it, or what it did failed
  3  nothing has come of it in time; it may still: kairo events --correlation ID";

/// Who gives the order, and how long to wait.
#[derive(Debug, Args)]
pub(super) struct Manner {
    /// Who says so
    #[arg(long, default_value = "you", value_parser = name, value_name = "NAME")]
    pub(super) user: Name,
    /// Return as soon as it is in the log
    #[arg(long)]
    no_wait: bool,
    /// How long to wait for what comes of it
    #[arg(long, default_value = "120s", value_parser = duration, value_name = "TIME", conflicts_with = "no_wait")]
    timeout: Duration,
}

impl Manner {
    /// Orders an end to an action or a process.
    pub(super) async fn command(&self, command: &NewCommand, session: &Session) -> Result<ExitCode, Error> {
        self.give("v1/commands", command, Awaited::Result, session).await
    }

    /// Posts the order and waits for what comes of it.
    pub(super) async fn give(
        &self,
        path: &str,
        order: &impl Serialize,
        awaited: Awaited,
        session: &Session,
    ) -> Result<ExitCode, Error> {
        let ordered: Ordered = session.client.post(path, order).await?;
        if self.no_wait {
            match session.json {
                true => terminal::json(&ordered)?,
                false => terminal::line(format!("accepted as event {} at {}", ordered.event_id, ordered.sequence))?,
            }
            return Ok(ExitCode::SUCCESS);
        }
        let outcome = timeout(self.timeout, follow(&session.client, ordered, awaited)).await.ok().transpose()?;
        if session.json {
            terminal::json(&json!({"accepted": ordered, "ending": outcome}))?;
        } else {
            show(ordered, outcome.as_ref())?;
        }
        Ok(ExitCode::from(match outcome {
            Some(Outcome::Done { .. }) => 0,
            Some(Outcome::Failed { .. }) => 2,
            None => 3,
        }))
    }
}

/// Follows the order from just before it in the log, so that nothing that came of it is missed.
async fn follow(client: &Client, ordered: Ordered, awaited: Awaited) -> Result<Outcome, ClientError> {
    let filter = EventFilter {
        correlation: Some(ordered.correlation_id),
        after: Some(ordered.sequence.saturating_sub(1)),
        ..EventFilter::default()
    };
    let mut order = Order::new(ordered.correlation_id, awaited);
    let mut follow = client.follow(filter, false);
    loop {
        if let Told::Event(event) = follow.next().await?
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
        None => eprintln!(
            "kairo: nothing has come of it in time; it may still: kairo events --correlation {}",
            ordered.correlation_id
        ),
    }
    Ok(())
}
