//! Permissions on NATS: the committed file is made from the table of subjects, and a real server refuses the rest.

mod attacks;
mod nkeys;
mod provision;
mod replies;
mod rotation;
mod tls;

use std::{fs, path::PathBuf, time::Duration};

use async_nats::{Event, RequestErrorKind, ServerError};
use kairo_core::{
    ids::Name,
    permissions::{NatsIdentity, inbox_prefix, render_all, render_worker},
    subjects::{Consumer, EVENTS_STREAM, Emitter, Route, STREAMS, Service, Store, TABLE},
};
use kairo_local::NatsServer;
use kairo_tests::login;
use tokio::sync::mpsc;

use crate::{bus::Server, world::DEADLINE};

/// Between two looks at what somebody else does.
const NOW_AND_THEN: Duration = Duration::from_millis(20);
/// A folder each: what is deployed with kustomize must lie in its own.
const COMMITTED: [&str; 2] = ["deploy", "k8s/base"];

fn committed() -> impl Iterator<Item = PathBuf> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned();
    COMMITTED.into_iter().map(move |folder| root.join(folder).join("nats-permissions.conf"))
}

#[test]
fn the_committed_permissions_are_those_of_the_table() {
    for path in committed() {
        if std::env::var_os("KAIRO_REGENERATE").is_some() {
            fs::write(&path, render_all()).unwrap();
        }
        let is_same = fs::read_to_string(&path).unwrap_or_default() == render_all();
        assert!(is_same, "{} is not up to date: run scripts/generate-permissions", path.display());
    }
}

/// The permissions documented for a worker are those that it needs, and no more.
#[test]
fn the_documented_permissions_of_a_worker_are_those_that_it_has() {
    let document = PathBuf::from(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("docs/tool-workers.md");
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>().join(" ");
    let permissions = render_worker(&Name::parse("billing").unwrap());
    let text = words(&fs::read_to_string(document).unwrap());
    assert!(text.contains(&words(&format!("permissions: {permissions}"))), "write this there:\n{permissions}");
}

/// A client of nobody's code, with somebody's password.
pub struct Stranger {
    pub client: async_nats::Client,
    refusals: mpsc::UnboundedReceiver<String>,
}

impl Stranger {
    pub async fn who_has_the_password_of(identity: NatsIdentity, nats: &NatsServer) -> Self {
        let (refused, refusals) = mpsc::unbounded_channel();
        let login = nats.login(identity);
        let options = login::options(&login).event_callback(move |event| {
            if let Event::ServerError(ServerError::Other(said)) = event {
                let _ = refused.send(said);
            }
            std::future::ready(())
        });
        let options = match identity {
            // Other systems need not choose a prefix.
            NatsIdentity::Outside => options,
            _ => options.custom_inbox_prefix(inbox_prefix(identity.name())),
        };
        let client = options.connect(&login.url).await.unwrap();
        Self { client, refusals }
    }

    /// Publishes, and waits for the server to refuse it.
    pub async fn is_refused(&mut self, subject: &str) {
        self.client.publish(subject.to_owned(), "forged".into()).await.unwrap();
        self.was_refused(&format!("Publish to \"{subject}\"")).await;
    }

    /// Subscribes, and waits for the server to refuse it.
    pub async fn hears_nothing_of(&mut self, subject: &str) {
        let _hearing = self.client.subscribe(subject.to_owned()).await.unwrap();
        self.was_refused(&format!("Subscription to \"{subject}\"")).await;
    }

    async fn was_refused(&mut self, what: &str) {
        let said = tokio::time::timeout(DEADLINE, self.refusals.recv()).await;
        let said = said.unwrap_or_else(|_| panic!("the server let it through: {what}")).unwrap();
        assert!(said.contains(what), "{said} is not about {what}");
    }
}

/// A subject of the table as its emitter would publish on it.
fn subject(route: &Route, owner: &str) -> String {
    let spoken = route.filter().replace('*', owner);
    if route.store == Store::Events { format!("{spoken}.3") } else { spoken }
}

/// Returns the subjects that a service must not be able to publish: those that others emit, their dead letters, and
/// changes to shared state.
fn forbidden(service: Service) -> Vec<String> {
    let mut forbidden = Vec::new();
    for route in TABLE {
        match route.emitter {
            Emitter::Only(emitter) if emitter == service && route.noun == "system" => {
                forbidden.push(subject(route, "another"));
            }
            Emitter::Only(emitter) if emitter == service => {}
            Emitter::Only(emitter) => forbidden.push(subject(route, emitter.name())),
            Emitter::Timer => forbidden.push(subject(route, "ann")),
            Emitter::Owner => {
                let others = Service::ALL.into_iter().filter(|other| *other != service);
                forbidden.extend(others.map(|other| subject(route, other.name())));
            }
        }
    }
    for stream in STREAMS {
        forbidden.extend(["UPDATE", "DELETE"].map(|verb| format!("$JS.API.STREAM.{verb}.{stream}")));
    }
    for consumer in Consumer::DURABLE {
        let (stream, name) = (consumer.stream(), consumer.name());
        let verbs = ["CREATE", "DURABLE.CREATE", "DELETE"];
        forbidden.extend(verbs.map(|verb| format!("$JS.API.CONSUMER.{verb}.{stream}.{name}")));
        if consumer.service() != service {
            forbidden.push(format!("$JS.API.CONSUMER.MSG.NEXT.{stream}.{name}"));
            forbidden.push(format!("$JS.ACK.{stream}.{name}.1.7.7.1.1"));
        }
    }
    if service != Service::Gateway {
        forbidden.extend(["$KV.KAIRO_KEYS.mine", "$KV.KAIRO_TICKETS.mine"].map(str::to_owned));
    }
    // It keeps images of results there.
    if !matches!(service, Service::Gateway | Service::ToolRunner) {
        forbidden.push("$O.KAIRO_OBJECTS.M.mine".to_owned());
    }
    if service != Service::ToolRunner {
        forbidden.push("$KV.KAIRO_SIGN_INS.mine".to_owned());
    }
    forbidden.extend(["kairo.system.github.push.3", "kairo.anything.else"].map(str::to_owned));
    if service != Service::Gateway {
        forbidden.extend(["kairo.system.github.push", "$KV.KAIRO_DATA_KEYS.order.ann"].map(str::to_owned));
    }
    forbidden.push(format!("$JS.API.CONSUMER.CREATE.{EVENTS_STREAM}"));
    forbidden
}

#[tokio::test]
async fn each_service_is_refused_what_belongs_to_others() {
    let server = Server::start().await;
    let bus = server.bus().await;
    for service in Service::ALL {
        let mut stranger = Stranger::who_has_the_password_of(NatsIdentity::Service(service), &server.nats).await;
        for subject in forbidden(service) {
            stranger.is_refused(&subject).await;
        }
        for other in Service::ALL.into_iter().filter(|other| *other != service) {
            stranger.hears_nothing_of(&format!("{}.>", inbox_prefix(other.name()))).await;
        }
        stranger.hears_nothing_of("kairo.>").await;
        stranger.hears_nothing_of("$JS.ACK.>").await;
    }
    let mut log = Vec::new();
    bus.read_all("kairo.>", 0, |raw| log.push(raw.subject)).await.unwrap();
    assert!(log.is_empty(), "{log:?}");
}

#[tokio::test]
async fn other_systems_say_what_happened_there_and_nothing_else() {
    let server = Server::start().await;
    let bus = server.bus().await;
    let mut outside = Stranger::who_has_the_password_of(NatsIdentity::Outside, &server.nats).await;
    // No gateway is there that takes it in.
    let unheard = outside.client.request("kairo.system.github.push", "{}".into()).await.unwrap_err();
    assert_eq!(unheard.kind(), RequestErrorKind::NoResponders);
    for service in Service::ALL {
        for subject in TABLE.iter().map(|route| subject(route, service.name())) {
            outside.is_refused(&subject).await;
        }
        outside.is_refused(&format!("kairo.system.{}.push", service.name())).await;
        outside.hears_nothing_of(&format!("{}.>", inbox_prefix(service.name()))).await;
    }
    // What Kairo announces is stored with a partition, which the log would add to this.
    outside.is_refused("kairo.system.tool-runner.catalogue").await;
    outside.is_refused("kairo.system.github.catalogue").await;
    outside.is_refused("$JS.API.STREAM.INFO.KAIRO_EVENTS").await;
    outside.hears_nothing_of("kairo.>").await;
    let mut log = Vec::new();
    bus.read_all("kairo.>", 0, |raw| log.push(raw.subject)).await.unwrap();
    assert!(log.is_empty(), "{log:?}");
}
