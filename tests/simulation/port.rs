//! The port in memory: what a replica asks of the world, how long that takes, and what goes wrong on the way.
//!
//! A request is lost, or its answer is, or it is asked of a server that lags behind. Within one connection what is sent
//! first arrives first. A flaw is put between the replica and the server: see [`crate::flaw`].

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use futures::{StreamExt, future::BoxFuture, stream};
use jiff::Timestamp;
use kairo_core::{
    bus::port::{
        Cause, ConnectionStatus, ConsumerPull, Headers, LiveSubscription, LiveTransport, Machine, MessagePage,
        NoAnswer, OutgoingMessage, Port, PulledMessage, ReadSource, Settlement, StoreAck, StoreError, StreamState,
        StreamStore, StreamTail, TailStart,
    },
    record::RawMessage,
    sealing::SealingKey,
    subjects::Consumer,
};
use kairo_in_memory::{
    port::receive_batch,
    server::{Listener, Stream},
};
use tokio::{
    sync::{mpsc, oneshot},
    time::timeout,
};
use uuid::Uuid;

use crate::world::{Shared, World};

/// Time for which a replica waits for the server.
const PATIENCE: Duration = Duration::from_millis(500);

/// The world of one replica.
#[derive(Clone)]
pub struct Memory {
    pub world: Shared,
    pub replica: usize,
}

impl std::fmt::Debug for Memory {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "the world of replica {}", self.replica)
    }
}

fn silence() -> StoreError {
    StoreError::Unavailable("no answer in time".into())
}

impl Memory {
    fn world<T>(&self, look: impl FnOnce(&mut World) -> T) -> T {
        look(&mut self.world.lock().unwrap())
    }

    /// Has something done at the server, and comes back with its answer; none when none comes in time.
    async fn ask<T: Send + 'static>(&self, doing: impl FnOnce(&mut World) -> T + Send + 'static) -> Option<T> {
        let (answer, mut answered) = oneshot::channel();
        let (world, replica) = (self.world.clone(), self.replica);
        self.world(|here| {
            let (lost_request, lost_answer) = here.losses();
            if lost_request {
                return;
            }
            here.send_up(replica, move || {
                let mut here = world.lock().unwrap();
                let outcome = doing(&mut here);
                if !lost_answer {
                    here.send_down(replica, move |_| _ = answer.send(outcome));
                }
                here.flush();
            });
        });
        let answered = async {
            match (&mut answered).await {
                Ok(outcome) => outcome,
                // Lost: nobody is told.
                Err(_) => std::future::pending().await,
            }
        };
        timeout(PATIENCE, answered).await.ok()
    }

    async fn store<T: Send + 'static>(
        &self,
        doing: impl FnOnce(&mut World) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.ask(doing).await.unwrap_or_else(|| Err(silence()))
    }

    /// Reads from a stream as the server has it that is asked.
    async fn look<T: Send + 'static>(
        &self,
        stream: &str,
        asked: ReadSource,
        read: impl FnOnce(&Stream, tokio::time::Instant) -> T + Send + 'static,
    ) -> Result<T, StoreError> {
        let name = stream.to_owned();
        self.store(move |world| {
            let view = world.view(asked);
            let stream = world.server.stream(&name)?;
            if asked == ReadSource::Leader && !stream.has_leader() {
                return Err(StoreError::NoStream);
            }
            Ok(read(stream, view))
        })
        .await
    }

    /// Returns the messages that a replica reads as its flaw changes them.
    fn visible_messages(&self, raws: Vec<RawMessage>) -> Vec<RawMessage> {
        self.world(|world| world.visible_messages(self.replica, raws))
    }
}

impl Port for Memory {}

#[async_trait]
impl StreamStore for Memory {
    async fn publish(&self, message: OutgoingMessage) -> Result<StoreAck, StoreError> {
        let replica = self.replica;
        self.store(move |world| world.publish(replica, message)).await
    }

    async fn last_message(
        &self,
        stream: &str,
        subject: &str,
        asked: ReadSource,
    ) -> Result<Option<RawMessage>, StoreError> {
        let subject = subject.to_owned();
        let found = self.look(stream, asked, move |stream, view| stream.last(&subject, view)).await?;
        Ok(self.visible_messages(found.into_iter().collect()).pop())
    }

    async fn message_at(
        &self,
        stream: &str,
        sequence: u64,
        asked: ReadSource,
    ) -> Result<Option<RawMessage>, StoreError> {
        let found = self.look(stream, asked, move |stream, view| stream.message_at(sequence, view)).await?;
        Ok(self.visible_messages(found.into_iter().collect()).pop())
    }

    async fn next_at_leader(&self, stream: &str, filter: &str, after: u64) -> Result<Option<RawMessage>, StoreError> {
        let filter = filter.to_owned();
        let next = move |stream: &Stream, view| {
            let page = stream.page(&filter, after, 1, view);
            page.messages.into_iter().next()
        };
        self.look(stream, ReadSource::Leader, next).await
    }

    async fn read_page(&self, stream: &str, filter: &str, after: u64, most: usize) -> Result<MessagePage, StoreError> {
        let filter = filter.to_owned();
        let read = move |stream: &Stream, view| stream.page(&filter, after, most, view);
        let MessagePage { messages, more } = self.look(stream, ReadSource::Any, read).await?;
        Ok(MessagePage { messages: self.visible_messages(messages), more })
    }

    async fn last_of_each(&self, stream: &str, filters: &[String]) -> Result<Vec<RawMessage>, StoreError> {
        let filters = filters.to_vec();
        let look = move |stream: &Stream, view| stream.last_of_each(&filters, view);
        let found = self.look(stream, ReadSource::Any, look).await?;
        Ok(self.visible_messages(found))
    }

    async fn delete_message(&self, stream: &str, sequence: u64) -> Result<bool, StoreError> {
        let name = stream.to_owned();
        self.store(move |world| Ok(world.server.stream(&name)?.remove(sequence))).await
    }

    async fn stream_state(&self, stream: &str) -> Result<StreamState, StoreError> {
        self.look(stream, ReadSource::Leader, |stream, _| stream.state()).await
    }

    async fn tail_stream(
        &self,
        stream: &str,
        filters: &[String],
        start: TailStart,
    ) -> Result<Box<dyn StreamTail>, StoreError> {
        let (name, filters, replica) = (stream.to_owned(), filters.to_vec(), self.replica);
        let (sender, messages) = mpsc::unbounded_channel();
        let begun = self.store(move |world| {
            let view = world.view(ReadSource::Any);
            world.server.start_reader(replica, &name, &filters, start, view, sender)
        });
        let (_, pending) = begun.await?;
        Ok(Box::new(Reading { port: self.clone(), messages, pending }))
    }

    async fn open_pull(&self, consumer: Consumer) -> Result<Box<dyn ConsumerPull>, StoreError> {
        let (sender, messages) = mpsc::unbounded_channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        let (taken, replica) = (waiting.clone(), self.replica);
        self.store(move |world| world.server.share(replica, consumer, sender, waiting)).await?;
        Ok(Box::new(Pulling { port: self.clone(), messages, taken }))
    }

    async fn settle(&self, receipt: &str, settlement: Settlement) -> Result<(), Cause> {
        let (world, replica, receipt) = (self.world.clone(), self.replica, receipt.to_owned());
        self.world(|here| {
            if here.loses_ack() {
                return;
            }
            here.send_up(replica, move || {
                let mut here = world.lock().unwrap();
                here.server.settle(&receipt, settlement);
                here.flush();
            });
        });
        Ok(())
    }

    async fn restore_bucket(&self, _bucket: &str) -> Result<(), StoreError> {
        let made = self.ask(|world| world.provision()).await;
        made.ok_or_else(|| StoreError::Unavailable("no answer in time".into()))
    }
}

#[async_trait]
impl LiveTransport for Memory {
    async fn send_live(&self, subject: String, headers: Headers, payload: Bytes) -> Result<(), Cause> {
        let (world, replica) = (self.world.clone(), self.replica);
        self.world(|here| {
            here.send_up(replica, move || {
                let mut here = world.lock().unwrap();
                here.say(&subject, None, &headers, &payload);
            });
        });
        Ok(())
    }

    async fn subscribe(&self, subject: String, group: Option<&str>) -> Result<LiveSubscription, Cause> {
        let (heard, mut hearing) = mpsc::unbounded_channel();
        let listener = Listener { replica: self.replica, subject, group: group.map(str::to_owned), heard };
        let (world, replica) = (self.world.clone(), self.replica);
        // It is told again on every connection, so it is never lost.
        self.world(|here| {
            here.send_up_surely(replica, move || world.lock().unwrap().server.listeners.push(listener));
        });
        Ok(stream::poll_fn(move |context| hearing.poll_recv(context)).boxed())
    }

    async fn request(&self, subject: String, payload: Bytes, patience: Duration) -> Result<Bytes, NoAnswer> {
        let inbox = self.world(World::inbox);
        let mut answers = self.subscribe(inbox.clone(), None).await.map_err(NoAnswer::Unavailable)?;
        let asked = self.ask(move |world| world.say(&subject, Some(&inbox), &Headers::new(), &payload) > 0);
        let answered = async {
            match asked.await {
                Some(true) => match answers.next().await {
                    Some(answer) => Ok(answer.payload),
                    None => Err(NoAnswer::Silence),
                },
                Some(false) => Err(NoAnswer::Nobody),
                None => Err(NoAnswer::Silence),
            }
        };
        timeout(patience, answered).await.unwrap_or(Err(NoAnswer::Silence))
    }

    fn connection(&self) -> ConnectionStatus {
        self.world(|world| {
            let replica = &world.replicas[self.replica];
            ConnectionStatus { up: replica.is_connected(), number: replica.connections }
        })
    }

    async fn close(&self) {}
}

impl Machine for Memory {
    fn now(&self) -> Timestamp {
        self.world(|world| world.now_of(self.replica))
    }

    fn new_id(&self) -> Uuid {
        self.world(World::new_id)
    }

    fn new_key(&self) -> Result<SealingKey, Cause> {
        Ok(self.world(World::new_key))
    }

    fn host_task(&self, task: BoxFuture<'static, ()>) -> BoxFuture<'static, ()> {
        Box::pin(self.world(|world| world.replicas[self.replica].life.clone()).host(task))
    }
}

struct Reading {
    port: Memory,
    messages: mpsc::UnboundedReceiver<RawMessage>,
    pending: u64,
}

#[async_trait]
impl StreamTail for Reading {
    fn pending(&self) -> u64 {
        self.pending
    }

    async fn next_batch(&mut self) -> Result<Vec<RawMessage>, Cause> {
        let arrived = receive_batch(&mut self.messages).await?;
        self.pending = self.pending.saturating_sub(arrived.len() as u64);
        Ok(self.port.visible_messages(arrived))
    }
}

struct Pulling {
    port: Memory,
    messages: mpsc::UnboundedReceiver<PulledMessage>,
    taken: Arc<AtomicUsize>,
}

#[async_trait]
impl ConsumerPull for Pulling {
    async fn next_delivery(&mut self) -> Option<Result<PulledMessage, Cause>> {
        let delivered = self.messages.recv().await?;
        self.taken.fetch_sub(1, Ordering::Relaxed);
        self.port.world(World::flush);
        Some(Ok(delivered))
    }
}
