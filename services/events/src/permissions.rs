//! Permissions on NATS: what each identity publishes and subscribes to, derived from the table of subjects.
//!
//! Every service has its own user, so one that is taken over says nothing in another's name. Two more identities are no
//! services: the one that makes streams, and that of other systems. [`rendered`] is the configuration of nats-server.
//!
//! Other systems have an account of their own, in which there is no stream and nobody else. What they publish there is a request to
//! gateways, over the one subject that the accounts share, so neither a reply subject nor a malformed header gets any further.

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
pub enum Identity {
    Service(Service),
    /// `kairo provision` and operators: makes and changes streams, and so may do everything.
    Provision,
    /// Other systems: say what happened there, and nothing else.
    Outside,
}

/// The subjects that an identity may use in one direction. Deny takes precedence over allow, and the default is deny.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    pub allow: Vec<String>,
    pub deny: Vec<String>,
}

/// The permissions of an identity.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Permissions {
    pub publish: Rules,
    pub subscribe: Rules,
}

impl Identity {
    pub const ALL: [Identity; 8] = [
        Identity::Service(Service::Gateway),
        Identity::Service(Service::Router),
        Identity::Service(Service::AgentRuntime),
        Identity::Service(Service::ToolRunner),
        Identity::Service(Service::ProcessSupervisor),
        Identity::Service(Service::Projector),
        Identity::Provision,
        Identity::Outside,
    ];

    /// Also its user's name, unless it was given another.
    pub const fn name(self) -> &'static str {
        match self {
            Identity::Service(service) => service.name(),
            Identity::Provision => "provision",
            Identity::Outside => "outside",
        }
    }

    /// Its name in variables of the environment, such as that of its password.
    pub fn variable(self) -> String {
        self.name().replace('-', "_").to_uppercase()
    }

    /// The variable of [`rendered`] that holds its permissions. `GATEWAY` alone would be a setting of nats-server.
    pub fn permissions_variable(self) -> String {
        format!("PERMISSIONS_{}", self.variable())
    }

    /// Returns what it may publish and subscribe to.
    pub fn permissions(self) -> Permissions {
        match self {
            Identity::Service(service) => of_service(service),
            // Who makes streams could have the server publish anything, so a list would protect nothing.
            Identity::Provision => Permissions::default().publishes([">"]).hears([">"]),
            Identity::Outside => Permissions::default()
                .publishes([WITHOUT_PARTITION])
                .never_publishes(announcements())
                .hears([USUAL_INBOX]),
        }
    }
}

/// Returns the prefix of a client's inboxes: a token of its own, so that nobody hears what others are answered.
pub fn inbox_prefix(name: &str) -> String {
    format!("_INBOX_{name}")
}

fn inboxes(service: Service) -> String {
    format!("{}.>", inbox_prefix(service.name()))
}

fn of_service(service: Service) -> Permissions {
    let own = Permissions::default()
        .publishes(emitted(service))
        .reads_log(service)
        .consumes(service)
        .hears([inboxes(service)])
        .reads(&bucket(DATA_KEYS_BUCKET))
        // Who is there.
        .hears([STATUS_PING])
        .answers([Service::Gateway]);
    // Orders to forget somebody, which are kept there, too, are the gateway's.
    let own = if service == Service::Projector {
        own
    } else {
        own.writes(DATA_KEYS_BUCKET, &["user.*.*", "agent.*.*", "object.*.*"])
    };
    match service {
        Service::Gateway => gateway(own),
        Service::Router => owner_of_partitions(service, own.reads(DLQ_STREAM))
            .writes(SNAPSHOTS_BUCKET, &[&checkpoints(service), "commands.*"])
            .reads(&bucket(SNAPSHOTS_BUCKET))
            .reads(HOOKS_STREAM),
        Service::AgentRuntime => owner_of_partitions(service, own.reads(DLQ_STREAM))
            .writes(SNAPSHOTS_BUCKET, &[&checkpoints(service), "agent.>", "part.>", "answers.*"])
            .reads(&bucket(SNAPSHOTS_BUCKET))
            .writes(HOOKS_BUCKET, &[">"])
            .reads(HOOKS_STREAM)
            // And whether the cap of the installation is reached.
            .hears([TAILS.to_owned(), format!("$KV.{CONGESTION_BUCKET}.CAP")])
            .publishes(["kairo.timer.set.*.*".to_owned(), api("STREAM.MSG.DELETE", TIMERS_STREAM)])
            .reads(TIMERS_STREAM)
            .reads_objects(),
        Service::ToolRunner => own
            .reads(DLQ_STREAM)
            .asks([CONTROL, HOLDING])
            .hears([HOLDING])
            .answers([Service::ToolRunner])
            .hears([MCP_SIGN_IN, QUESTIONS])
            // Of servers, and of users at servers.
            .writes(SIGN_INS_BUCKET, &["*", "*.*"])
            .reads(&bucket(SIGN_INS_BUCKET))
            .asks([workers::HELLOS, workers::VERDICTS, workers::CALLS, workers::ORDERS])
            .hears([workers::ANNOUNCEMENTS, workers::SAYINGS])
            // It keeps the images and audio of results.
            .reads_objects()
            .publishes([format!("$O.{OBJECTS_BUCKET}.>"), api("STREAM.PURGE", &objects())]),
        Service::ProcessSupervisor => own
            .reads(DLQ_STREAM)
            // One forwards to the other what it is asked about its processes.
            .asks([CONTROL, HOLDING])
            .hears([CONTROL, SUPERVISORS_CONTROL, TAILS, HOLDING])
            .answers([Service::ToolRunner, Service::ProcessSupervisor]),
        Service::Projector => own,
    }
}

fn gateway(own: Permissions) -> Permissions {
    let looks = STREAMS.iter().map(|stream| api("STREAM.INFO", stream));
    let looks = looks.chain(STREAMS.iter().map(|stream| format!("{}.*", api("CONSUMER.INFO", stream))));
    own.publishes(looks)
        // What other systems publish, which it writes into the log for them.
        .hears([ENTRANCE])
        .publishes([WITHOUT_PARTITION, ANSWERS_TO_OTHER_ACCOUNTS])
        .never_publishes(announcements())
        .reads(DLQ_STREAM)
        .asks([STATUS_PING, TAILS, MCP_SIGN_IN, QUESTIONS])
        // Whether somebody who is to be forgotten is signed in anywhere.
        .reads(&bucket(SIGN_INS_BUCKET))
        .hears([LIVE_TOKEN.filter(), LIVE_OUTPUT.filter(), format!("$KV.{CONGESTION_BUCKET}.>")])
        .reads(&bucket(CONGESTION_BUCKET))
        .reads(&bucket(SNAPSHOTS_BUCKET))
        .makes_again(CONGESTION_BUCKET)
        // That the cap of the installation is reached.
        .writes(CONGESTION_BUCKET, &["CAP"])
        .writes(DATA_KEYS_BUCKET, &["order.*", "installation.*"])
        .watches(&bucket(DATA_KEYS_BUCKET))
        .writes(KEYS_BUCKET, &[">"])
        .reads(&bucket(KEYS_BUCKET))
        .follows(&bucket(KEYS_BUCKET))
        // Keys are destroyed, and what others have written there is removed.
        .publishes([DATA_KEYS_BUCKET, KEYS_BUCKET].map(|name| api("STREAM.MSG.DELETE", &bucket(name))))
        .writes(TICKETS_BUCKET, &[">"])
        .reads(&bucket(TICKETS_BUCKET))
        .reads_objects()
        // It follows what is stored, to remove what no event names.
        .publishes([format!("{}.*", api("CONSUMER.MSG.NEXT", &objects()))])
        // Bytes that somebody else stores at the same time are replaced; who may write there could purge by a rollup, too.
        .publishes([format!("$O.{OBJECTS_BUCKET}.>"), api("STREAM.PURGE", &objects())])
}

/// Adds the permissions of a service whose replicas share the log by partitions.
fn owner_of_partitions(service: Service, own: Permissions) -> Permissions {
    let group = format!("{}.*", service.name());
    own.writes(MEMBERS_BUCKET, &[&group])
        .reads(&bucket(MEMBERS_BUCKET))
        .makes_again(MEMBERS_BUCKET)
        .writes(OWNERS_BUCKET, &[&group])
        .reads(&bucket(OWNERS_BUCKET))
        .makes_again(OWNERS_BUCKET)
        .writes(CONGESTION_BUCKET, &[">"])
}

/// The subjects that the table says it emits.
fn emitted(service: Service) -> impl Iterator<Item = String> {
    let own = TABLE.iter().filter(move |route| match route.emitter {
        Emitter::Only(emitter) => emitter == service,
        Emitter::Owner => true,
        Emitter::Timer => false,
    });
    own.map(move |route| subject(route, service))
}

/// A subject as its emitter publishes on it: what a service says of itself has its own name as the owner.
fn subject(route: &Route, service: Service) -> String {
    let is_of_services = route.noun == "system" || route.emitter == Emitter::Owner;
    let owner = if is_of_services { service.name() } else { "*" };
    let spoken = format!("kairo.{}.{owner}.{}", route.noun, route.verb);
    match route.store {
        Store::Events => format!("{spoken}.*"),
        Store::DeadLetters | Store::Live => spoken,
    }
}

/// Returns the subjects that other systems may not publish on, as Kairo announces there: the log would add a partition.
fn announcements() -> impl Iterator<Item = String> {
    let verbs = TABLE.iter().filter(|route| route.noun == "system").map(Route::filter);
    verbs.chain(Service::ALL.map(|service| format!("kairo.system.{}.*", service.name())))
}

fn checkpoints(service: Service) -> String {
    format!("checkpoint.{}.>", service.name())
}

fn bucket(name: &str) -> String {
    format!("KV_{name}")
}

fn objects() -> String {
    format!("OBJ_{OBJECTS_BUCKET}")
}

/// A request to JetStream about a stream.
fn api(request: &str, stream: &str) -> String {
    format!("$JS.API.{request}.{stream}")
}

impl Permissions {
    fn publishes<S: Into<String>>(mut self, subjects: impl IntoIterator<Item = S>) -> Self {
        self.publish.allow.extend(subjects.into_iter().map(Into::into));
        self
    }

    fn never_publishes<S: Into<String>>(mut self, subjects: impl IntoIterator<Item = S>) -> Self {
        self.publish.deny.extend(subjects.into_iter().map(Into::into));
        self
    }

    fn hears<S: Into<String>>(mut self, subjects: impl IntoIterator<Item = S>) -> Self {
        self.subscribe.allow.extend(subjects.into_iter().map(Into::into));
        self
    }

    /// Requests, whose answers come to its own inboxes.
    fn asks<S: Into<String>>(self, subjects: impl IntoIterator<Item = S>) -> Self {
        self.publishes(subjects)
    }

    /// Answers these services. Rather than `allow_responses`, for which the server would note down every delivery.
    fn answers(self, askers: impl IntoIterator<Item = Service>) -> Self {
        self.publishes(askers.into_iter().map(inboxes))
    }

    /// Single messages and pages, and what the stream is.
    fn reads(self, stream: &str) -> Self {
        let direct = api("DIRECT.GET", stream);
        let under = format!("{direct}.>");
        self.publishes([api("STREAM.INFO", stream), api("STREAM.MSG.GET", stream), direct, under])
    }

    /// The log, in order, too: by consumers that nobody shares. Those that replicas share are not for it to change.
    fn reads_log(self, service: Service) -> Self {
        let reader = |request: &str| format!("{}.>", api(request, EVENTS_STREAM));
        let shared = Consumer::DURABLE.into_iter().filter(|consumer| consumer.stream() == EVENTS_STREAM);
        let denied = shared.flat_map(|consumer| {
            let of = |request: &str| format!("{}.{}", api(request, EVENTS_STREAM), consumer.name());
            let create = of("CONSUMER.CREATE");
            let next = (consumer.service() != service).then(|| of("CONSUMER.MSG.NEXT"));
            [format!("{create}.>"), create, of("CONSUMER.DELETE")].into_iter().chain(next)
        });
        self.reads(EVENTS_STREAM)
            .publishes(["CONSUMER.CREATE", "CONSUMER.INFO", "CONSUMER.MSG.NEXT", "CONSUMER.DELETE"].map(reader))
            .never_publishes(denied)
    }

    /// Its durable consumers.
    fn consumes(self, service: Service) -> Self {
        let own = Consumer::DURABLE.into_iter().filter(|consumer| consumer.service() == service);
        let subjects = own.flat_map(|consumer| {
            let (stream, name) = (consumer.stream(), consumer.name());
            let of = |request: &str| format!("{}.{name}", api(request, stream));
            [of("CONSUMER.INFO"), of("CONSUMER.MSG.NEXT"), format!("$JS.ACK.{stream}.{name}.>")]
        });
        self.publishes(subjects)
    }

    fn writes(self, bucket: &str, keys: &[&str]) -> Self {
        self.publishes(keys.iter().map(|key| format!("$KV.{bucket}.{key}")))
    }

    /// A bucket in memory, which a server that was restarted has forgotten. It may not change one that is there.
    fn makes_again(self, name: &str) -> Self {
        self.publishes([api("STREAM.CREATE", &bucket(name))])
    }

    /// Reads in order by the client library's own consumers, which have no names and control their flow.
    fn watches(self, stream: &str) -> Self {
        let create = api("CONSUMER.CREATE", stream);
        let under = format!("{create}.>");
        let delete = format!("{}.*", api("CONSUMER.DELETE", stream));
        self.publishes([create, under, delete, format!("$JS.FC.{stream}.>")])
    }

    /// Reads in order, by a consumer that nobody shares.
    fn follows(self, stream: &str) -> Self {
        self.publishes(
            ["CONSUMER.CREATE", "CONSUMER.INFO", "CONSUMER.MSG.NEXT", "CONSUMER.DELETE"]
                .map(|request| format!("{}.>", api(request, stream))),
        )
    }

    fn reads_objects(self) -> Self {
        self.reads(&objects()).watches(&objects())
    }
}

/// Returns the permissions of the worker of this name: it speaks to tool-runner of its own tools, and nothing else.
pub fn of_worker(worker: &Name) -> Permissions {
    let own = |subjects: &[&str]| {
        let own = subjects.iter().map(|subject| subject.replacen('*', worker.as_str(), 1));
        own.collect::<Vec<_>>()
    };
    Permissions::default().publishes(own(&[workers::ANNOUNCEMENTS, workers::SAYINGS])).hears(own(&[
        workers::HELLOS,
        workers::VERDICTS,
        workers::CALLS,
        workers::ORDERS,
    ]))
}

/// Renders the permissions of a worker's user for nats-server's configuration. A worker may answer calls, each once,
/// wherever tool-runner waits for that: rather than on all inboxes of tool-runner, where it could speak for others.
pub fn rendered_of_worker(worker: &Name) -> String {
    let Permissions { publish, subscribe } = of_worker(worker);
    let mut text = String::from("{\n");
    render(&mut text, "publish", publish);
    render(&mut text, "subscribe", subscribe);
    text + "  allow_responses: { max: 1, expires: \"1m\" }\n}"
}

/// All of it as a part of nats-server's configuration: a variable for each identity, to be included where users are listed.
pub fn rendered() -> String {
    let mut text = String::from(HEAD);
    for identity in Identity::ALL {
        let Permissions { publish, subscribe } = identity.permissions();
        // Writing to a String cannot fail.
        let _ = writeln!(text, "\n{} = {{", identity.permissions_variable());
        render(&mut text, "publish", publish);
        render(&mut text, "subscribe", subscribe);
        text.push_str("}\n");
    }
    let _ = writeln!(text, "\nEXPORTS = [{{ service: \"{ENTRANCE}\", accounts: [{OUTSIDE_ACCOUNT}] }}]");
    let service = format!("{{ account: {ACCOUNT}, subject: \"{ENTRANCE}\" }}");
    let _ = writeln!(text, "IMPORTS = [{{ service: {service}, to: \"{WITHOUT_PARTITION}\" }}]");
    text
}

/// The accounts of nats-server with these users, to stand behind [`rendered`]. Tool workers are users of Kairo's account.
pub fn rendered_accounts(
    users: impl IntoIterator<Item = (Identity, String)>,
    workers: impl IntoIterator<Item = String>,
) -> String {
    let (outside, inside): (Vec<_>, Vec<_>) =
        users.into_iter().partition(|(identity, _)| *identity == Identity::Outside);
    let lines = |users: Vec<(Identity, String)>| users.into_iter().map(|(_, user)| format!("      {user}\n"));
    let workers = workers.into_iter().map(|user| format!("      {user}\n"));
    let inside: String = lines(inside).chain(workers).collect();
    let outside: String = lines(outside).collect();
    format!(
        "accounts {{\n  {ACCOUNT} {{\n    jetstream: enabled\n    exports: $EXPORTS\n    users: [\n{inside}    ]\n  }}\n  \
         {OUTSIDE_ACCOUNT} {{\n    imports: $IMPORTS\n    users: [\n{outside}    ]\n  }}\n}}\n"
    )
}

/// The entry of nats-server's list of users for whoever has the seed of this public nkey: they are that identity.
pub fn rendered_nkey(nkey: &str, identity: Identity) -> String {
    format!("{{ nkey: \"{nkey}\", permissions: ${} }}", identity.permissions_variable())
}

const HEAD: &str = "\
# Who may do what: generated from services/events/src/permissions.rs by scripts/generate-permissions, not to be edited.
# A variable for each identity, and what accounts share. Include it before the accounts; all variables must be used there.
";

fn render(text: &mut String, direction: &str, rules: Rules) {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn is_in(pattern: &str, subject: &str) -> bool {
        let (mut pattern, mut subject) = (pattern.split('.'), subject.split('.'));
        loop {
            match (pattern.next(), subject.next()) {
                (Some(">"), Some(_)) | (None, None) => return true,
                (Some("*"), Some(_)) => {}
                (Some(one), Some(other)) if one == other => {}
                _ => return false,
            }
        }
    }

    fn may_publish(identity: Identity, subject: &str) -> bool {
        let Rules { allow, deny } = identity.permissions().publish;
        allow.iter().any(|pattern| is_in(pattern, subject)) && !deny.iter().any(|pattern| is_in(pattern, subject))
    }

    fn who_may_publish(subject: &str) -> Vec<&'static str> {
        let others = Identity::ALL.into_iter().filter(|identity| *identity != Identity::Provision);
        others.filter(|identity| may_publish(*identity, subject)).map(Identity::name).collect()
    }

    #[test]
    fn what_the_table_lists_has_a_single_publisher_and_that_is_its_emitter() {
        for route in TABLE {
            match route.emitter {
                Emitter::Only(service) => {
                    let said = subject(route, service).replace('*', "x");
                    assert_eq!(who_may_publish(&said), [service.name()], "{said}");
                }
                Emitter::Owner => {
                    for service in Service::ALL {
                        assert_eq!(who_may_publish(&subject(route, service)), [service.name()]);
                    }
                }
                Emitter::Timer => {
                    let said = route.stored_filter().replace('*', "x");
                    assert!(who_may_publish(&said).is_empty(), "{said}");
                }
            }
        }
    }

    #[test]
    fn other_systems_say_nothing_that_kairo_says_of_itself() {
        // In its own account, from where a gateway takes it.
        assert_eq!(who_may_publish("kairo.system.github.push"), ["gateway", "outside"]);
        for subject in ["kairo.system.github.catalogue", "kairo.system.tool-runner.push", "kairo.system.github.push.3"]
        {
            assert!(who_may_publish(subject).is_empty(), "{subject}");
        }
    }

    #[test]
    fn data_keys_are_made_by_those_who_seal_and_orders_to_forget_somebody_by_gateways_alone() {
        let of = |key: &str| who_may_publish(&format!("$KV.{DATA_KEYS_BUCKET}.{key}"));
        for order in ["order.ann", "installation.1"] {
            assert_eq!(of(order), ["gateway"], "{order}");
        }
        for key in ["user.ann.1", "agent.keeper.1", "object.abc.1"] {
            assert_eq!(of(key), ["gateway", "router", "agent-runtime", "tool-runner", "process-supervisor"], "{key}");
        }
    }

    #[test]
    fn other_systems_share_one_subject_with_kairo_and_have_no_stream() {
        let worker = "{ user: worker }".to_owned();
        let users = [Identity::Outside, Identity::Service(Service::Router)].map(|it| (it, it.name().to_owned()));
        let text = rendered() + &rendered_accounts(users, [worker]);
        let (inside, outside) = text.split_once("  OUTSIDE {").unwrap();
        assert!(outside.contains("      outside\n") && !outside.contains("router") && !outside.contains("jetstream"));
        assert!(inside.contains("      router\n      { user: worker }\n"), "{inside}");
        assert!(inside.contains("EXPORTS = [{ service: \"kairo.entrance.*.*\", accounts: [OUTSIDE] }]"), "{inside}");
    }

    #[test]
    fn streams_and_shared_consumers_are_made_and_changed_by_nobody_else() {
        let forbidden = ["STREAM.CREATE", "STREAM.UPDATE", "STREAM.DELETE", "STREAM.PURGE", "STREAM.MSG.DELETE"];
        for (stream, request) in STREAMS.iter().flat_map(|stream| forbidden.map(|request| (*stream, request))) {
            let who = who_may_publish(&api(request, stream));
            let expected: &[&str] = match (request, stream) {
                ("STREAM.CREATE", "KV_KAIRO_MEMBERS" | "KV_KAIRO_OWNERS") => &["router", "agent-runtime"],
                ("STREAM.CREATE", "KV_KAIRO_CONGESTION") => &["gateway"],
                ("STREAM.PURGE", "OBJ_KAIRO_OBJECTS") => &["gateway", "tool-runner"],
                ("STREAM.MSG.DELETE", TIMERS_STREAM) => &["agent-runtime"],
                ("STREAM.MSG.DELETE", "KV_KAIRO_DATA_KEYS" | "KV_KAIRO_KEYS") => &["gateway"],
                _ => &[],
            };
            assert_eq!(who, expected, "{request} {stream}");
        }
        for consumer in Consumer::DURABLE {
            let of = |request: &str| format!("{}.{}", api(request, consumer.stream()), consumer.name());
            let filtered = format!("{}.kairo.user.x.message.3", of("CONSUMER.CREATE"));
            for subject in [of("CONSUMER.CREATE"), filtered, of("CONSUMER.DELETE"), of("CONSUMER.DURABLE.CREATE")] {
                assert!(who_may_publish(&subject).is_empty(), "{subject}");
            }
            assert_eq!(who_may_publish(&of("CONSUMER.MSG.NEXT")), [consumer.service().name()]);
            let ack = format!("$JS.ACK.{}.{}.1.2.3.4.5", consumer.stream(), consumer.name());
            assert_eq!(who_may_publish(&ack), [consumer.service().name()]);
        }
        // Without a name in the subject the body may name any consumer.
        assert!(who_may_publish(&api("CONSUMER.CREATE", EVENTS_STREAM)).is_empty());
    }

    #[test]
    fn a_worker_speaks_for_itself_alone_and_to_tool_runner() {
        let billing = Name::parse("billing").unwrap();
        let Permissions { publish, subscribe } = of_worker(&billing);
        let may = |rules: &Rules, subject: &str| rules.allow.iter().any(|pattern| is_in(pattern, subject));
        let action = uuid::Uuid::nil();
        for subject in [workers::announce(&billing), workers::said(&billing, action)] {
            assert!(may(&publish, &subject) && who_may_publish(&subject).is_empty(), "{subject}");
        }
        let to_it = [workers::hello(&billing), workers::call(&billing, "t"), workers::action(&billing, action)];
        for subject in to_it {
            assert!(may(&subscribe, &subject) && !may(&publish, &subject), "{subject}");
            assert_eq!(who_may_publish(&subject), ["tool-runner"], "{subject}");
        }
        let other = Name::parse("shipping").unwrap();
        let forbidden = [workers::announce(&other), workers::said(&other, action), "kairo.tool.a.result.1".to_owned()];
        assert!(!forbidden.iter().any(|subject| may(&publish, subject)));
        assert!(!may(&subscribe, &workers::call(&other, "t")));
    }

    #[test]
    fn nobody_hears_what_another_is_answered() {
        for identity in Identity::ALL.into_iter().filter(|identity| *identity != Identity::Provision) {
            let heard = identity.permissions().subscribe.allow;
            for service in Service::ALL.map(Identity::Service).into_iter().filter(|other| *other != identity) {
                let inbox = format!("{}.x.1", inbox_prefix(service.name()));
                assert!(!heard.iter().any(|pattern| is_in(pattern, &inbox)), "{} {inbox}", identity.name());
            }
        }
    }
}
