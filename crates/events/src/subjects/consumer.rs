//! The readers of the table's subjects.

use super::{DLQ_STREAM, EVENTS_STREAM, HOOKS_BUCKET, HOOKS_STREAM, OUTSIDE_EVENTS, Route, Service, TABLE};

/// A reader of a subject of `KAIRO_EVENTS`: a durable consumer that all replicas of a service share, or each
/// partition's owner. [`Consumer::RouterHooks`] reads a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Consumer {
    Router,
    /// The router again: what happens in other systems.
    RouterEvents,
    /// The router once more: tasks that began to wait for something outside, from the bucket of hooks.
    RouterHooks,
    AgentRuntime,
    /// agent-runtime again: what its decisions have other parts of NATS do, such as timers.
    AgentRuntimeEffects,
    ToolRunner,
    /// tool-runner again: what became of the processes it handed over.
    ToolRunnerProcesses,
    ProcessSupervisor,
    /// Each service that sets messages aside: those that are to be dealt with again.
    RouterRetries,
    AgentRuntimeRetries,
    ToolRunnerRetries,
    ProcessSupervisorRetries,
}

impl Consumer {
    /// Those that are durable consumers of a stream.
    pub const DURABLE: [Consumer; 10] = [
        Consumer::RouterEvents,
        Consumer::RouterHooks,
        Consumer::AgentRuntimeEffects,
        Consumer::ToolRunner,
        Consumer::ToolRunnerProcesses,
        Consumer::ProcessSupervisor,
        Consumer::RouterRetries,
        Consumer::AgentRuntimeRetries,
        Consumer::ToolRunnerRetries,
        Consumer::ProcessSupervisorRetries,
    ];
    /// Those that read orders to deal with a message again, a service each.
    pub const RETRIES: [Consumer; 4] = [
        Consumer::RouterRetries,
        Consumer::AgentRuntimeRetries,
        Consumer::ToolRunnerRetries,
        Consumer::ProcessSupervisorRetries,
    ];
    /// Those that set messages aside which can be dealt with again.
    const SETTING_ASIDE: [Consumer; 8] = [
        Consumer::Router,
        Consumer::RouterEvents,
        Consumer::RouterHooks,
        Consumer::AgentRuntime,
        Consumer::AgentRuntimeEffects,
        Consumer::ToolRunner,
        Consumer::ToolRunnerProcesses,
        Consumer::ProcessSupervisor,
    ];

    /// Returns the consumer that a dead letter names, if its messages can be retried.
    pub fn from_dead_letter(name: &str) -> Option<Self> {
        Self::SETTING_ASIDE.into_iter().find(|consumer| consumer.name() == name)
    }

    pub const fn name(self) -> &'static str {
        match self {
            Consumer::Router => "router",
            Consumer::RouterEvents => "router-events",
            Consumer::RouterHooks => "router-hooks",
            Consumer::AgentRuntime => "agent-runtime",
            Consumer::AgentRuntimeEffects => "agent-runtime-effects",
            Consumer::ToolRunner => "tool-runner",
            Consumer::ToolRunnerProcesses => "tool-runner-processes",
            Consumer::ProcessSupervisor => "process-supervisor",
            Consumer::RouterRetries => "router-retries",
            Consumer::AgentRuntimeRetries => "agent-runtime-retries",
            Consumer::ToolRunnerRetries => "tool-runner-retries",
            Consumer::ProcessSupervisorRetries => "process-supervisor-retries",
        }
    }

    /// Returns the service whose replicas read it.
    pub const fn service(self) -> Service {
        match self {
            Consumer::Router | Consumer::RouterEvents | Consumer::RouterHooks | Consumer::RouterRetries => {
                Service::Router
            }
            Consumer::AgentRuntime | Consumer::AgentRuntimeEffects | Consumer::AgentRuntimeRetries => {
                Service::AgentRuntime
            }
            Consumer::ToolRunner | Consumer::ToolRunnerProcesses | Consumer::ToolRunnerRetries => Service::ToolRunner,
            Consumer::ProcessSupervisor | Consumer::ProcessSupervisorRetries => Service::ProcessSupervisor,
        }
    }

    /// Returns true if it reads orders to retry a message.
    const fn reads_retries(self) -> bool {
        matches!(
            self,
            Consumer::RouterRetries
                | Consumer::AgentRuntimeRetries
                | Consumer::ToolRunnerRetries
                | Consumer::ProcessSupervisorRetries
        )
    }

    /// The stream it is delivered from.
    pub const fn stream(self) -> &'static str {
        match self {
            Consumer::RouterHooks => HOOKS_STREAM,
            it if it.reads_retries() => DLQ_STREAM,
            _ => EVENTS_STREAM,
        }
    }

    /// The subjects it is delivered, from the table; what other systems say stands in no table, and neither do hooks.
    pub fn filters(self) -> Vec<String> {
        match self {
            Consumer::RouterEvents => return vec![OUTSIDE_EVENTS.to_owned()],
            Consumer::RouterHooks => return vec![format!("$KV.{HOOKS_BUCKET}.>")],
            it if it.reads_retries() => return vec![format!("kairo.dlq.{}.retry", it.service().name())],
            _ => {}
        }
        let mine = TABLE.iter().filter(|route| route.consumers.contains(&self));
        mine.map(Route::stored_filter).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::{DEAD_LETTER_RETRY, Store},
        *,
    };
    use crate::ids::Name;

    #[test]
    fn whoever_sets_messages_aside_is_told_to_deal_with_them_again() {
        for consumer in Consumer::SETTING_ASIDE {
            assert_eq!(Consumer::from_dead_letter(consumer.name()), Some(consumer));
            let told: Vec<Consumer> =
                Consumer::RETRIES.into_iter().filter(|it| it.service() == consumer.service()).collect();
            let [told] = told[..] else { panic!("{consumer:?}: {told:?}") };
            let owner = Name::parse(consumer.service().name()).unwrap();
            assert_eq!((told.stream(), told.filters()), (DLQ_STREAM, vec![DEAD_LETTER_RETRY.of_owner(&owner)]));
        }
        for other in ["projector", "router-retries", "nobody"] {
            assert_eq!(Consumer::from_dead_letter(other), None, "{other}");
        }
    }

    #[test]
    fn all_that_consumers_of_the_table_are_fed_is_in_the_log() {
        for consumer in Consumer::DURABLE {
            assert!(!consumer.filters().is_empty());
        }
        assert_eq!(HOOKS_STREAM, format!("KV_{HOOKS_BUCKET}"));
        for route in TABLE.iter().filter(|route| !route.consumers.is_empty()) {
            assert_eq!(route.store, Store::Events);
        }
    }
}
