//! `kairo watch`

mod team;

use std::{process::ExitCode, time::Duration};

use clap::Args;
use jiff::{Timestamp, tz::TimeZone};
use kairo_core::ids::Name;
use serde_json::json;
use tokio::time::{Instant, timeout_at};

use super::{GatewaySession, name};
use crate::{
    Error,
    client::{Client, ClientError, EventFilter, EventFollower, StreamUpdate},
    terminal,
    watch::{EventPosition, Happening, HappeningKind, News, Picture, ProcessLine, Screen, report},
};

const EXAMPLES: &str = "\
Examples:
  kairo watch --agent ops               until Ctrl-C
  kairo watch --agent ops --once        what it does right now
  kairo watch --agent ops --plain       a line for all that happens, for files and pipes
  kairo watch --team market             what its lead and its workers do, a line each

The picture is made from the agent's events and what is said live, and from nothing else: whenever
one begins to watch, and whatever was restarted meanwhile, it is the same.";

/// Happenings of before that are shown when one begins to watch.
const BEFORE: usize = 20;
/// The longest wait for output of a running process when looking only once. Nothing tells that a process has written
/// nothing.
const OUTPUT_PATIENCE: Duration = Duration::from_secs(1);
/// Newest events among which the last one of the agent's own is looked for.
const NEWEST: u64 = 500;

/// Watch an agent, or all of a team: what is said, decided and run
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct WatchArgs {
    /// The agent
    #[arg(long, default_value = "default", value_parser = name, value_name = "NAME")]
    agent: Name,
    /// All agents of this team instead: a line for all that happens to one of them from now on, or after --after
    #[arg(long, value_parser = name, value_name = "NAME", conflicts_with_all = ["agent", "once"])]
    team: Option<Name>,
    /// Begin with what happened after this place in the log, instead of the last 20 lines
    #[arg(long, value_name = "PLACE", conflicts_with = "once")]
    after: Option<EventPosition>,
    /// Show the present picture, and return
    #[arg(long)]
    once: bool,
    /// A line for all that happens, also on a terminal
    #[arg(long, conflicts_with = "once")]
    plain: bool,
}

pub(super) async fn run(arguments: WatchArgs, session: &GatewaySession) -> Result<ExitCode, Error> {
    if let Some(team) = &arguments.team {
        return team::watch_team(team, arguments.after, session).await;
    }
    let filter = EventFilter { agent: Some(arguments.agent.clone()), after: Some(0), ..EventFilter::default() };
    let mut watch =
        AgentWatch { picture: Picture::new(arguments.agent.as_str()), follow: session.client.follow(filter, true) };
    let newest = newest_position(&session.client, &arguments.agent).await;
    if arguments.once {
        let newest = newest?;
        if newest == EventPosition::default() {
            let agent = arguments.agent;
            return Err(Error::Advice(format!("nothing is known of an agent named {agent}; see kairo agents")));
        }
        watch.catch_up(newest, |_| Ok(())).await?;
        watch.wait_for_output().await?;
        return print_picture(&watch.picture, session.json);
    }
    if matches!(newest, Ok(place) if place == EventPosition::default()) {
        eprintln!("kairo: nothing is known of an agent named {} yet; waiting for it", arguments.agent);
    }
    // Without the read model nobody knows where the past ends: then all of it is shown.
    watch
        .stream_to_view(newest.unwrap_or_default(), arguments.after, choose_view(arguments.plain, session.json))
        .await?;
    Ok(ExitCode::SUCCESS)
}

fn choose_view(plain: bool, json: bool) -> WatchView {
    match terminal::width() {
        _ if json => WatchView::Json,
        Some(width) if !plain => WatchView::Screen(Box::new(Screen::new(width))),
        _ => WatchView::Plain,
    }
}

/// The place of the last event that a stream of this agent shows; the beginning of the log if there is none.
async fn newest_position(client: &Client, agent: &Name) -> Result<EventPosition, Error> {
    let filter = EventFilter { agent: Some(agent.clone()), latest: Some(NEWEST), ..EventFilter::default() };
    let page = client.events(&filter).await?;
    // What users say to the agent is among these, but not among the agent's own.
    let own = page.events.iter().rfind(|event| event.subject.split('.').nth(2) == Some(agent.as_str()));
    Ok(own.map(EventPosition::from_event).unwrap_or_default())
}

struct AgentWatch {
    picture: Picture,
    follow: EventFollower,
}

impl AgentWatch {
    /// Waits for the next news, and takes them in.
    async fn next_news(&mut self) -> Result<News, ClientError> {
        Ok(match self.follow.next().await? {
            StreamUpdate::Event(event) => self.picture.apply_event(&event),
            StreamUpdate::Live { name, data } => self.picture.apply_live(&name, &data),
            // It is not asked for.
            StreamUpdate::TurnStatus(_) => News::default(),
        })
    }

    /// Takes in all up to this place.
    async fn catch_up(
        &mut self,
        newest: EventPosition,
        mut each: impl FnMut(News) -> Result<(), Error>,
    ) -> Result<(), Error> {
        while self.picture.place < newest {
            each(self.next_news().await?)?;
        }
        Ok(())
    }

    /// Waits for the output of what runs, for so long as one may.
    async fn wait_for_output(&mut self) -> Result<(), Error> {
        let deadline = Instant::now() + OUTPUT_PATIENCE;
        while self.picture.processes.iter().any(|process| !process.output.is_live()) {
            match timeout_at(deadline, self.next_news()).await {
                Ok(news) => drop(news?),
                Err(_) => break,
            }
        }
        Ok(())
    }

    /// Shows what happens, without end.
    async fn stream_to_view(
        &mut self,
        newest: EventPosition,
        after: Option<EventPosition>,
        mut view: WatchView,
    ) -> Result<(), Error> {
        let mut written = Vec::new();
        self.catch_up(newest, |news| {
            // Output of what runs; it is shown below what was before.
            written.extend(news.written);
            let wanted = news.happening.filter(|happening| after.is_some_and(|after| happening.place > after));
            wanted.iter().try_for_each(|happening| view.show_happening(happening))
        })
        .await?;
        if after.is_none() {
            self.picture.recent(BEFORE).into_iter().try_for_each(|happening| view.show_happening(happening))?;
        }
        written.iter().try_for_each(|line| view.show_output(line))?;
        loop {
            view.refresh(&self.picture);
            let news = self.next_news().await?;
            news.written.iter().try_for_each(|line| view.show_output(line))?;
            let shown = news.happening.filter(|happening| after.is_none_or(|after| happening.place > after));
            shown.iter().try_for_each(|happening| view.show_happening(happening))?;
        }
    }
}

fn print_picture(picture: &Picture, json: bool) -> Result<ExitCode, Error> {
    if json {
        terminal::json(picture)?;
    } else {
        report(picture, Timestamp::now(), &TimeZone::system()).into_iter().try_for_each(terminal::line)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The form in which news is shown.
enum WatchView {
    Screen(Box<Screen>),
    Plain,
    Json,
}

impl WatchView {
    fn show_happening(&mut self, happening: &Happening) -> Result<(), Error> {
        match self {
            // The bars show it.
            WatchView::Screen(_) if happening.kind == HappeningKind::Progress => {}
            WatchView::Screen(screen) => screen.print_happening(happening)?,
            WatchView::Plain => terminal::line(happening.line(&TimeZone::system()))?,
            WatchView::Json => terminal::json(happening)?,
        }
        Ok(())
    }

    fn show_output(&mut self, written: &ProcessLine) -> Result<(), Error> {
        match self {
            WatchView::Screen(_) => {}
            WatchView::Plain => terminal::line(written.to_string())?,
            WatchView::Json => terminal::json(&json!({"kind": "output", "written": written}))?,
        }
        Ok(())
    }

    fn refresh(&mut self, picture: &Picture) {
        if let WatchView::Screen(screen) = self {
            screen.show(picture, Timestamp::now());
        }
    }
}
