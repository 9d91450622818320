//! A replica: a machine that its tasks run on, which may stop for a while, or for ever, and its connection.

use std::{
    collections::BTreeMap,
    future::Future,
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU8, AtomicU64, Ordering},
    },
    task::{Context, Poll, Waker},
};

use jiff::SignedDuration;
use kairo_core::subjects::Service;
use tokio::{sync::mpsc, task::JoinHandle, time::Instant};
use tokio_util::sync::CancellationToken;

/// Tasks that a replica may begin in one moment. What goes round in circles without waiting for anything begins millions.
pub const AT_ONCE: u64 = 20_000;

/// The state of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Pace {
    Runs,
    Stands,
    Dead,
}

/// The life of a replica: its tasks go on only while its machine runs.
#[derive(Debug, Default)]
pub struct Life {
    pace: AtomicU8,
    tasks: AtomicU64,
    wakers: Mutex<BTreeMap<u64, Waker>>,
    /// The moment it began a task last, and how many it had begun before that.
    moment: Mutex<Option<(Instant, u64)>>,
    most_at_once: AtomicU64,
}

impl Life {
    pub fn is_frozen(&self) -> bool {
        self.pace.load(Ordering::Relaxed) == Pace::Stands as u8
    }

    pub fn is_dead(&self) -> bool {
        self.pace.load(Ordering::Relaxed) == Pace::Dead as u8
    }

    pub fn freeze(&self) {
        self.become_(Pace::Stands);
    }

    pub fn thaw(&self) {
        self.become_(Pace::Runs);
    }

    pub fn kill(&self) {
        self.become_(Pace::Dead);
    }

    fn become_(&self, pace: Pace) {
        if self.is_dead() {
            return;
        }
        self.pace.store(pace as u8, Ordering::Relaxed);
        let wakers = std::mem::take(&mut *self.wakers.lock().unwrap());
        wakers.into_values().for_each(Waker::wake);
    }

    /// A task that goes on only while the replica does.
    pub fn host<F: Future<Output = ()> + Unpin>(self: &Arc<Self>, task: F) -> Hosted<F> {
        let number = self.tasks.fetch_add(1, Ordering::Relaxed);
        self.count(number);
        Hosted { life: self.clone(), number, task: Some(task) }
    }
}

impl Life {
    /// The most tasks that it has begun in one moment; no time passes while it computes.
    pub fn most_at_once(&self) -> u64 {
        self.most_at_once.load(Ordering::Relaxed)
    }

    fn count(&self, before: u64) {
        let mut moment = self.moment.lock().unwrap();
        let now = Instant::now();
        let since = match *moment {
            Some((at, since)) if at == now => since,
            _ => before,
        };
        *moment = Some((now, since));
        let at_once = before + 1 - since;
        self.most_at_once.fetch_max(at_once, Ordering::Relaxed);
        if at_once > AT_ONCE {
            // It would do so for ever.
            self.kill();
        }
    }
}

/// See [`Life::host`].
pub struct Hosted<F> {
    life: Arc<Life>,
    number: u64,
    task: Option<F>,
}

impl<F: Future<Output = ()> + Unpin> Future for Hosted<F> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.life.is_dead() {
            self.task = None;
            return Poll::Ready(());
        }
        self.life.wakers.lock().unwrap().insert(self.number, context.waker().clone());
        if self.life.is_frozen() {
            return Poll::Pending;
        }
        match &mut self.task {
            Some(task) => Pin::new(task).poll(context),
            None => Poll::Ready(()),
        }
    }
}

impl<F> Drop for Hosted<F> {
    fn drop(&mut self) {
        self.life.wakers.lock().unwrap().remove(&self.number);
    }
}

/// Something that happens where a message arrives.
pub type Job = Box<dyn FnOnce() + Send>;

/// One direction of a connection: what is sent first arrives first.
#[derive(Debug)]
pub struct Lane {
    jobs: mpsc::UnboundedSender<(Instant, Job)>,
    last: Instant,
}

impl Lane {
    pub fn open() -> Self {
        let (jobs, mut queue) = mpsc::unbounded_channel::<(Instant, Job)>();
        tokio::spawn(async move {
            while let Some((at, job)) = queue.recv().await {
                tokio::time::sleep_until(at).await;
                job();
            }
        });
        Self { jobs, last: Instant::now() }
    }

    pub fn send(&mut self, at: Instant, job: Job) {
        self.last = self.last.max(at);
        let _ = self.jobs.send((self.last, job));
    }
}

/// A replica, as the world knows it.
pub struct Replica {
    pub service: Service,
    pub instance: String,
    pub life: Arc<Life>,
    pub up: Lane,
    pub down: Lane,
    /// Without a connection until then.
    pub cut: Option<Instant>,
    /// Connections made so far.
    pub connections: u64,
    /// The offset of its clock.
    pub skew: SignedDuration,
    /// Asks it to stop in good order.
    pub shutdown: CancellationToken,
    pub running: Option<JoinHandle<()>>,
}

impl Replica {
    pub fn is_connected(&self) -> bool {
        self.cut.is_none_or(|until| until <= Instant::now())
    }
}
