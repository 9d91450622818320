//! The server: a nats-server with JetStream, as far as Kairo uses it, behaving as measured on real ones.
//!
//! It stores messages at once and in one order. The faults lie between it and the replicas, and in its answers: from a
//! server that lags behind, that another guarded write is in process, that a stream has no leader, or none at all.

use std::{
    collections::BTreeMap,
    sync::{Arc, atomic::AtomicUsize},
    time::Duration,
};

use bytes::Bytes;
use jiff::Timestamp;
use kairo_core::{
    bus::{
        LogIdentity,
        data_keys::{self, DataKeyHolder},
        message_sealing,
        port::{Headers, LiveMessage, OutgoingMessage, PulledMessage, Settlement, StoreAck, StoreError, TailStart},
    },
    partition::Partitions,
    personal::DataKeyState,
    privacy::PrivacyConfig,
    record::{RawMessage, Record},
    subjects::{
        CONGESTION_BUCKET, Consumer, DATA_KEYS_BUCKET, DLQ_STREAM, EVENTS_STREAM, EVENTS_SUBJECTS, HOOKS_STREAM,
        MEMBERS_BUCKET, OWNERS_BUCKET, SIGN_INS_BUCKET, SNAPSHOTS_BUCKET, TIMERS_STREAM, TIMERS_SUBJECTS,
    },
};
use tokio::{sync::mpsc, time::Instant};

pub use crate::stream::{Stream, StreamEntry, View, matches};
use crate::{
    chance::Chance,
    durable::{ConsumerShare, Durable},
};

/// Time for which a member is listed that says nothing any more.
const MEMBERS_LIFETIME: Duration = Duration::from_secs(120);
/// Far above any body of a run.
const MAX_BODY: usize = 1 << 20;

/// A stream that is read in order by somebody.
pub struct StreamReader {
    pub replica: usize,
    pub stream: String,
    pub filters: Vec<String>,
    /// The last sequence that was sent.
    pub after: u64,
    pub messages: mpsc::UnboundedSender<RawMessage>,
}

/// Somebody who hears what is said.
pub struct Listener {
    pub replica: usize,
    pub subject: String,
    pub group: Option<String>,
    pub heard: mpsc::UnboundedSender<LiveMessage>,
}

/// Something on its way to a replica.
pub enum Parcel {
    /// For a reader, by its number.
    Read(u64, RawMessage),
    Delivery(mpsc::UnboundedSender<PulledMessage>, PulledMessage),
    Heard(mpsc::UnboundedSender<LiveMessage>, LiveMessage),
}

#[derive(Default)]
pub struct Server {
    pub streams: BTreeMap<String, Stream>,
    pub durables: BTreeMap<Consumer, Durable>,
    pub readers: BTreeMap<u64, StreamReader>,
    pub listeners: Vec<Listener>,
    /// The log, read: what could not be read is in no place of it. None where nobody looks at it so.
    records: Option<Vec<Record>>,
    /// With which master key they are opened.
    privacy: PrivacyConfig,
    numbers: u64,
}

impl Server {
    /// One that reads what it stores, for [`Self::records`], and opens what is sealed in it.
    pub fn with_records(privacy: PrivacyConfig) -> Self {
        Self { records: Some(Vec::new()), privacy, ..Self::default() }
    }

    /// Makes what is missing: all of it at first, what was only in memory after a restart.
    pub fn provision(&mut self, log: LogIdentity, ack_wait: Duration, now: Timestamp) {
        let mut events = Stream::new(EVENTS_STREAM, &EVENTS_SUBJECTS, now);
        let LogIdentity { id, partitions, epoch } = log;
        let partitions = partitions.count().to_string();
        let metadata =
            [("kairo-log", id.to_string()), ("kairo-partitions", partitions), ("kairo-epoch", epoch.to_string())];
        events.metadata = metadata.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
        let streams =
            [events, Stream::new(TIMERS_STREAM, &TIMERS_SUBJECTS, now), Stream::new(DLQ_STREAM, &["kairo.dlq.>"], now)];
        let buckets =
            [SNAPSHOTS_BUCKET, MEMBERS_BUCKET, OWNERS_BUCKET, CONGESTION_BUCKET, DATA_KEYS_BUCKET, SIGN_INS_BUCKET]
                .map(|it| format!("KV_{it}"));
        let buckets = buckets.iter().map(String::as_str).chain([HOOKS_STREAM]).map(|name| Stream::bucket(name, now));
        for stream in streams.into_iter().chain(buckets) {
            self.streams.entry(stream.name.clone()).or_insert(stream);
        }
        for consumer in Consumer::DURABLE {
            if self.durables.contains_key(&consumer) {
                continue;
            }
            let mut durable = Durable::new(consumer.filters(), ack_wait);
            let Some(stream) = self.streams.get(consumer.stream()) else { continue };
            let there: Vec<RawMessage> = stream.messages_on(&consumer.filters(), 0, Instant::now()).collect();
            there.iter().for_each(|raw| durable.add(raw.sequence));
            self.durables.insert(consumer, durable);
        }
    }

    /// Memory is lost, and everybody who reads is cut off.
    pub fn restart(&mut self) {
        for bucket in [MEMBERS_BUCKET, OWNERS_BUCKET, CONGESTION_BUCKET] {
            self.streams.remove(&format!("KV_{bucket}"));
        }
        self.readers.clear();
        self.durables.values_mut().for_each(|durable| durable.shares.clear());
    }

    /// A replica's connection is gone. What it heard on it, it hears on the next one again, unless it is dead.
    pub fn disconnect_replica(&mut self, replica: usize, dead: bool) {
        self.readers.retain(|_, reader| reader.replica != replica);
        self.durables.values_mut().for_each(|durable| durable.remove_replica(replica));
        if dead {
            self.listeners.retain(|listener| listener.replica != replica);
        }
    }

    pub fn stream(&mut self, name: &str) -> Result<&mut Stream, StoreError> {
        self.streams.get_mut(name).ok_or(StoreError::NoStream)
    }

    /// Stores a message in the stream that takes its subject, and sends it to whoever reads there.
    pub fn store(
        &mut self,
        mut message: OutgoingMessage,
        time: Timestamp,
        in_process: u64,
        chance: &mut dyn Chance,
    ) -> Result<StoreAck, StoreError> {
        let lifetime = message.subject.starts_with(&format!("$KV.{MEMBERS_BUCKET}.")).then_some(MEMBERS_LIFETIME);
        message.lifetime = message.lifetime.or(lifetime);
        let stream = self.streams.values_mut().find(|stream| stream.takes(&message.subject));
        let stream = stream.ok_or(StoreError::NoStream)?;
        let is_log = stream.name == EVENTS_STREAM;
        if is_log && message.subject.split('.').count() == 4 && message.subject.starts_with("kairo.system.") {
            let partitions = stream.metadata.get("kairo-partitions").and_then(|count| count.parse().ok());
            if let Some(partitions) = partitions.and_then(Partitions::new) {
                message.subject = partitions.stored_subject(&message.subject);
            }
        }
        let written = stream.store(message, time, in_process, chance)?;
        if !written.duplicate {
            let name = stream.name.clone();
            self.register_stored(&name, written.sequence);
        }
        Ok(written)
    }

    /// Puts a message into the log where it stands elsewhere, behind all that is here. Of the durable consumers only these are
    /// given it.
    pub fn seed(&mut self, sequence: u64, message: OutgoingMessage, time: Timestamp, consumers: &[Consumer]) {
        let Some(log) = self.streams.get_mut(EVENTS_STREAM) else { return };
        let subject = message.subject.clone();
        log.insert(sequence, message, time);
        for (_, durable) in self.durables.iter_mut().filter(|(consumer, _)| consumers.contains(consumer)) {
            if durable.filters.iter().any(|filter| matches(filter, &subject)) {
                durable.add(sequence);
            }
        }
    }

    /// Stores a message in the log past every guard; where it stands, 0 where there is no log.
    pub fn write(&mut self, message: OutgoingMessage, time: Timestamp) -> u64 {
        let Some(log) = self.streams.get_mut(EVENTS_STREAM) else { return 0 };
        let sequence = log.write(message, time);
        self.register_stored(EVENTS_STREAM, sequence);
        sequence
    }

    fn register_stored(&mut self, name: &str, sequence: u64) {
        let Some(stored) = self.streams.get(name).and_then(|stream| stream.entry_at(sequence)) else { return };
        let subject = &stored.subject;
        for (consumer, durable) in &mut self.durables {
            if consumer.stream() == name && durable.filters.iter().any(|filter| matches(filter, subject)) {
                durable.add(sequence);
            }
        }
        if name == EVENTS_STREAM && self.records.is_some() {
            let record = self.open_sealed(stored.raw()).read(MAX_BODY).ok();
            if let Some(records) = &mut self.records {
                records.extend(record);
            }
        }
    }

    /// As whoever has the keys reads it.
    fn open_sealed(&self, raw: RawMessage) -> RawMessage {
        let keys = self.streams.get(&data_keys::data_key_stream()).filter(|_| raw.is_sealed());
        let Some(keys) = keys else { return raw };
        let key = |owner: &str, generation: u32| {
            let holder = DataKeyHolder::from_owner(owner);
            let stored = keys.last(&data_keys::data_key_subject(&format!("{holder}.{generation}")), Instant::now());
            let known =
                stored.map(|stored| data_keys::open_stored_key(&self.privacy, holder, generation, &stored.payload));
            known.and_then(Result::ok).unwrap_or(DataKeyState::Destroyed)
        };
        message_sealing::open_with_keys(raw.clone(), key).unwrap_or(raw)
    }

    /// Somebody begins to read: the reader's number, and how much there was already for a server with this view.
    pub fn start_reader(
        &mut self,
        replica: usize,
        stream: &str,
        filters: &[String],
        start: TailStart,
        view: View,
        messages: mpsc::UnboundedSender<RawMessage>,
    ) -> Result<(u64, u64), StoreError> {
        let source = self.stream(stream)?;
        let after = match start {
            TailStart::After(sequence) => sequence,
            TailStart::LastOfEach => {
                let last = source.last_of_each(filters, view);
                last.iter().for_each(|raw| _ = messages.send(raw.clone()));
                last.last().map_or(0, |raw| raw.sequence)
            }
        };
        let pending = source.count(filters, after, view);
        self.numbers += 1;
        let stream = stream.to_owned();
        let filters = filters.to_vec();
        self.readers.insert(self.numbers, StreamReader { replica, stream, filters, after, messages });
        Ok((self.numbers, pending))
    }

    pub fn share(
        &mut self,
        replica: usize,
        consumer: Consumer,
        messages: mpsc::UnboundedSender<PulledMessage>,
        waiting: Arc<AtomicUsize>,
    ) -> Result<(), StoreError> {
        let durable = self.durables.get_mut(&consumer).ok_or(StoreError::NoStream)?;
        durable.shares.push(ConsumerShare { replica, messages, waiting });
        Ok(())
    }

    pub fn settle(&mut self, receipt: &str, settlement: Settlement) {
        let mut tokens = receipt.split('/');
        let name = tokens.next();
        let sequence = tokens.next();
        let attempt = tokens.next();
        let consumer = Consumer::DURABLE.into_iter().find(|consumer| Some(consumer.name()) == name);
        let (Some(consumer), Some(Ok(sequence)), Some(Ok(attempt))) =
            (consumer, sequence.map(str::parse), attempt.map(str::parse))
        else {
            return;
        };
        if let Some(durable) = self.durables.get_mut(&consumer) {
            durable.settle(sequence, attempt, settlement);
        }
    }

    /// Everything that is to go out now, and to whom.
    pub fn outgoing(&mut self) -> Vec<(usize, Parcel)> {
        let mut parcels = Vec::new();
        let now = Instant::now();
        self.readers.retain(|_, reader| !reader.messages.is_closed());
        for (number, reader) in &mut self.readers {
            let Some(stream) = self.streams.get(&reader.stream) else { continue };
            for raw in stream.messages_on(&reader.filters, reader.after, now) {
                reader.after = raw.sequence;
                parcels.push((reader.replica, Parcel::Read(*number, raw)));
            }
            reader.after = reader.after.max(stream.last_sequence());
        }
        for (consumer, durable) in &mut self.durables {
            let Some(stream) = self.streams.get(consumer.stream()) else { continue };
            while let Some((sequence, attempt, share)) = durable.next_delivery() {
                let (Some(share), Some(stored)) = (durable.shares.get(share), stream.entry_at(sequence)) else {
                    continue;
                };
                share.waiting.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                let receipt = format!("{}/{sequence}/{attempt}", consumer.name());
                let delivered = PulledMessage { raw: stored.raw(), attempt, receipt };
                parcels.push((share.replica, Parcel::Delivery(share.messages.clone(), delivered)));
            }
        }
        parcels
    }

    /// Delivers a message on a subject to its listeners: to all of them, and in each group to one.
    pub fn route_live(
        &mut self,
        subject: &str,
        reply: Option<&str>,
        headers: &Headers,
        payload: &Bytes,
        chance: &mut dyn Chance,
    ) -> Vec<(usize, Parcel)> {
        self.listeners.retain(|listener| !listener.heard.is_closed());
        let hearing: Vec<&Listener> = self.listeners.iter().filter(|it| matches(&it.subject, subject)).collect();
        let mut groups: BTreeMap<&str, Vec<&Listener>> = BTreeMap::new();
        let mut chosen: Vec<&Listener> = Vec::new();
        for listener in hearing {
            match &listener.group {
                Some(group) => groups.entry(group).or_default().push(listener),
                None => chosen.push(listener),
            }
        }
        chosen.extend(groups.values().filter_map(|members| members.get(chance.below(members.len()))));
        let heard = || LiveMessage {
            subject: subject.to_owned(),
            reply: reply.map(str::to_owned),
            headers: headers.clone(),
            payload: payload.clone(),
        };
        chosen.into_iter().map(|it| (it.replica, Parcel::Heard(it.heard.clone(), heard()))).collect()
    }

    /// Returns true if nothing is left to be delivered.
    pub fn is_settled(&self) -> bool {
        self.durables.values().all(Durable::is_settled)
    }

    /// The log, read: what could not be read is in no place of it. Empty unless it was made [with records](Self::with_records).
    pub fn records(&self) -> &[Record] {
        self.records.as_deref().unwrap_or_default()
    }

    /// A record of the log by its sequence.
    pub fn record(&self, sequence: u64) -> Option<&Record> {
        let at = self.records().binary_search_by_key(&sequence, |record| record.sequence).ok()?;
        self.records().get(at)
    }

    /// Nothing stands in the log any more.
    pub fn forget_records(&mut self) {
        self.records.iter_mut().for_each(Vec::clear);
    }

    /// Every message of the log as it lies in the stream: subject, headers and body.
    pub fn bytes(&self) -> Vec<Vec<u8>> {
        let stored = self.streams.get(EVENTS_STREAM).into_iter().flat_map(Stream::all_entries);
        let bytes = stored.map(|stored| {
            let mut headers: Vec<String> =
                stored.headers.iter().map(|(name, values)| format!("{name}: {values:?}")).collect();
            headers.sort();
            [stored.subject.clone().into_bytes(), headers.join("\n").into_bytes(), stored.payload.to_vec()].concat()
        });
        bytes.collect()
    }
}
