//! Asking supervisors about the processes they run.

use std::time::Duration;

use kairo_core::{
    bus::port::NoAnswer,
    subjects::{SUPERVISORS_CONTROL, control_of},
};
use kairo_proto::v1::{ProcessAnswer, ProcessRequest, ProcessState, ProcessStop, process_request::Ask};
use kairo_proto::words::ProcessAnswered;
use prost::Message as _;

use super::{Control, ControlTarget};

/// Time limit for a supervisor to report on a process or to pass something on to it.
const PATIENCE: Duration = Duration::from_secs(5);

/// The answer to a question to a supervisor.
#[derive(Clone, Debug, PartialEq)]
pub enum SupervisorAnswer {
    Done(Box<ProcessState>),
    Refused(String),
    /// The supervisor does not run it, or no longer does.
    NotHere,
    NotBegun,
    /// No supervisor is there to ask: nothing was done.
    Nobody,
    /// Somebody was asked and did not answer in time, or not legibly: it may have been done or not.
    Silence,
}

impl Control {
    /// Asks the supervisor that runs the process.
    pub(super) async fn ask_supervisor(&self, supervisor: &str, target: &ControlTarget, ask: Ask) -> SupervisorAnswer {
        self.request_answer(control_of(supervisor), target, ask, PATIENCE).await
    }

    /// Asks whichever supervisor is given it to see that the process ends; it answers when that is so. Silence may
    /// mean that it was frozen or killed with the question in hand: ask again, somebody else will answer.
    pub(super) async fn ask_to_stop(&self, target: &ControlTarget) -> SupervisorAnswer {
        let patience = self.patience.min(Duration::from_millis(self.bus.limits.ack_wait_ms));
        self.request_answer(SUPERVISORS_CONTROL.to_owned(), target, Ask::Stop(ProcessStop::default()), patience).await
    }

    async fn request_answer(
        &self,
        subject: String,
        target: &ControlTarget,
        ask: Ask,
        patience: Duration,
    ) -> SupervisorAnswer {
        let request = ProcessRequest {
            agent: target.agent.to_string(),
            action_id: target.action.to_string(),
            after: target.after,
            by_action_id: target.by.to_string(),
            ask: Some(ask),
        };
        match self.bus.request(subject, request.encode_to_vec(), patience).await {
            Ok(answer) => ProcessAnswer::decode(answer).map_or(SupervisorAnswer::Silence, interpret_answer),
            Err(NoAnswer::Nobody) => SupervisorAnswer::Nobody,
            Err(NoAnswer::Silence | NoAnswer::Unavailable(_)) => SupervisorAnswer::Silence,
        }
    }
}

fn interpret_answer(answer: ProcessAnswer) -> SupervisorAnswer {
    match answer.outcome_word() {
        ProcessAnswered::Done => SupervisorAnswer::Done(Box::new(answer.state.unwrap_or_default())),
        ProcessAnswered::Refused => SupervisorAnswer::Refused(answer.reason),
        ProcessAnswered::NotHere => SupervisorAnswer::NotHere,
        ProcessAnswered::NotBegun => SupervisorAnswer::NotBegun,
        ProcessAnswered::Unknown(_) => SupervisorAnswer::Silence,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_told_apart_and_an_unknown_one_says_nothing() {
        let answer =
            |outcome: &str| interpret_answer(ProcessAnswer { outcome: outcome.to_owned(), ..Default::default() });
        assert_eq!(answer("done"), SupervisorAnswer::Done(Box::default()));
        assert_eq!(answer("refused"), SupervisorAnswer::Refused(String::new()));
        assert_eq!((answer("not_here"), answer("not_begun")), (SupervisorAnswer::NotHere, SupervisorAnswer::NotBegun));
        assert_eq!(answer("of late"), SupervisorAnswer::Silence);
    }
}
