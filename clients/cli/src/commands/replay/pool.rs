//! Decisions made again on all cores. Agents are independent, so each is one thread's; what comes of them is told in the log's order,
//! as if one thread had made them all.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    ops::ControlFlow,
    panic,
    sync::mpsc::{Receiver, Sender, TryRecvError, channel},
    thread::{self, JoinHandle},
};

use kairo_core::ids::Name;
use kairo_proto::v1::LogMessage;
use kairo_replay::{
    lanes::Shadow,
    replay_dispatch::{Dispatch, DispatchStep, ReplayTask, ReplayTaskResult, RerunDecision, Share},
    report::{DecisionReport, Report},
};

use crate::Error;

/// Messages that are read and not told of yet, for each thread: so many that one thread can end an agent with a long log while the
/// others begin the next ones.
const AHEAD: usize = 10_000;
/// Messages that are read and not told of yet, for all threads, in bytes of their bodies.
const AHEAD_BYTES: usize = 32 * 1024 * 1024;
/// Messages that are handed to a thread at once.
const BATCH: usize = 64;

/// The callback that receives each decision.
pub type DecisionCallback<'t> = dyn FnMut(&DecisionReport, Option<Box<Shadow>>) -> Result<(), Error> + 't;
type AgentStates = BTreeMap<Name, String>;

/// The threads, and what is to be told of what they do.
pub struct ReplayPool {
    dispatch: Dispatch,
    workers: Vec<ReplayWorker>,
    /// The thread of each agent.
    worker_of_agent: HashMap<Name, usize>,
    /// The threads of the pending messages in the log's order, with the sizes of their bodies.
    order: VecDeque<(usize, usize)>,
    bytes: usize,
    /// The most messages that may be pending.
    max_pending: usize,
    decisions: Vec<DecisionReport>,
}

/// A thread with its agents.
struct ReplayWorker {
    /// The messages to hand to it next.
    batch: Vec<ReplayTask>,
    tasks: Sender<Vec<ReplayTask>>,
    results: Receiver<Vec<ReplayTaskResult>>,
    /// The results of its messages, in their order.
    ready: VecDeque<ReplayTaskResult>,
    /// Its messages that are not told of yet.
    unreported_messages: usize,
    thread: JoinHandle<AgentStates>,
}

impl ReplayPool {
    /// As many threads as there are cores, each with such a share.
    pub fn start(dispatch: Dispatch, share: &Share) -> Self {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        Self::with_threads(cores, dispatch, share)
    }

    fn with_threads(threads: usize, dispatch: Dispatch, share: &Share) -> Self {
        let workers = (0..threads).map(|_| ReplayWorker::start(share.clone())).collect();
        let of = HashMap::new();
        let order = VecDeque::new();
        let decisions = Vec::new();
        Self { dispatch, workers, worker_of_agent: of, order, bytes: 0, max_pending: AHEAD * threads, decisions }
    }

    /// Takes in the next message of the log, and tells of decisions that were made meanwhile.
    ///
    /// # Errors
    /// Those of `Replaying::take`, the one of the first message first, and whatever `tell` says. Nothing is told behind one.
    pub fn take_message(
        &mut self,
        message: &LogMessage,
        tell: &mut DecisionCallback<'_>,
    ) -> Result<ControlFlow<()>, Error> {
        match self.dispatch.next(message) {
            Ok(DispatchStep::Skip) => {}
            Ok(DispatchStep::Stop) => return Ok(ControlFlow::Break(())),
            Ok(DispatchStep::ForAgent(agent, task)) => {
                let at = self.assign_worker(agent);
                self.enqueue_task(at, task, message.data.len());
            }
            Ok(DispatchStep::ForAll(task)) => {
                (0..self.workers.len()).for_each(|at| self.enqueue_task(at, task.clone(), 0))
            }
            Err(broken) => {
                self.report_ready(0, tell)?;
                return Err(Error::Advice(broken.to_string()));
            }
        }
        self.report_ready(self.max_pending, tell)?;
        Ok(ControlFlow::Continue(()))
    }

    /// Tells of the rest. What came of all of it, and which of the agents that were asked for the log had nothing of.
    ///
    /// # Errors
    /// As in [`Self::take_message`].
    pub fn finish(mut self, version: &str, tell: &mut DecisionCallback<'_>) -> Result<(Report, Option<Name>), Error> {
        self.report_ready(0, tell)?;
        let missing = self.dispatch.missing().first().map(|agent| (*agent).clone());
        let states = self.workers.into_iter().flat_map(ReplayWorker::join).collect();
        Ok((self.dispatch.report(version, states, self.decisions), missing))
    }

    /// The thread that has an agent; one that is new goes to the one with least to do.
    fn assign_worker(&mut self, agent: Name) -> usize {
        let idlest =
            || (0..self.workers.len()).min_by_key(|at| self.workers.get(*at).map(|worker| worker.unreported_messages));
        let idlest = if self.worker_of_agent.contains_key(&agent) { None } else { idlest() };
        *self.worker_of_agent.entry(agent).or_insert_with(|| idlest.unwrap_or_default())
    }

    fn enqueue_task(&mut self, at: usize, task: ReplayTask, bytes: usize) {
        let Some(worker) = self.workers.get_mut(at) else { return };
        self.order.push_back((at, bytes));
        self.bytes += bytes;
        worker.unreported_messages += 1;
        worker.batch.push(task);
        if worker.batch.len() >= BATCH {
            worker.send_batch();
        }
    }

    /// Tells what is known in the log's order, and waits for what is not until at most so many messages are left.
    fn report_ready(&mut self, most: usize, tell: &mut DecisionCallback<'_>) -> Result<(), Error> {
        while let Some((at, bytes)) = self.order.front().copied() {
            let must_wait = self.order.len() > most || self.bytes > AHEAD_BYTES;
            if must_wait && self.workers.get(at).is_some_and(|worker| worker.ready.is_empty()) {
                self.workers.iter_mut().for_each(ReplayWorker::send_batch);
            }
            let came = self.workers.get_mut(at).and_then(|worker| worker.next_result(must_wait));
            let came = match came {
                None if must_wait => Err(Error::Advice("a thread that makes decisions again has ended".to_owned())),
                None => break,
                Some(came) => came.map_err(|broken| Error::Advice(broken.to_string())),
            };
            self.order.pop_front();
            self.bytes -= bytes;
            let told = came.and_then(|remade| remade.map_or(Ok(()), |remade| self.report_decision(remade, tell)));
            if told.is_err() {
                // Whatever came of what stands behind, nobody is told of it.
                self.order.clear();
                return told;
            }
        }
        Ok(())
    }

    fn report_decision(&mut self, remade: RerunDecision, tell: &mut DecisionCallback<'_>) -> Result<(), Error> {
        let RerunDecision { decision, shadow } = remade;
        self.dispatch.count(&decision);
        tell(&decision, shadow)?;
        self.decisions.push(*decision);
        Ok(())
    }
}

impl ReplayWorker {
    fn start(mut share: Share) -> Self {
        let ((tasks, received), (done, came)) = (channel::<Vec<ReplayTask>>(), channel());
        let work = move || {
            while let Ok(batch) = received.recv() {
                // Nobody waits for what is left when reading has ended with an error.
                if done.send(batch.into_iter().map(|task| share.run(task)).collect()).is_err() {
                    break;
                }
            }
            share.states()
        };
        let batch = Vec::with_capacity(BATCH);
        let ready = VecDeque::new();
        let held = 0;
        Self { batch, tasks, results: came, ready, unreported_messages: held, thread: thread::spawn(work) }
    }

    fn send_batch(&mut self) {
        if !self.batch.is_empty() {
            let batch = std::mem::replace(&mut self.batch, Vec::with_capacity(BATCH));
            // A thread that is gone is found when it is waited for.
            drop(self.tasks.send(batch));
        }
    }

    /// Returns the result of its next message; `None` if it is not known yet and `must_wait` is false.
    fn next_result(&mut self, must_wait: bool) -> Option<ReplayTaskResult> {
        if self.ready.is_empty() {
            let came = match self.results.try_recv() {
                Err(TryRecvError::Empty) if must_wait => self.results.recv().ok(),
                came => came.ok(),
            };
            self.ready.extend(came.into_iter().flatten());
        }
        let next = self.ready.pop_front();
        self.unreported_messages -= usize::from(next.is_some());
        next
    }

    /// Ends the thread and returns the states it leaves behind. Panics if the thread did.
    fn join(self) -> AgentStates {
        let Self { tasks, results: came, thread, .. } = self;
        drop((tasks, came));
        thread.join().unwrap_or_else(|cause| panic::resume_unwind(cause))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use kairo_mind::replay::changes::ReplayChanges;
    use kairo_replay::{
        replayer::{ReplayProgress, Replayer},
        report::Range,
        testing::{TestAgent, call_completion, name, text_completion, with_changed_decision},
    };

    use super::*;

    /// Builds a log of what agents said and did, one turn after the other.
    fn log(agents: usize, turns: usize) -> Vec<LogMessage> {
        let mut next = 1;
        let mut all: Vec<TestAgent> = Vec::new();
        for turn in 0..turns {
            for at in 0..agents {
                if turn == 0 {
                    all.push(TestAgent::starting_at(&format!("agent-{at}"), next));
                }
                let agent = &mut all[at];
                agent.continue_at(next.max(if turn == 0 { next + 3 } else { next }));
                agent.hears("", &format!("turn {turn}"));
                let asks = agent.decide(&[call_completion("tools.now")]);
                agent.learns(asks, "2");
                next = agent.decide(&[text_completion("It is 2.")]) + 1;
            }
        }
        let mut messages: Vec<LogMessage> = all.iter().flat_map(TestAgent::messages).collect();
        messages.sort_by_key(|message| message.sequence);
        messages
    }

    /// The decisions told, and the report or the error at the end.
    type Ended = (Vec<DecisionReport>, Result<Report, String>);

    fn by_one(messages: &[LogMessage], range: Range) -> Ended {
        let mut replaying = Replayer::new(BTreeSet::new(), range, ReplayChanges::default(), None);
        let mut told = Vec::new();
        for message in messages {
            match replaying.replay(message) {
                Ok(ReplayProgress::NoDecision) => {}
                Ok(ReplayProgress::Decision(decision)) => told.push(*decision),
                Ok(ReplayProgress::End) => break,
                Err(broken) => return (told, Err(broken.to_string())),
            }
        }
        let report = replaying.report("1", told.clone());
        (told, Ok(report))
    }

    fn by_several(threads: usize, ahead: usize, messages: &[LogMessage], range: Range) -> Ended {
        let dispatch = Dispatch::new(BTreeSet::new(), range, &ReplayChanges::default());
        let mut pool = ReplayPool {
            max_pending: ahead,
            ..ReplayPool::with_threads(threads, dispatch, &Share::new(ReplayChanges::default(), None))
        };
        let mut told = Vec::new();
        let mut tell = |decision: &DecisionReport, _: Option<Box<Shadow>>| {
            told.push(decision.clone());
            Ok(())
        };
        let mut read = Ok(());
        for message in messages {
            match pool.take_message(message, &mut tell) {
                Ok(ControlFlow::Continue(())) => {}
                Ok(ControlFlow::Break(())) => break,
                Err(error) => {
                    read = Err(error);
                    break;
                }
            }
        }
        let ended = pool.finish("1", &mut tell).and_then(|(report, _)| read.map(|()| report));
        (told, ended.map_err(|error| error.to_string()))
    }

    fn assert_equal(messages: &[LogMessage], range: Range) -> Ended {
        let one = by_one(messages, range);
        for (threads, ahead) in [(1, 1), (3, 1), (3, 7), (2, 10_000)] {
            assert_eq!(by_several(threads, ahead, messages, range), one, "{threads} threads, {ahead} messages ahead");
        }
        one
    }

    #[test]
    fn several_threads_tell_the_same_in_the_same_order_as_one() {
        let messages = log(5, 4);
        let (told, report) = assert_equal(&messages, Range::default());
        let report = report.unwrap();
        assert_eq!((told.len(), report.counts.same, report.states.len()), (40, 40, 5));
        let last = messages.last().unwrap().sequence;
        let (told, _) = assert_equal(&messages, Range { from: Some(last / 2), to: Some(last - 8) });
        assert!(!told.is_empty() && told.len() < 30);
    }

    #[test]
    fn what_is_told_before_an_error_or_a_newer_message_is_the_same() {
        let messages = log(4, 3);
        let at = messages.len() / 2;
        let mut swapped = messages.clone();
        swapped.swap(at, at + 1);
        assert!(!assert_equal(&swapped, Range::default()).0.is_empty());
        let decides = messages[at..].iter().find(|it| it.subject.ends_with(".decision")).unwrap().sequence;
        let hole: Vec<LogMessage> = messages.iter().filter(|it| it.sequence + 1 != decides).cloned().collect();
        let from = Range { from: Some(decides + 1), to: None };
        assert!(assert_equal(&hole, from).1.unwrap_err().contains(&decides.to_string()));
        let newer = with_changed_decision(&messages, decides, |decision| decision.reader = u32::MAX);
        let report = assert_equal(&newer, Range::default()).1.unwrap();
        assert_eq!(report.stopped.unwrap().sequence, decides);
    }

    #[test]
    fn nothing_is_told_behind_what_could_not_be_told() {
        let messages = log(3, 3);
        let dispatch =
            Dispatch::new([name("agent-0"), name("nobody")].into(), Range::default(), &ReplayChanges::default());
        let mut pool = ReplayPool {
            max_pending: 1,
            ..ReplayPool::with_threads(3, dispatch, &Share::new(ReplayChanges::default(), None))
        };
        let mut tries = 0;
        let mut tell = |_: &DecisionReport, _: Option<Box<Shadow>>| {
            tries += 1;
            Err(Error::Advice("full".to_owned()))
        };
        assert!(messages.iter().any(|message| pool.take_message(message, &mut tell).is_err()));
        let (report, missing) = pool.finish("1", &mut tell).unwrap();
        assert_eq!((tries, report.decisions.len(), missing), (1, 0, Some(name("nobody"))));
    }
}
