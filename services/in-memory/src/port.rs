//! The calm port: nothing is lost, nothing is late, and what is asked is done at once.

use std::{
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use futures::{StreamExt, future::BoxFuture, stream};
use jiff::{SignedDuration, Timestamp};
use kairo_core::{
    bus::{
        LogIdentity,
        port::{
            Asked, Cause, Connection, Delivered, Headers, Heard, Machine, Message, NoAnswer, Page, Port, Pull,
            Settlement, Start, StoreError, StreamState, Streams, Subscription, Tail, Wire, Written,
        },
    },
    partition,
    record::Raw,
    sealing::Key,
    subjects::Consumer,
};
use tokio::{
    sync::{mpsc, watch},
    time::{Instant, timeout},
};
use uuid::Uuid;

use crate::{
    chance::Calm,
    server::{Listener, Parcel, Server, Stream},
};

/// Most messages that a tail hands over at once.
const BATCH: usize = 256;
/// Interval at which the server looks for what is due: deliveries that nobody settled, timers, expired messages.
const TICK: Duration = Duration::from_millis(100);

/// A server and its clock, shared by all that run on it.
#[derive(Clone)]
pub struct InMemory(Arc<Mutex<Inner>>);

struct Inner {
    server: Server,
    /// The clock's time at `started`.
    begin: Timestamp,
    started: Instant,
    inboxes: u64,
    changes: watch::Sender<()>,
    /// Subjects of which nothing is stored, though whoever writes is told that it is.
    is_lost: Box<dyn Fn(&str) -> bool + Send>,
}

impl fmt::Debug for InMemory {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a server in memory")
    }
}

impl InMemory {
    /// A server that has a log and nothing in it, whose clock says `now`. What is delivered and not settled within
    /// `ack_wait` is delivered again.
    pub fn new(log: LogIdentity, ack_wait: Duration, now: Timestamp) -> Self {
        let mut server = Server::default();
        server.provision(log, ack_wait, now);
        let (changes, _) = watch::channel(());
        let inner =
            Inner { server, begin: now, started: Instant::now(), inboxes: 0, changes, is_lost: Box::new(|_| false) };
        Self(Arc::new(Mutex::new(inner)))
    }

    /// From here on nothing is stored that services write on such subjects, which are given without their partition; they are
    /// told that it is.
    pub fn lose(&self, is_lost: impl Fn(&str) -> bool + Send + 'static) {
        self.inner().is_lost = Box::new(is_lost);
    }

    /// Does what becomes due as time passes, until it is dropped.
    pub async fn keep_time(&self) {
        loop {
            tokio::time::sleep(TICK).await;
            self.tick();
        }
    }

    /// Moves the clock on.
    pub fn advance(&self, by: SignedDuration) {
        self.inner().begin += by;
        self.tick();
    }

    /// Tells whenever something may have changed on the server.
    pub fn changes(&self) -> watch::Receiver<()> {
        self.inner().changes.subscribe()
    }

    /// Looks at the server.
    pub fn look_at<T>(&self, looking: impl FnOnce(&Server, Timestamp) -> T) -> T {
        let inner = self.inner();
        looking(&inner.server, inner.now())
    }

    /// Changes something at the server. What is to be sent then, is sent.
    pub fn with<T>(&self, doing: impl FnOnce(&mut Server, Timestamp) -> T) -> T {
        let mut inner = self.inner();
        let now = inner.now();
        let outcome = doing(&mut inner.server, now);
        inner.flush();
        inner.changes.send_replace(());
        outcome
    }

    fn tick(&self) {
        self.with(|server, now| {
            server.streams.values_mut().for_each(Stream::expire);
            server.go_off(now, false, 0, &mut Calm);
        });
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn look<T>(&self, stream: &str, read: impl FnOnce(&Stream, Instant) -> T) -> Result<T, StoreError> {
        let mut inner = self.inner();
        inner.server.stream(stream).map(|stream| read(stream, Instant::now()))
    }

    fn say_to(&self, subject: &str, reply: Option<&str>, headers: &Headers, payload: &Bytes) -> usize {
        let mut inner = self.inner();
        let parcels = inner.server.say(subject, reply, headers, payload, &mut Calm);
        let heard = parcels.len();
        inner.post(parcels);
        heard
    }
}

impl Inner {
    fn now(&self) -> Timestamp {
        self.begin.saturating_add(self.started.elapsed()).unwrap_or(self.begin)
    }

    fn flush(&mut self) {
        let parcels = self.server.outgoing();
        self.post(parcels);
    }

    fn post(&self, parcels: Vec<(usize, Parcel)>) {
        for (_, parcel) in parcels {
            // Whoever has gone away hears nothing.
            match parcel {
                Parcel::Read(reader, raw) => {
                    if let Some(reader) = self.server.readers.get(&reader) {
                        let _ = reader.messages.send(raw);
                    }
                }
                Parcel::Delivery(to, delivered) => _ = to.send(delivered),
                Parcel::Heard(to, heard) => _ = to.send(heard),
            }
        }
    }
}

impl Port for InMemory {}

#[async_trait]
impl Streams for InMemory {
    async fn publish(&self, message: Message) -> Result<Written, StoreError> {
        if (self.inner().is_lost)(partition::split(&message.subject).0) {
            return Ok(Written { sequence: 0, duplicate: false });
        }
        self.with(|server, now| server.store(message, now, 0, &mut Calm))
    }

    async fn last(&self, stream: &str, subject: &str, _asked: Asked) -> Result<Option<Raw>, StoreError> {
        self.look(stream, |stream, view| stream.last(subject, view))
    }

    async fn at(&self, stream: &str, sequence: u64, _asked: Asked) -> Result<Option<Raw>, StoreError> {
        self.look(stream, |stream, view| stream.at(sequence, view))
    }

    async fn next_at_leader(&self, stream: &str, filter: &str, after: u64) -> Result<Option<Raw>, StoreError> {
        self.look(stream, |stream, view| stream.page(filter, after, 1, view).messages.into_iter().next())
    }

    async fn page(&self, stream: &str, filter: &str, after: u64, most: usize) -> Result<Page, StoreError> {
        self.look(stream, |stream, view| stream.page(filter, after, most, view))
    }

    async fn last_of_each(&self, stream: &str, filters: &[String]) -> Result<Vec<Raw>, StoreError> {
        self.look(stream, |stream, view| stream.last_of_each(filters, view))
    }

    async fn delete(&self, stream: &str, sequence: u64) -> Result<bool, StoreError> {
        self.with(|server, _| server.stream(stream).map(|stream| stream.remove(sequence)))
    }

    async fn state(&self, stream: &str) -> Result<StreamState, StoreError> {
        self.look(stream, |stream, _| stream.state())
    }

    async fn tail(&self, stream: &str, filters: &[String], start: Start) -> Result<Box<dyn Tail>, StoreError> {
        let (sender, messages) = mpsc::unbounded_channel();
        let begun = self.with(|server, _| server.read(0, stream, filters, start, Instant::now(), sender));
        let (_, pending) = begun?;
        Ok(Box::new(Reading { messages, pending }))
    }

    async fn pull(&self, consumer: Consumer) -> Result<Box<dyn Pull>, StoreError> {
        let (sender, messages) = mpsc::unbounded_channel();
        let taken = Arc::new(AtomicUsize::new(0));
        self.with(|server, _| server.share(0, consumer, sender, taken.clone()))?;
        Ok(Box::new(Pulling { port: self.clone(), messages, taken }))
    }

    async fn settle(&self, receipt: &str, settlement: Settlement) -> Result<(), Cause> {
        self.with(|server, _| server.settle(receipt, settlement));
        Ok(())
    }

    async fn restore(&self, _bucket: &str) -> Result<(), StoreError> {
        Ok(())
    }
}

#[async_trait]
impl Wire for InMemory {
    async fn say(&self, subject: String, headers: Headers, payload: Bytes) -> Result<(), Cause> {
        self.say_to(&subject, None, &headers, &payload);
        Ok(())
    }

    async fn subscribe(&self, subject: String, group: Option<&str>) -> Result<Subscription, Cause> {
        let (heard, mut hearing) = mpsc::unbounded_channel::<Heard>();
        let listener = Listener { replica: 0, subject, group: group.map(str::to_owned), heard };
        self.inner().server.listeners.push(listener);
        Ok(stream::poll_fn(move |context| hearing.poll_recv(context)).boxed())
    }

    async fn request(&self, subject: String, payload: Bytes, patience: Duration) -> Result<Bytes, NoAnswer> {
        let inbox = {
            let mut inner = self.inner();
            inner.inboxes += 1;
            format!("_INBOX.{}", inner.inboxes)
        };
        let mut answers = self.subscribe(inbox.clone(), None).await.map_err(NoAnswer::Unavailable)?;
        if self.say_to(&subject, Some(&inbox), &Headers::new(), &payload) == 0 {
            return Err(NoAnswer::Nobody);
        }
        match timeout(patience, answers.next()).await {
            Ok(Some(answer)) => Ok(answer.payload),
            _ => Err(NoAnswer::Silence),
        }
    }

    fn connection(&self) -> Connection {
        Connection { up: true, number: 1 }
    }

    async fn close(&self) {}
}

impl Machine for InMemory {
    fn now(&self) -> Timestamp {
        self.inner().now()
    }

    fn new_id(&self) -> Uuid {
        Uuid::now_v7()
    }

    fn new_key(&self) -> Result<Key, Cause> {
        let mut key = Key::default();
        getrandom::fill(&mut key).map_err(|error| format!("the machine has no random numbers: {error}"))?;
        Ok(key)
    }

    fn host(&self, task: BoxFuture<'static, ()>) -> BoxFuture<'static, ()> {
        task
    }
}

struct Reading {
    messages: mpsc::UnboundedReceiver<Raw>,
    pending: u64,
}

#[async_trait]
impl Tail for Reading {
    fn pending(&self) -> u64 {
        self.pending
    }

    async fn next(&mut self) -> Result<Vec<Raw>, Cause> {
        let arrived = batch(&mut self.messages).await?;
        self.pending = self.pending.saturating_sub(arrived.len() as u64);
        Ok(arrived)
    }
}

/// Waits for a message of a tail, and takes with it what else has arrived.
///
/// # Errors
/// If nothing comes any more.
pub async fn batch(messages: &mut mpsc::UnboundedReceiver<Raw>) -> Result<Vec<Raw>, Cause> {
    let mut batch = vec![messages.recv().await.ok_or("it broke off")?];
    while batch.len() < BATCH
        && let Ok(raw) = messages.try_recv()
    {
        batch.push(raw);
    }
    Ok(batch)
}

struct Pulling {
    port: InMemory,
    messages: mpsc::UnboundedReceiver<Delivered>,
    taken: Arc<AtomicUsize>,
}

#[async_trait]
impl Pull for Pulling {
    async fn next(&mut self) -> Option<Result<Delivered, Cause>> {
        let delivered = self.messages.recv().await?;
        self.taken.fetch_sub(1, Ordering::Relaxed);
        // There is room for one more.
        self.port.inner().flush();
        Some(Ok(delivered))
    }
}
