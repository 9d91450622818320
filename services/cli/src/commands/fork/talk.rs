//! Talking to a fork.

use std::{collections::VecDeque, path::Path, process::ExitCode, sync::Arc, time::Duration};

use jiff::SignedDuration;
use kairo_core::ids::Name;
use kairo_fork::{Fork, Happened, asking::Forking};
use kairo_proto::{
    v1::{UserApproval, UserChoice, UserMessage},
    words::{OfferAnswer, Verdict},
};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{
    failed,
    show::Screen,
    typed::{Call, Next, Typed},
};
use crate::{
    Error,
    agent_log::Saved,
    commands::{ahead, ask},
    event_lines::printable,
    question::{About, Question},
    terminal,
};

const HELP: &str = "\
:wait TIME      lets time pass, such as 1h: what is due by then happens
:state [AGENT]  shows what an agent knows, as `kairo state` does
:export FILE    keeps the log of the fork
:help           lists these; Ctrl-D ends the fork";

pub struct Talk {
    pub fork: Fork,
    /// The models to ask for what the log has no answer to, if there are any.
    pub models: Option<Arc<Forking>>,
    pub user: Name,
    pub agents: Vec<Name>,
    pub typed: Typed,
    pub screen: Screen,
    /// The longest time for all that follows from one line.
    pub timeout: Duration,
    pub asked: VecDeque<Asked>,
}

/// Something that the next line answers.
pub enum Asked {
    /// By an agent.
    Agent(Question),
    About(Call),
}

/// The reason to go on or to stop waiting.
#[derive(PartialEq)]
enum Went {
    On,
    AtRest,
    OutOfTime,
}

impl Talk {
    /// Until there are no more lines and all is at rest; then `wait` passes, and the log is kept.
    pub async fn run(mut self, mut wait: Option<SignedDuration>, export: Option<&Path>) -> Result<ExitCode, Error> {
        let mut went = self.converse().await?;
        if let Some(wait) = wait.take().filter(|_| went == Went::AtRest) {
            self.fork.advance(wait);
            went = self.until_rest().await?;
        }
        if let Some(path) = export {
            self.export(path)?;
        }
        let at_rest = went == Went::AtRest;
        if !at_rest {
            let seconds = self.timeout.as_secs();
            self.screen.note(format!("Not at rest after {seconds} s: a longer time can be given with --timeout."))?;
        }
        let spent = self.models.as_ref().map(|models| models.spent());
        self.screen.end(at_rest, self.fork.clock().now(), spent.as_ref())?;
        self.fork.end().await;
        Ok(if at_rest { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    /// Takes line after line.
    async fn converse(&mut self) -> Result<Went, Error> {
        loop {
            if self.until_rest().await? == Went::OutOfTime {
                return Ok(Went::OutOfTime);
            }
            self.prompt()?;
            // Meanwhile things may happen by themselves.
            let line = loop {
                tokio::select! {
                    biased;
                    next = self.typed.next() => match next {
                        Next::Line(line) => break line?,
                        Next::Call(call) => {
                            self.ask_about(call)?;
                            self.prompt()?;
                        }
                    },
                    happened = self.fork.next() => {
                        self.take(happened.map_err(failed)?)?;
                    }
                }
            };
            match line {
                Some(line) => self.typed(&line)?,
                None => return Ok(Went::AtRest),
            }
        }
    }

    /// Shows what happens until nothing is left to be done, or somebody is asked.
    async fn until_rest(&mut self) -> Result<Went, Error> {
        let mut deadline = Instant::now() + self.timeout;
        loop {
            let went = tokio::select! {
                biased;
                happened = self.fork.next() => self.take(happened.map_err(failed)?)?,
                call = self.typed.call() => {
                    self.ask_about(call)?;
                    // Whoever is asked may think.
                    self.answer().await?;
                    deadline = Instant::now() + self.timeout;
                    Went::On
                }
                () = tokio::time::sleep_until(deadline) => Went::OutOfTime,
            };
            if went != Went::On {
                return Ok(went);
            }
        }
    }

    /// Shows what happened, keeps the questions it opens or closes, and tells whether to go on.
    fn take(&mut self, happened: Happened) -> Result<Went, Error> {
        match happened {
            Happened::Record(record) => {
                for event in self.screen.record(&record)? {
                    self.asked
                        .retain(|asked| !matches!(asked, Asked::Agent(question) if question.is_answered_by(&event)));
                    if let Some(question) = Question::of(&event) {
                        self.screen.note(printable(&question.words()))?;
                        self.asked.push_back(Asked::Agent(question));
                    }
                }
            }
            Happened::Answered(told) => self.screen.answered(&told)?,
            Happened::AtRest => return Ok(Went::AtRest),
        }
        Ok(Went::On)
    }

    /// The next line is to say what this call comes to.
    fn ask_about(&mut self, call: Call) -> Result<(), Error> {
        let Call { tool, arguments, .. } = &call;
        self.screen.note(printable(&format!("{tool} {arguments} has no answer here.")))?;
        self.asked.push_back(Asked::About(call));
        Ok(())
    }

    fn prompt(&self) -> Result<(), Error> {
        if !self.typed.is_terminal {
            return Ok(());
        }
        self.screen.prompt(match self.asked.front() {
            Some(Asked::Agent(_)) => "[y/n] ",
            Some(Asked::About(_)) => "result (JSON; nothing for locked): ",
            None => "> ",
        })
    }

    /// Has the line typed that answers what is asked first.
    async fn answer(&mut self) -> Result<(), Error> {
        let asked = self.asked.len();
        while self.asked.len() >= asked {
            self.prompt()?;
            match self.typed.line().await? {
                Some(line) => self.typed(&line)?,
                None => {
                    self.asked.clear();
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// A line was typed.
    fn typed(&mut self, line: &str) -> Result<(), Error> {
        match self.asked.pop_front() {
            Some(Asked::Agent(question)) => match ask::meant(line) {
                Some(yes) => self.consent(&question, yes),
                None => {
                    self.asked.push_front(Asked::Agent(question));
                    self.screen.note("expected y or n")?;
                }
            },
            Some(Asked::About(call)) => match line.trim() {
                "" => _ = call.result.send(None),
                line => match serde_json::from_str::<Value>(line) {
                    Ok(result) => _ = call.result.send(Some(result)),
                    Err(error) => {
                        self.asked.push_front(Asked::About(call));
                        self.screen
                            .note(format!("expected JSON, such as {{\"booked\":true}} or \"words\": {error}"))?;
                    }
                },
            },
            None => match line.trim().split_once(' ').unwrap_or((line.trim(), "")) {
                ("", _) => {}
                (command, rest) if command.starts_with(':') => self.command(command, rest.trim())?,
                _ => self.say(line.trim()),
            },
        }
        Ok(())
    }

    fn say(&mut self, text: &str) {
        let first = self.agents.first().map(Name::to_string).unwrap_or_default();
        // Who is named at the beginning, is spoken with.
        let agent = if text.starts_with('@') { String::new() } else { first };
        let message = UserMessage { user: self.user.to_string(), agent, text: text.to_owned(), ..Default::default() };
        self.fork.say(&self.user, message);
    }

    fn consent(&mut self, question: &Question, yes: bool) {
        let (user, agent, id) = (self.user.to_string(), question.agent.clone(), question.id.clone());
        match question.about {
            About::Thread { .. } => {
                let option = if yes { OfferAnswer::Accept } else { OfferAnswer::Decline }.text();
                let choice = UserChoice { user, agent, offer_id: id, option, ..Default::default() };
                self.fork.choose(&self.user, choice);
            }
            About::Consent { .. } => {
                let verdict = if yes { Verdict::Approved } else { Verdict::Rejected }.text();
                let approval = UserApproval { user, agent, action_id: id, verdict, ..Default::default() };
                self.fork.approve(&self.user, approval);
            }
        }
    }

    fn command(&mut self, command: &str, rest: &str) -> Result<(), Error> {
        match command {
            ":wait" => match ahead(rest) {
                Ok(time) => {
                    self.fork.advance(time);
                    self.screen.note(format!("It is {} now.", self.fork.clock().now()))
                }
                Err(why) => self.screen.note(format!(":wait: {why}")),
            },
            ":state" => {
                let agent = self.agents.iter().find(|agent| agent.as_str() == rest).or(self.agents.first());
                let state = agent.map(|agent| self.fork.state(agent).state);
                let state = serde_json::to_string_pretty(&json!(state.as_deref())).unwrap_or_default();
                Ok(terminal::line(printable(&state))?)
            }
            ":export" if !rest.is_empty() => self.export(Path::new(rest)),
            _ => self.screen.note(HELP),
        }
    }

    fn export(&self, path: &Path) -> Result<(), Error> {
        let mut saved = Saved::create(path)?;
        let log = self.fork.export();
        log.iter().try_for_each(|message| saved.write(message))?;
        self.screen.note(format!(
            "{} messages in {}: `kairo replay {}` and others open it.",
            log.len(),
            path.display(),
            path.display()
        ))
    }
}
