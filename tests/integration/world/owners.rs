//! The owners of partitions, as they say of themselves where they are.

use std::time::Duration;

use futures::{StreamExt, future::join_all};
use kairo_core::subjects::{EVENTS_STREAM, STATUS_PING, Service};
use kairo_proto::v1::{OwnedPartition, ReplicaRow};
use prost::Message as _;

use super::{DEADLINE, World};

/// The time that a replica may take to answer.
const ANSWER: Duration = Duration::from_millis(150);

/// The end of what a service reads: the service, the noun of the subjects, the partition, and the last position.
type End = (Service, &'static str, u32, u64);

impl World {
    /// Waits until every partition has an owner that has read all of it and has nothing waiting but for newer replicas.
    pub async fn owners_at_rest(&self) {
        let partitions: Vec<u32> = self.bus.log_identity().unwrap().partitions.all().collect();
        let mut unfinished = String::new();
        let at_rest = async {
            let services = [(Service::Router, "user"), (Service::AgentRuntime, "*")];
            let all =
                services.iter().flat_map(|service| partitions.iter().map(move |partition| (*service, *partition)));
            let ends = all.map(async |((service, noun), partition)| {
                (service, noun, partition, self.end_of(&format!("kairo.{noun}.*.*.{partition}")).await)
            });
            let mut ends = join_all(ends).await;
            // Nobody says when: asking is all there is.
            loop {
                let replicas = self.replicas_there().await;
                let works = |(service, _, partition, end): &&mut End| !rests(&replicas, *service, *partition, *end);
                let working: Vec<&mut End> = ends.iter_mut().filter(works).collect();
                if working.is_empty() {
                    return;
                }
                unfinished = format!("{working:?} of {replicas:#?}");
                // A log with a limit may have lost the last message of a partition before its owner began to read.
                for (_, noun, partition, end) in working {
                    *end = (*end).min(self.end_of(&format!("kairo.{noun}.*.*.{partition}")).await);
                }
            }
        };
        let at_rest = tokio::time::timeout(DEADLINE, at_rest).await;
        assert!(at_rest.is_ok(), "the owners of partitions never came to rest: {unfinished}");
    }

    /// Checks that every replica that answers was permitted all it asked NATS for.
    pub async fn nobody_was_refused(&self) {
        // A busy machine may keep all of them from answering in time.
        let answers = async {
            loop {
                let replicas = self.replicas_there().await;
                if !replicas.is_empty() {
                    return replicas;
                }
            }
        };
        for replica in tokio::time::timeout(DEADLINE, answers).await.expect("nobody answers") {
            assert_eq!((replica.violations, replica.last_violation.as_str()), (0, ""), "{}", replica.instance);
        }
    }

    /// Pings all replicas and returns the status of each that answers.
    pub async fn replicas_there(&self) -> Vec<ReplicaRow> {
        let client = &self.bus.nats().unwrap().client;
        let inbox = client.new_inbox();
        let answers = client.subscribe(inbox.clone()).await.unwrap();
        client.publish_with_reply(STATUS_PING, inbox, "".into()).await.unwrap();
        let answers = answers.filter_map(async |answer| ReplicaRow::decode(answer.payload).ok());
        answers.take_until(tokio::time::sleep(ANSWER)).collect().await
    }

    async fn end_of(&self, filter: &str) -> u64 {
        let stream = self.bus.nats().unwrap().jetstream.get_stream_no_info(EVENTS_STREAM).await.unwrap();
        stream.get_last_raw_message_by_subject(filter).await.map_or(0, |last| last.sequence)
    }
}

/// Returns true if some replica owns the partition, has read up to `end`, and has nothing waiting but messages parked
/// for newer replicas.
fn rests(replicas: &[ReplicaRow], service: Service, partition: u32, end: u64) -> bool {
    let rests = |replica: &ReplicaRow| {
        let parked: u64 = replica.parked.iter().map(|parked| parked.waiting).sum();
        let rests =
            |owned: &OwnedPartition| owned.partition == partition && owned.read >= end && owned.waiting <= parked;
        replica.service == service.name() && replica.partitions.iter().any(rests)
    };
    replicas.iter().any(rests)
}
