//! Talking to a fork.

use std::{collections::VecDeque, path::Path, process::ExitCode, sync::Arc, time::Duration};

use jiff::SignedDuration;
use kairo_core::ids::Name;
use kairo_fork::{Fork, ForkEvent, model_calls::ForkModels};
use kairo_proto::{
    v1::{UserApproval, UserChoice, UserMessage},
    words::{OfferAnswer, Verdict},
};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{
    fork_error,
    input::{ForkInput, InputEvent, UnansweredCall},
    screen::ForkScreen,
};
use crate::{
    Error,
    agent_log::MessageFile,
    commands::{question_prompt, signed_duration},
    event_lines::printable,
    question::{AgentQuestion, QuestionSubject},
    terminal,
};

const HELP: &str = "\
:wait TIME      lets time pass, such as 1h: what is due by then happens
:state [AGENT]  shows what an agent knows, as `kairo state` does
:export FILE    keeps the log of the fork
:help           lists these; Ctrl-D ends the fork";

pub struct ForkDialogue {
    pub fork: Fork,
    /// The models to ask for what the log has no answer to, if there are any.
    pub models: Option<Arc<ForkModels>>,
    pub user: Name,
    pub agents: Vec<Name>,
    pub input: ForkInput,
    pub screen: ForkScreen,
    /// The longest time for all that follows from one line.
    pub timeout: Duration,
    pub pending_questions: VecDeque<PendingQuestion>,
}

/// Something that the next line answers.
pub enum PendingQuestion {
    /// By an agent.
    Agent(AgentQuestion),
    ToolCall(UnansweredCall),
}

/// The reason to go on or to stop waiting.
#[derive(PartialEq)]
enum WaitOutcome {
    On,
    AtRest,
    OutOfTime,
}

impl ForkDialogue {
    /// Until there are no more lines and all is at rest; then `wait` passes, and the log is kept.
    pub async fn run(mut self, mut wait: Option<SignedDuration>, export: Option<&Path>) -> Result<ExitCode, Error> {
        let mut went = self.converse().await?;
        if let Some(wait) = wait.take().filter(|_| went == WaitOutcome::AtRest) {
            self.fork.advance(wait);
            went = self.run_until_rest().await?;
        }
        if let Some(path) = export {
            self.export_log(path)?;
        }
        let at_rest = went == WaitOutcome::AtRest;
        if !at_rest {
            let seconds = self.timeout.as_secs();
            self.screen
                .show_note(format!("Not at rest after {seconds} s: a longer time can be given with --timeout."))?;
        }
        let spent = self.models.as_ref().map(|models| models.spending());
        self.screen.show_closing(at_rest, self.fork.clock().now(), spent.as_ref())?;
        self.fork.stop().await;
        Ok(if at_rest { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    /// Takes line after line.
    async fn converse(&mut self) -> Result<WaitOutcome, Error> {
        loop {
            if self.run_until_rest().await? == WaitOutcome::OutOfTime {
                return Ok(WaitOutcome::OutOfTime);
            }
            self.show_prompt()?;
            // Meanwhile things may happen by themselves.
            let line = loop {
                tokio::select! {
                    biased;
                    next = self.input.next() => match next {
                        InputEvent::Line(line) => break line?,
                        InputEvent::Call(call) => {
                            self.queue_call_question(call)?;
                            self.show_prompt()?;
                        }
                    },
                    happened = self.fork.next_event() => {
                        self.apply_happening(happened.map_err(fork_error)?)?;
                    }
                }
            };
            match line {
                Some(line) => self.dispatch_line(&line)?,
                None => return Ok(WaitOutcome::AtRest),
            }
        }
    }

    /// Shows what happens until nothing is left to be done, or somebody is asked.
    async fn run_until_rest(&mut self) -> Result<WaitOutcome, Error> {
        let mut deadline = Instant::now() + self.timeout;
        loop {
            let went = tokio::select! {
                biased;
                happened = self.fork.next_event() => self.apply_happening(happened.map_err(fork_error)?)?,
                call = self.input.next_call() => {
                    self.queue_call_question(call)?;
                    // Whoever is asked may think.
                    self.await_answer().await?;
                    deadline = Instant::now() + self.timeout;
                    WaitOutcome::On
                }
                () = tokio::time::sleep_until(deadline) => WaitOutcome::OutOfTime,
            };
            if went != WaitOutcome::On {
                return Ok(went);
            }
        }
    }

    /// Shows what happened, keeps the questions it opens or closes, and tells whether to go on.
    fn apply_happening(&mut self, happened: ForkEvent) -> Result<WaitOutcome, Error> {
        match happened {
            ForkEvent::Record(record) => {
                for event in self.screen.show_record(&record)? {
                    self.pending_questions.retain(
                        |asked| !matches!(asked, PendingQuestion::Agent(question) if question.is_answered_by(&event)),
                    );
                    if let Some(question) = AgentQuestion::from_event(&event) {
                        self.screen.show_note(printable(&question.words()))?;
                        self.pending_questions.push_back(PendingQuestion::Agent(question));
                    }
                }
            }
            ForkEvent::Answered(told) => self.screen.show_answer(&told)?,
            ForkEvent::AtRest => return Ok(WaitOutcome::AtRest),
        }
        Ok(WaitOutcome::On)
    }

    /// The next line is to say what this call comes to.
    fn queue_call_question(&mut self, call: UnansweredCall) -> Result<(), Error> {
        let UnansweredCall { tool, arguments, .. } = &call;
        self.screen.show_note(printable(&format!("{tool} {arguments} has no answer here.")))?;
        self.pending_questions.push_back(PendingQuestion::ToolCall(call));
        Ok(())
    }

    fn show_prompt(&self) -> Result<(), Error> {
        if !self.input.is_terminal {
            return Ok(());
        }
        self.screen.show_prompt(match self.pending_questions.front() {
            Some(PendingQuestion::Agent(_)) => "[y/n] ",
            Some(PendingQuestion::ToolCall(_)) => "result (JSON; nothing for locked): ",
            None => "> ",
        })
    }

    /// Has the line typed that answers what is asked first.
    async fn await_answer(&mut self) -> Result<(), Error> {
        let asked = self.pending_questions.len();
        while self.pending_questions.len() >= asked {
            self.show_prompt()?;
            match self.input.next_line().await? {
                Some(line) => self.dispatch_line(&line)?,
                None => {
                    self.pending_questions.clear();
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// A line was typed.
    fn dispatch_line(&mut self, line: &str) -> Result<(), Error> {
        match self.pending_questions.pop_front() {
            Some(PendingQuestion::Agent(question)) => match question_prompt::parse_yes_no(line) {
                Some(yes) => self.answer_question(&question, yes),
                None => {
                    self.pending_questions.push_front(PendingQuestion::Agent(question));
                    self.screen.show_note("expected y or n")?;
                }
            },
            Some(PendingQuestion::ToolCall(call)) => match line.trim() {
                "" => _ = call.result.send(None),
                line => match serde_json::from_str::<Value>(line) {
                    Ok(result) => _ = call.result.send(Some(result)),
                    Err(error) => {
                        self.pending_questions.push_front(PendingQuestion::ToolCall(call));
                        self.screen
                            .show_note(format!("expected JSON, such as {{\"booked\":true}} or \"words\": {error}"))?;
                    }
                },
            },
            None => match line.trim().split_once(' ').unwrap_or((line.trim(), "")) {
                ("", _) => {}
                (command, rest) if command.starts_with(':') => self.run_command(command, rest.trim())?,
                _ => self.send_message(line.trim()),
            },
        }
        Ok(())
    }

    fn send_message(&mut self, text: &str) {
        let first = self.agents.first().map(Name::to_string).unwrap_or_default();
        // Who is named at the beginning, is spoken with.
        let agent = if text.starts_with('@') { String::new() } else { first };
        let message = UserMessage { user: self.user.to_string(), agent, text: text.to_owned(), ..Default::default() };
        self.fork.say(&self.user, message);
    }

    fn answer_question(&mut self, question: &AgentQuestion, yes: bool) {
        let user = self.user.to_string();
        let agent = question.agent.clone();
        let id = question.id.clone();
        match question.about {
            QuestionSubject::Thread { .. } => {
                let option = if yes { OfferAnswer::Accept } else { OfferAnswer::Decline }.text();
                let choice = UserChoice { user, agent, offer_id: id, option, ..Default::default() };
                self.fork.choose(&self.user, choice);
            }
            QuestionSubject::Consent { .. } => {
                let verdict = if yes { Verdict::Approved } else { Verdict::Rejected }.text();
                let approval = UserApproval { user, agent, action_id: id, verdict, ..Default::default() };
                self.fork.approve(&self.user, approval);
            }
        }
    }

    fn run_command(&mut self, command: &str, rest: &str) -> Result<(), Error> {
        match command {
            ":wait" => match signed_duration(rest) {
                Ok(time) => {
                    self.fork.advance(time);
                    self.screen.show_note(format!("It is {} now.", self.fork.clock().now()))
                }
                Err(why) => self.screen.show_note(format!(":wait: {why}")),
            },
            ":state" => {
                let agent = self.agents.iter().find(|agent| agent.as_str() == rest).or(self.agents.first());
                let state = agent.map(|agent| self.fork.state(agent).state);
                let state = serde_json::to_string_pretty(&json!(state.as_deref())).unwrap_or_default();
                Ok(terminal::line(printable(&state))?)
            }
            ":export" if !rest.is_empty() => self.export_log(Path::new(rest)),
            _ => self.screen.show_note(HELP),
        }
    }

    fn export_log(&self, path: &Path) -> Result<(), Error> {
        let mut saved = MessageFile::create(path)?;
        let log = self.fork.export();
        log.iter().try_for_each(|message| saved.write(message))?;
        self.screen.show_note(format!(
            "{} messages in {}: `kairo replay {}` and others open it.",
            log.len(),
            path.display(),
            path.display()
        ))
    }
}
