//! Permissions on NATS: what each identity publishes and subscribes to, derived from the table of subjects.
//!
//! Every service has its own user, so one that is taken over says nothing in another's name. Two more identities are no
//! services: the one that makes streams, and that of other systems. [`render_all`] is the configuration of nats-server.
//!
//! Other systems have an account of their own, in which there is no stream and nobody else. What they publish there is a request to
//! gateways, over the one subject that the accounts share, so neither a reply subject nor a malformed header gets any further.

#[cfg(test)]
mod tests;

use std::fmt::Write;

use crate::subjects::{
    CONGESTION_BUCKET, Consumer, DATA_KEYS_BUCKET, DLQ_STREAM, ENTRANCE, EVENTS_STREAM, Emitter, HOOKS_BUCKET,
    HOOKS_STREAM, KEYS_BUCKET, LIVE_OUTPUT, LIVE_TOKEN, MCP_SIGN_IN, MEMBERS_BUCKET, OBJECTS_BUCKET, OWNERS_BUCKET,
    QUESTIONS, Route, SIGN_INS_BUCKET, SNAPSHOTS_BUCKET, STATUS_PING, STREAMS, SUPERVISORS_CONTROL, Service, Store,
    TABLE, TAILS, TICKETS_BUCKET, TIMERS_STREAM, WITHOUT_PARTITION,
};
use crate::{ids::Name, workers};

/// Subjects on which any replica is asked about the actions it works on, and any supervisor about its processes.
const HOLDING: &str = "kairo.live.*.holding.*";
const CONTROL: &str = "kairo.live.*.control";
/// Subjects on which the server passes answers to other accounts.
const ANSWERS_TO_OTHER_ACCOUNTS: &str = "_R_.>";
/// The account of Kairo, and that of other systems.
pub const ACCOUNT: &str = "KAIRO";
pub const OUTSIDE_ACCOUNT: &str = "OUTSIDE";
/// Inboxes of clients that choose no prefix of their own, such as those of other systems.
const USUAL_INBOX: &str = "_INBOX.>";

/// Somebody whom NATS knows by a user of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum NatsIdentity {
    Service(Service),
    /// `kairo provision` and operators: makes and changes streams, and so may do everything.
    Provision,
    /// Other systems: say what happened there, and nothing else.
    Outside,
}

/// The subjects that an identity may use in one direction. Deny takes precedence over allow, and the default is deny.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubjectRules {
    pub allow: Vec<String>,
    pub deny: Vec<String>,
}

/// The permissions of an identity.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NatsPermissions {
    pub publish: SubjectRules,
    pub subscribe: SubjectRules,
}

impl NatsIdentity {
    pub const ALL: [NatsIdentity; 8] = [
        NatsIdentity::Service(Service::Gateway),
        NatsIdentity::Service(Service::Router),
        NatsIdentity::Service(Service::AgentRuntime),
        NatsIdentity::Service(Service::ToolRunner),
        NatsIdentity::Service(Service::ProcessSupervisor),
        NatsIdentity::Service(Service::Projector),
        NatsIdentity::Provision,
        NatsIdentity::Outside,
    ];

    /// Also its user's name, unless it was given another.
    pub const fn name(self) -> &'static str {
        match self {
            NatsIdentity::Service(service) => service.name(),
            NatsIdentity::Provision => "provision",
            NatsIdentity::Outside => "outside",
        }
    }

    /// Its name in variables of the environment, such as that of its password.
    pub fn variable_name(self) -> String {
        self.name().replace('-', "_").to_uppercase()
    }

    /// The variable of [`render_all`] that holds its permissions. `GATEWAY` alone would be a setting of nats-server.
    pub fn permissions_variable(self) -> String {
        format!("PERMISSIONS_{}", self.variable_name())
    }

    /// Returns what it may publish and subscribe to.
    pub fn permissions(self) -> NatsPermissions {
        match self {
            NatsIdentity::Service(service) => service_permissions(service),
            // Who makes streams could have the server publish anything, so a list would protect nothing.
            NatsIdentity::Provision => NatsPermissions::default().allow_publish([">"]).allow_subscribe([">"]),
            NatsIdentity::Outside => NatsPermissions::default()
                .allow_publish([WITHOUT_PARTITION])
                .deny_publish(announcement_subjects())
                .allow_subscribe([USUAL_INBOX]),
        }
    }
}

/// Returns the prefix of a client's inboxes: a token of its own, so that nobody hears what others are answered.
pub fn inbox_prefix(name: &str) -> String {
    format!("_INBOX_{name}")
}

fn inbox_filter(service: Service) -> String {
    format!("{}.>", inbox_prefix(service.name()))
}

fn service_permissions(service: Service) -> NatsPermissions {
    let own = NatsPermissions::default()
        .allow_publish(emitted_subjects(service))
        .allow_log_reads(service)
        .allow_consuming(service)
        .allow_subscribe([inbox_filter(service)])
        .allow_reads(&bucket_stream(DATA_KEYS_BUCKET))
        // Who is there.
        .allow_subscribe([STATUS_PING])
        .allow_answers([Service::Gateway]);
    // Orders to forget somebody, which are kept there, too, are the gateway's.
    let own = if service == Service::Projector {
        own
    } else {
        own.allow_writes(DATA_KEYS_BUCKET, &["user.*.*", "agent.*.*", "object.*.*"])
    };
    match service {
        Service::Gateway => gateway_permissions(own),
        Service::Router => with_partition_ownership(service, own.allow_reads(DLQ_STREAM))
            .allow_writes(SNAPSHOTS_BUCKET, &[&checkpoint_keys(service), "commands.*"])
            .allow_reads(&bucket_stream(SNAPSHOTS_BUCKET))
            .allow_reads(HOOKS_STREAM),
        Service::AgentRuntime => with_partition_ownership(service, own.allow_reads(DLQ_STREAM))
            .allow_writes(SNAPSHOTS_BUCKET, &[&checkpoint_keys(service), "agent.>", "part.>", "answers.*"])
            .allow_reads(&bucket_stream(SNAPSHOTS_BUCKET))
            .allow_writes(HOOKS_BUCKET, &[">"])
            .allow_reads(HOOKS_STREAM)
            // And whether the cap of the installation is reached.
            .allow_subscribe([TAILS.to_owned(), format!("$KV.{CONGESTION_BUCKET}.CAP")])
            .allow_publish(["kairo.timer.set.*.*".to_owned(), api_subject("STREAM.MSG.DELETE", TIMERS_STREAM)])
            .allow_reads(TIMERS_STREAM)
            .allow_object_reads(),
        Service::ToolRunner => own
            .allow_reads(DLQ_STREAM)
            .allow_requests([CONTROL, HOLDING])
            .allow_subscribe([HOLDING])
            .allow_answers([Service::ToolRunner])
            .allow_subscribe([MCP_SIGN_IN, QUESTIONS])
            // Of servers, and of users at servers.
            .allow_writes(SIGN_INS_BUCKET, &["*", "*.*"])
            .allow_reads(&bucket_stream(SIGN_INS_BUCKET))
            .allow_requests([workers::HELLOS, workers::VERDICTS, workers::CALLS, workers::ORDERS])
            .allow_subscribe([workers::ANNOUNCEMENTS, workers::SAYINGS])
            // It keeps the images and audio of results.
            .allow_object_reads()
            .allow_publish([format!("$O.{OBJECTS_BUCKET}.>"), api_subject("STREAM.PURGE", &objects_stream())]),
        Service::ProcessSupervisor => own
            .allow_reads(DLQ_STREAM)
            // One forwards to the other what it is asked about its processes.
            .allow_requests([CONTROL, HOLDING])
            .allow_subscribe([CONTROL, SUPERVISORS_CONTROL, TAILS, HOLDING])
            .allow_answers([Service::ToolRunner, Service::ProcessSupervisor]),
        Service::Projector => own,
    }
}

fn gateway_permissions(own: NatsPermissions) -> NatsPermissions {
    let looks = STREAMS.iter().map(|stream| api_subject("STREAM.INFO", stream));
    let looks = looks.chain(STREAMS.iter().map(|stream| format!("{}.*", api_subject("CONSUMER.INFO", stream))));
    own.allow_publish(looks)
        // What other systems publish, which it writes into the log for them.
        .allow_subscribe([ENTRANCE])
        .allow_publish([WITHOUT_PARTITION, ANSWERS_TO_OTHER_ACCOUNTS])
        .deny_publish(announcement_subjects())
        .allow_reads(DLQ_STREAM)
        .allow_requests([STATUS_PING, TAILS, MCP_SIGN_IN, QUESTIONS])
        // Whether somebody who is to be forgotten is signed in anywhere.
        .allow_reads(&bucket_stream(SIGN_INS_BUCKET))
        .allow_subscribe([LIVE_TOKEN.filter(), LIVE_OUTPUT.filter(), format!("$KV.{CONGESTION_BUCKET}.>")])
        .allow_reads(&bucket_stream(CONGESTION_BUCKET))
        .allow_reads(&bucket_stream(SNAPSHOTS_BUCKET))
        .allow_recreation(CONGESTION_BUCKET)
        // That the cap of the installation is reached.
        .allow_writes(CONGESTION_BUCKET, &["CAP"])
        .allow_writes(DATA_KEYS_BUCKET, &["order.*", "installation.*"])
        .allow_watching(&bucket_stream(DATA_KEYS_BUCKET))
        .allow_writes(KEYS_BUCKET, &[">"])
        .allow_reads(&bucket_stream(KEYS_BUCKET))
        .allow_following(&bucket_stream(KEYS_BUCKET))
        // Keys are destroyed, and what others have written there is removed.
        .allow_publish(
            [DATA_KEYS_BUCKET, KEYS_BUCKET].map(|name| api_subject("STREAM.MSG.DELETE", &bucket_stream(name))),
        )
        .allow_writes(TICKETS_BUCKET, &[">"])
        .allow_reads(&bucket_stream(TICKETS_BUCKET))
        .allow_object_reads()
        // It follows what is stored, to remove what no event names.
        .allow_publish([format!("{}.*", api_subject("CONSUMER.MSG.NEXT", &objects_stream()))])
        // Bytes that somebody else stores at the same time are replaced; who may write there could purge by a rollup, too.
        .allow_publish([format!("$O.{OBJECTS_BUCKET}.>"), api_subject("STREAM.PURGE", &objects_stream())])
}

/// Adds the permissions of a service whose replicas share the log by partitions.
fn with_partition_ownership(service: Service, own: NatsPermissions) -> NatsPermissions {
    let group = format!("{}.*", service.name());
    own.allow_writes(MEMBERS_BUCKET, &[&group])
        .allow_reads(&bucket_stream(MEMBERS_BUCKET))
        .allow_recreation(MEMBERS_BUCKET)
        .allow_writes(OWNERS_BUCKET, &[&group])
        .allow_reads(&bucket_stream(OWNERS_BUCKET))
        .allow_recreation(OWNERS_BUCKET)
        .allow_writes(CONGESTION_BUCKET, &[">"])
}

/// The subjects that the table says it emits.
fn emitted_subjects(service: Service) -> impl Iterator<Item = String> {
    let own = TABLE.iter().filter(move |route| match route.emitter {
        Emitter::Only(emitter) => emitter == service,
        Emitter::Owner => true,
        Emitter::Timer => false,
    });
    own.map(move |route| publish_subject(route, service))
}

/// A subject as its emitter publishes on it: what a service says of itself has its own name as the owner.
fn publish_subject(route: &Route, service: Service) -> String {
    let is_of_services = route.noun == "system" || route.emitter == Emitter::Owner;
    let owner = if is_of_services { service.name() } else { "*" };
    let spoken = format!("kairo.{}.{owner}.{}", route.noun, route.verb);
    match route.store {
        Store::Events => format!("{spoken}.*"),
        Store::DeadLetters | Store::Live => spoken,
    }
}

/// Returns the subjects that other systems may not publish on, as Kairo announces there: the log would add a partition.
fn announcement_subjects() -> impl Iterator<Item = String> {
    let verbs = TABLE.iter().filter(|route| route.noun == "system").map(Route::filter);
    verbs.chain(Service::ALL.map(|service| format!("kairo.system.{}.*", service.name())))
}

fn checkpoint_keys(service: Service) -> String {
    format!("checkpoint.{}.>", service.name())
}

fn bucket_stream(name: &str) -> String {
    format!("KV_{name}")
}

fn objects_stream() -> String {
    format!("OBJ_{OBJECTS_BUCKET}")
}

/// A request to JetStream about a stream.
fn api_subject(request: &str, stream: &str) -> String {
    format!("$JS.API.{request}.{stream}")
}

impl NatsPermissions {
    fn allow_publish<S: Into<String>>(mut self, subjects: impl IntoIterator<Item = S>) -> Self {
        self.publish.allow.extend(subjects.into_iter().map(Into::into));
        self
    }

    fn deny_publish<S: Into<String>>(mut self, subjects: impl IntoIterator<Item = S>) -> Self {
        self.publish.deny.extend(subjects.into_iter().map(Into::into));
        self
    }

    fn allow_subscribe<S: Into<String>>(mut self, subjects: impl IntoIterator<Item = S>) -> Self {
        self.subscribe.allow.extend(subjects.into_iter().map(Into::into));
        self
    }

    /// Requests, whose answers come to its own inboxes.
    fn allow_requests<S: Into<String>>(self, subjects: impl IntoIterator<Item = S>) -> Self {
        self.allow_publish(subjects)
    }

    /// Answers these services. Rather than `allow_responses`, for which the server would note down every delivery.
    fn allow_answers(self, askers: impl IntoIterator<Item = Service>) -> Self {
        self.allow_publish(askers.into_iter().map(inbox_filter))
    }

    /// Single messages and pages, and what the stream is.
    fn allow_reads(self, stream: &str) -> Self {
        let direct = api_subject("DIRECT.GET", stream);
        let under = format!("{direct}.>");
        self.allow_publish([api_subject("STREAM.INFO", stream), api_subject("STREAM.MSG.GET", stream), direct, under])
    }

    /// The log, in order, too: by consumers that nobody shares. Those that replicas share are not for it to change.
    fn allow_log_reads(self, service: Service) -> Self {
        let reader = |request: &str| format!("{}.>", api_subject(request, EVENTS_STREAM));
        let shared = Consumer::DURABLE.into_iter().filter(|consumer| consumer.stream() == EVENTS_STREAM);
        let denied = shared.flat_map(|consumer| {
            let of = |request: &str| format!("{}.{}", api_subject(request, EVENTS_STREAM), consumer.name());
            let create = of("CONSUMER.CREATE");
            let next = (consumer.service() != service).then(|| of("CONSUMER.MSG.NEXT"));
            [format!("{create}.>"), create, of("CONSUMER.DELETE")].into_iter().chain(next)
        });
        self.allow_reads(EVENTS_STREAM)
            .allow_publish(["CONSUMER.CREATE", "CONSUMER.INFO", "CONSUMER.MSG.NEXT", "CONSUMER.DELETE"].map(reader))
            .deny_publish(denied)
    }

    /// Its durable consumers.
    fn allow_consuming(self, service: Service) -> Self {
        let own = Consumer::DURABLE.into_iter().filter(|consumer| consumer.service() == service);
        let subjects = own.flat_map(|consumer| {
            let stream = consumer.stream();
            let name = consumer.name();
            let of = |request: &str| format!("{}.{name}", api_subject(request, stream));
            [of("CONSUMER.INFO"), of("CONSUMER.MSG.NEXT"), format!("$JS.ACK.{stream}.{name}.>")]
        });
        self.allow_publish(subjects)
    }

    fn allow_writes(self, bucket: &str, keys: &[&str]) -> Self {
        self.allow_publish(keys.iter().map(|key| format!("$KV.{bucket}.{key}")))
    }

    /// A bucket in memory, which a server that was restarted has forgotten. It may not change one that is there.
    fn allow_recreation(self, name: &str) -> Self {
        self.allow_publish([api_subject("STREAM.CREATE", &bucket_stream(name))])
    }

    /// Reads in order by the client library's own consumers, which have no names and control their flow.
    fn allow_watching(self, stream: &str) -> Self {
        let create = api_subject("CONSUMER.CREATE", stream);
        let under = format!("{create}.>");
        let delete = format!("{}.*", api_subject("CONSUMER.DELETE", stream));
        self.allow_publish([create, under, delete, format!("$JS.FC.{stream}.>")])
    }

    /// Reads in order, by a consumer that nobody shares.
    fn allow_following(self, stream: &str) -> Self {
        self.allow_publish(
            ["CONSUMER.CREATE", "CONSUMER.INFO", "CONSUMER.MSG.NEXT", "CONSUMER.DELETE"]
                .map(|request| format!("{}.>", api_subject(request, stream))),
        )
    }

    fn allow_object_reads(self) -> Self {
        self.allow_reads(&objects_stream()).allow_watching(&objects_stream())
    }
}

/// Returns the permissions of the worker of this name: it speaks to tool-runner of its own tools, and nothing else.
pub fn worker_permissions(worker: &Name) -> NatsPermissions {
    let own = |subjects: &[&str]| {
        let own = subjects.iter().map(|subject| subject.replacen('*', worker.as_str(), 1));
        own.collect::<Vec<_>>()
    };
    NatsPermissions::default().allow_publish(own(&[workers::ANNOUNCEMENTS, workers::SAYINGS])).allow_subscribe(own(&[
        workers::HELLOS,
        workers::VERDICTS,
        workers::CALLS,
        workers::ORDERS,
    ]))
}

/// Renders the permissions of a worker's user for nats-server's configuration. A worker may answer calls, each once,
/// wherever tool-runner waits for that: rather than on all inboxes of tool-runner, where it could speak for others.
pub fn render_worker(worker: &Name) -> String {
    let NatsPermissions { publish, subscribe } = worker_permissions(worker);
    let mut text = String::from("{\n");
    render_direction(&mut text, "publish", publish);
    render_direction(&mut text, "subscribe", subscribe);
    text + "  allow_responses: { max: 1, expires: \"1m\" }\n}"
}

/// All of it as a part of nats-server's configuration: a variable for each identity, to be included where users are listed.
pub fn render_all() -> String {
    let mut text = String::from(HEAD);
    for identity in NatsIdentity::ALL {
        let NatsPermissions { publish, subscribe } = identity.permissions();
        // Writing to a String cannot fail.
        let _ = writeln!(text, "\n{} = {{", identity.permissions_variable());
        render_direction(&mut text, "publish", publish);
        render_direction(&mut text, "subscribe", subscribe);
        text.push_str("}\n");
    }
    let _ = writeln!(text, "\nEXPORTS = [{{ service: \"{ENTRANCE}\", accounts: [{OUTSIDE_ACCOUNT}] }}]");
    let service = format!("{{ account: {ACCOUNT}, subject: \"{ENTRANCE}\" }}");
    let _ = writeln!(text, "IMPORTS = [{{ service: {service}, to: \"{WITHOUT_PARTITION}\" }}]");
    text
}

/// The accounts of nats-server with these users, to stand behind [`render_all`]. Tool workers are users of Kairo's account.
pub fn render_accounts(
    users: impl IntoIterator<Item = (NatsIdentity, String)>,
    workers: impl IntoIterator<Item = String>,
) -> String {
    let (outside, inside): (Vec<_>, Vec<_>) =
        users.into_iter().partition(|(identity, _)| *identity == NatsIdentity::Outside);
    let lines = |users: Vec<(NatsIdentity, String)>| users.into_iter().map(|(_, user)| format!("      {user}\n"));
    let workers = workers.into_iter().map(|user| format!("      {user}\n"));
    let inside: String = lines(inside).chain(workers).collect();
    let outside: String = lines(outside).collect();
    format!(
        "accounts {{\n  {ACCOUNT} {{\n    jetstream: enabled\n    exports: $EXPORTS\n    users: [\n{inside}    ]\n  }}\n  \
         {OUTSIDE_ACCOUNT} {{\n    imports: $IMPORTS\n    users: [\n{outside}    ]\n  }}\n}}\n"
    )
}

/// The entry of nats-server's list of users for whoever has the seed of this public nkey: they are that identity.
pub fn render_nkey_user(nkey: &str, identity: NatsIdentity) -> String {
    format!("{{ nkey: \"{nkey}\", permissions: ${} }}", identity.permissions_variable())
}

const HEAD: &str = "\
# Who may do what: generated from crates/events/src/permissions.rs by scripts/generate-permissions, not to be edited.
# A variable for each identity, and what accounts share. Include it before the accounts; all variables must be used there.
";

fn render_direction(text: &mut String, direction: &str, rules: SubjectRules) {
    let _ = writeln!(text, "  {direction}: {{");
    for (what, mut subjects) in [("allow", rules.allow), ("deny", rules.deny)] {
        subjects.sort();
        subjects.dedup();
        if !subjects.is_empty() {
            let lines: String = subjects.iter().map(|subject| format!("      \"{subject}\"\n")).collect();
            let _ = writeln!(text, "    {what}: [\n{lines}    ]");
        }
    }
    text.push_str("  }\n");
}
