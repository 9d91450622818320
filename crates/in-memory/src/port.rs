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
            Cause, ConnectionStatus, ConsumerPull, Headers, LiveMessage, LiveSubscription, LiveTransport, Machine,
            MessagePage, NoAnswer, OutgoingMessage, Port, PulledMessage, ReadSource, Settlement, StoreAck, StoreError,
            StreamState, StreamStore, StreamTail, TailStart,
        },
    },
    partition,
    record::RawMessage,
    sealing::SealingKey,
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
    pub fn discard_writes(&self, is_lost: impl Fn(&str) -> bool + Send + 'static) {
        self.inner().is_lost = Box::new(is_lost);
    }

    /// Does what becomes due as time passes, until it is dropped.
    pub async fn run_clock(&self) {
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
    pub fn read_server<T>(&self, looking: impl FnOnce(&Server, Timestamp) -> T) -> T {
        let inner = self.inner();
        looking(&inner.server, inner.now())
    }

    /// Changes something at the server. What is to be sent then, is sent.
    pub fn update_server<T>(&self, doing: impl FnOnce(&mut Server, Timestamp) -> T) -> T {
        let mut inner = self.inner();
        let now = inner.now();
        let outcome = doing(&mut inner.server, now);
        inner.flush();
        inner.changes.send_replace(());
        outcome
    }

    fn tick(&self) {
        self.update_server(|server, now| {
            server.streams.values_mut().for_each(Stream::expire);
            server.fire_timers(now, false, 0, &mut Calm);
        });
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read_stream<T>(&self, stream: &str, read: impl FnOnce(&Stream, Instant) -> T) -> Result<T, StoreError> {
        let mut inner = self.inner();
        inner.server.stream(stream).map(|stream| read(stream, Instant::now()))
    }

    fn deliver_live(&self, subject: &str, reply: Option<&str>, headers: &Headers, payload: &Bytes) -> usize {
        let mut inner = self.inner();
        let parcels = inner.server.route_live(subject, reply, headers, payload, &mut Calm);
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
impl StreamStore for InMemory {
    async fn publish(&self, message: OutgoingMessage) -> Result<StoreAck, StoreError> {
        if (self.inner().is_lost)(partition::split_subject(&message.subject).0) {
            return Ok(StoreAck { sequence: 0, duplicate: false });
        }
        self.update_server(|server, now| server.store(message, now, 0, &mut Calm))
    }

    async fn last_message(
        &self,
        stream: &str,
        subject: &str,
        _asked: ReadSource,
    ) -> Result<Option<RawMessage>, StoreError> {
        self.read_stream(stream, |stream, view| stream.last(subject, view))
    }

    async fn message_at(
        &self,
        stream: &str,
        sequence: u64,
        _asked: ReadSource,
    ) -> Result<Option<RawMessage>, StoreError> {
        self.read_stream(stream, |stream, view| stream.message_at(sequence, view))
    }

    async fn next_at_leader(&self, stream: &str, filter: &str, after: u64) -> Result<Option<RawMessage>, StoreError> {
        self.read_stream(stream, |stream, view| stream.page(filter, after, 1, view).messages.into_iter().next())
    }

    async fn read_page(&self, stream: &str, filter: &str, after: u64, most: usize) -> Result<MessagePage, StoreError> {
        self.read_stream(stream, |stream, view| stream.page(filter, after, most, view))
    }

    async fn last_of_each(&self, stream: &str, filters: &[String]) -> Result<Vec<RawMessage>, StoreError> {
        self.read_stream(stream, |stream, view| stream.last_of_each(filters, view))
    }

    async fn delete_message(&self, stream: &str, sequence: u64) -> Result<bool, StoreError> {
        self.update_server(|server, _| server.stream(stream).map(|stream| stream.remove(sequence)))
    }

    async fn stream_state(&self, stream: &str) -> Result<StreamState, StoreError> {
        self.read_stream(stream, |stream, _| stream.state())
    }

    async fn tail_stream(
        &self,
        stream: &str,
        filters: &[String],
        start: TailStart,
    ) -> Result<Box<dyn StreamTail>, StoreError> {
        let (sender, messages) = mpsc::unbounded_channel();
        let begun =
            self.update_server(|server, _| server.start_reader(0, stream, filters, start, Instant::now(), sender));
        let (_, pending) = begun?;
        Ok(Box::new(InMemoryTail { messages, pending }))
    }

    async fn open_pull(&self, consumer: Consumer) -> Result<Box<dyn ConsumerPull>, StoreError> {
        let (sender, messages) = mpsc::unbounded_channel();
        let taken = Arc::new(AtomicUsize::new(0));
        self.update_server(|server, _| server.share(0, consumer, sender, taken.clone()))?;
        Ok(Box::new(InMemoryPull { port: self.clone(), messages, taken }))
    }

    async fn settle(&self, receipt: &str, settlement: Settlement) -> Result<(), Cause> {
        self.update_server(|server, _| server.settle(receipt, settlement));
        Ok(())
    }

    async fn restore_bucket(&self, _bucket: &str) -> Result<(), StoreError> {
        Ok(())
    }
}

#[async_trait]
impl LiveTransport for InMemory {
    async fn send_live(&self, subject: String, headers: Headers, payload: Bytes) -> Result<(), Cause> {
        self.deliver_live(&subject, None, &headers, &payload);
        Ok(())
    }

    async fn subscribe(&self, subject: String, group: Option<&str>) -> Result<LiveSubscription, Cause> {
        let (heard, mut hearing) = mpsc::unbounded_channel::<LiveMessage>();
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
        if self.deliver_live(&subject, Some(&inbox), &Headers::new(), &payload) == 0 {
            return Err(NoAnswer::Nobody);
        }
        match timeout(patience, answers.next()).await {
            Ok(Some(answer)) => Ok(answer.payload),
            _ => Err(NoAnswer::Silence),
        }
    }

    fn connection(&self) -> ConnectionStatus {
        ConnectionStatus { up: true, number: 1 }
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

    fn new_key(&self) -> Result<SealingKey, Cause> {
        let mut key = SealingKey::default();
        getrandom::fill(&mut key).map_err(|error| format!("the machine has no random numbers: {error}"))?;
        Ok(key)
    }

    fn host_task(&self, task: BoxFuture<'static, ()>) -> BoxFuture<'static, ()> {
        task
    }
}

struct InMemoryTail {
    messages: mpsc::UnboundedReceiver<RawMessage>,
    pending: u64,
}

#[async_trait]
impl StreamTail for InMemoryTail {
    fn pending(&self) -> u64 {
        self.pending
    }

    async fn next_batch(&mut self) -> Result<Vec<RawMessage>, Cause> {
        let arrived = receive_batch(&mut self.messages).await?;
        self.pending = self.pending.saturating_sub(arrived.len() as u64);
        Ok(arrived)
    }
}

/// Waits for a message of a tail, and takes with it what else has arrived.
///
/// # Errors
/// If nothing comes any more.
pub async fn receive_batch(messages: &mut mpsc::UnboundedReceiver<RawMessage>) -> Result<Vec<RawMessage>, Cause> {
    let mut batch = vec![messages.recv().await.ok_or("it broke off")?];
    while batch.len() < BATCH
        && let Ok(raw) = messages.try_recv()
    {
        batch.push(raw);
    }
    Ok(batch)
}

struct InMemoryPull {
    port: InMemory,
    messages: mpsc::UnboundedReceiver<PulledMessage>,
    taken: Arc<AtomicUsize>,
}

#[async_trait]
impl ConsumerPull for InMemoryPull {
    async fn next_delivery(&mut self) -> Option<Result<PulledMessage, Cause>> {
        let delivered = self.messages.recv().await?;
        self.taken.fetch_sub(1, Ordering::Relaxed);
        // There is room for one more.
        self.port.inner().flush();
        Some(Ok(delivered))
    }
}
