//! process-supervisor's `requests.rs`: stopping a process on request, whichever supervisor is asked.

use kairo_core::{
    bus::{BusError, append::Outgoing},
    envelope::{Envelope, Origin},
    ids::{self, Name},
    subjects::{PROCESS_CANCELED, Service},
};
use kairo_proto::v1::ProcessCanceled;
use uuid::Uuid;

use crate::{replica::Replica, steps::step, supervisor::Supervisor, world::ProcessState};

/// What whoever asks is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    Done,
    NotBegun,
    NotHere,
    /// Nobody answers, or nobody is there.
    Silence,
}

impl Replica {
    /// `Supervisors::ask_to_stop`: any supervisor is asked. It works while the asker waits, and if it dies or stands
    /// still meanwhile there is no answer, though what it began may still get there.
    pub async fn ask_to_stop(&self, agent: &Name, action: Uuid, after: u64, by: Uuid) -> Answer {
        step().await;
        let asked = {
            let world = self.world.borrow();
            let there = world.supervisors.iter().filter_map(|supervisor| supervisor.upgrade());
            let there: Vec<_> = there.filter(|supervisor| world.answers(supervisor.replica.id)).collect();
            if there.is_empty() {
                return Answer::Silence;
            }
            there[world.chance.borrow_mut().below(there.len())].clone()
        };
        let answer = asked.stop(agent, action, after, by).await;
        step().await;
        let answer = match self.world.borrow().answers(asked.replica.id) {
            true => answer.unwrap_or(Answer::NotHere),
            false => Answer::Silence,
        };
        self.note(|| format!("asked {} to stop {action}: {answer:?}", asked.replica.instance));
        answer
    }
}

impl Supervisor {
    async fn stop(&self, agent: &Name, action: Uuid, after: u64, by: Uuid) -> Result<Answer, BusError> {
        if self.exited.entries(agent, after, &[action]).await?.contains_key(&action) {
            return Ok(Answer::Done);
        }
        let begun = self.spawned.entries(agent, after, &[action]).await?.remove(&action);
        self.canceled.enter(agent, after, &self.canceled_event(agent, action, by)).await?;
        // Whoever begins it from now on finds that out before its program runs; who did before is found here.
        let begun = match begun {
            Some(begun) => Some(begun),
            None => self.spawned.entries(agent, after, &[action]).await?.remove(&action),
        };
        let Some(begun) = begun else { return Ok(Answer::NotBegun) };
        step().await;
        self.stop_at(begun.by.as_str(), action);
        step().await;
        let ended = self.exited.entries(agent, after, &[action]).await?.contains_key(&action);
        Ok(if ended { Answer::Done } else { Answer::NotHere })
    }

    /// Stops it where it runs: here, or at another supervisor that answers.
    fn stop_at(&self, instance: &str, action: Uuid) {
        let mut world = self.replica.world.borrow_mut();
        let here = |replica: usize| world.replicas[replica].instance.as_str() == instance && world.answers(replica);
        let there: Vec<usize> = (0..world.processes.len())
            .filter(|at| world.processes[*at].action == action && here(world.processes[*at].replica))
            .filter(|at| world.processes[*at].state == ProcessState::Running)
            .collect();
        there.into_iter().for_each(|process| world.over(process, ProcessState::Stopped));
    }

    fn canceled_event(&self, agent: &Name, action: Uuid, by: Uuid) -> Outgoing {
        let now = self.replica.world.borrow().now();
        let id = ids::derived(action, "canceled");
        let entering = Envelope::entering(id, Service::ProcessSupervisor, Origin::System, now);
        let envelope = Envelope { correlation_id: by, causation_id: Some(by), ..entering };
        let body = ProcessCanceled {
            process_id: ids::derived(action, "process").to_string(),
            action_id: action.to_string(),
            supervisor: self.replica.instance.to_string(),
            by_action_id: by.to_string(),
            grace_ms: 1_000,
        };
        Outgoing::new(&PROCESS_CANCELED, agent, envelope, body)
    }
}
