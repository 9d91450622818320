//! One message is one trace over all services, as a collector sees it, and so do logs; and metrics go there, too.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
};

use async_nats::{HeaderMap, HeaderName, HeaderValue};
use futures::stream;
use kairo_core::{
    metrics::table::{MetricKind, TABLE},
    subjects::Service as Core,
    telemetry::Traceparent,
    tls::use_ring,
};
use kairo_local::Service;
use kairo_tests::certificates::Authority;
use opentelemetry_proto::tonic::{
    collector::{
        metrics::v1::{
            ExportMetricsServiceRequest, ExportMetricsServiceResponse,
            metrics_service_server::{MetricsService, MetricsServiceServer},
        },
        trace::v1::{
            ExportTraceServiceRequest, ExportTraceServiceResponse,
            trace_service_server::{TraceService, TraceServiceServer},
        },
    },
    common::v1::any_value::Value,
    metrics::v1::metric::Data,
    resource::v1::Resource,
};
use serde_json::json;
use tokio::{
    net::TcpListener,
    sync::watch::{self, Ref},
};
use tonic::{
    Request, Response, Status,
    transport::{Identity, Server, ServerTlsConfig},
};

use crate::{
    conventions::{self, Attributes},
    monitoring::scrape::scrape,
    world::{DEADLINE, Wanted, World, scenario::USUAL},
};

/// Of a message from another system.
const TRACEPARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
/// The authorization that the collector requires.
const TOKEN: &str = "Bearer swordfish";

/// A span as it was collected.
#[derive(Clone, Debug)]
struct Span {
    service: String,
    name: String,
    trace: Vec<u8>,
    id: Vec<u8>,
    parent: Vec<u8>,
    attributes: Attributes,
}

/// The names of metrics and their types, by the service that sent them.
type Metrics = BTreeMap<String, BTreeMap<String, &'static str>>;

/// A real OTLP collector, which keeps everything.
#[derive(Clone)]
struct Collector {
    spans: watch::Sender<Vec<Span>>,
    metrics: watch::Sender<Metrics>,
}

impl Collector {
    /// Listens until the test ends, over TLS.
    async fn start(identity: Identity) -> (Self, SocketAddr) {
        let collector = Self { spans: watch::Sender::default(), metrics: watch::Sender::default() };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let connections = stream::unfold(listener, async |listener| {
            let connection = listener.accept().await.map(|(connection, _)| connection);
            Some((connection, listener))
        });
        use_ring();
        let mut server = Server::builder().tls_config(ServerTlsConfig::new().identity(identity)).unwrap();
        let server = server.add_service(TraceServiceServer::with_interceptor(collector.clone(), is_let_in));
        let server = server.add_service(MetricsServiceServer::with_interceptor(collector.clone(), is_let_in));
        tokio::spawn(server.serve_with_incoming(connections));
        (collector, address)
    }

    /// The spans of a trace, once there are enough of them.
    async fn trace(&self, id: &[u8], enough: impl Fn(&[Span]) -> bool) -> Vec<Span> {
        let of_trace = |all: &[Span]| all.iter().filter(|span| span.trace == id).cloned().collect::<Vec<_>>();
        let mut spans = self.spans.subscribe();
        let waited = tokio::time::timeout(DEADLINE, spans.wait_for(|all| enough(&of_trace(all)))).await;
        let found = waited.map(|found| found.map(|all: Ref<Vec<Span>>| of_trace(&all)));
        found.unwrap_or_else(|_| panic!("spans are missing: {:?}", of_trace(&self.spans.borrow()))).unwrap()
    }

    /// Waits until these metrics of a service were sent.
    async fn metrics(&self, service: &str, wanted: &BTreeMap<String, &'static str>) {
        let mut metrics = self.metrics.subscribe();
        let are_there = |all: &Metrics| {
            all.get(service).is_some_and(|sent| wanted.iter().all(|(name, kind)| sent.get(name) == Some(kind)))
        };
        let waited = tokio::time::timeout(DEADLINE, metrics.wait_for(are_there)).await.is_ok();
        assert!(waited, "{service} did not send all of {wanted:?}: {:?}", self.metrics.borrow().get(service));
    }
}

fn is_let_in(request: Request<()>) -> Result<Request<()>, Status> {
    match request.metadata().get("authorization").is_some_and(|shown| shown == TOKEN) {
        true => Ok(request),
        false => Err(Status::unauthenticated("who is it?")),
    }
}

fn name_of(resource: Option<Resource>) -> String {
    let attributes = resource.unwrap().attributes;
    let service = attributes.into_iter().find(|attribute| attribute.key == "service.name").unwrap();
    let Some(Value::StringValue(service)) = service.value.unwrap().value else { panic!("no text") };
    service
}

#[tonic::async_trait]
impl MetricsService for Collector {
    async fn export(
        &self,
        request: Request<ExportMetricsServiceRequest>,
    ) -> Result<Response<ExportMetricsServiceResponse>, Status> {
        for resource in request.into_inner().resource_metrics {
            let service = name_of(resource.resource);
            for metric in resource.scope_metrics.into_iter().flat_map(|scope| scope.metrics) {
                let kind = match metric.data {
                    Some(Data::Sum(_)) => "counter",
                    Some(Data::Gauge(_)) => "gauge",
                    Some(Data::Histogram(_)) => "histogram",
                    other => panic!("{}: {other:?}", metric.name),
                };
                self.metrics.send_modify(|all| _ = all.entry(service.clone()).or_default().insert(metric.name, kind));
            }
        }
        Ok(Response::new(ExportMetricsServiceResponse::default()))
    }
}

#[tonic::async_trait]
impl TraceService for Collector {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        let mut spans = Vec::new();
        for resource in request.into_inner().resource_spans {
            let service = name_of(resource.resource);
            for span in resource.scope_spans.into_iter().flat_map(|scope| scope.spans) {
                let service = service.clone();
                let (name, trace, id, parent) = (span.name, span.trace_id, span.span_id, span.parent_span_id);
                let attributes = conventions::attributes(&span.attributes);
                spans.push(Span { service, name, trace, id, parent, attributes });
            }
        }
        self.spans.send_modify(|all| all.append(&mut spans));
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

/// The services of a turn with a tool, in the order in which it reaches them.
const WAY: [&str; 5] = ["gateway", "router", "agent-runtime", "tool-runner", "agent-runtime"];

/// Returns true if every span but the root has its parent, and one of them has passed through all services of [`WAY`].
fn is_whole(spans: &[Span]) -> bool {
    let by_id: BTreeMap<&[u8], &Span> = spans.iter().map(|span| (span.id.as_slice(), span)).collect();
    let came_all_the_way = |span: &Span| {
        let (mut way, mut at) = (vec![span.service.as_str()], span);
        while let Some(parent) = by_id.get(at.parent.as_slice()) {
            way.push(&parent.service);
            at = parent;
        }
        way.dedup();
        way.iter().rev().eq(&WAY)
    };
    spans.iter().all(|span| span.parent.is_empty() || by_id.contains_key(span.parent.as_slice()))
        && spans.iter().any(came_all_the_way)
}

/// The traces that lines of the services' logs belong to, and whether each of these lines names its span, too.
fn traces_of_logs(world: &World) -> BTreeMap<String, bool> {
    let replicas = Service::ALL.into_iter().filter(|service| *service != Service::ModelSim);
    let logs = replicas.flat_map(|service| world.stack.replicas(service)).map(|replica| replica.process().log());
    let mut traces = BTreeMap::new();
    for log in logs {
        for line in std::fs::read_to_string(log).unwrap().lines().filter(|line| line.starts_with('{')) {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            if let Some(trace) = line["trace_id"].as_str() {
                *traces.entry(trace.to_owned()).or_insert(true) &= line["span_id"].is_string();
            }
        }
    }
    traces
}

#[tokio::test]
async fn one_message_is_one_trace_over_all_services() {
    let folder = tempfile::tempdir().unwrap();
    let ca = folder.path().join("ca.pem");
    let shown = Authority::create(&ca).unwrap().server(folder.path()).unwrap();
    let [certificate, key] = [shown.certificate, shown.key].map(|file| std::fs::read(file).unwrap());
    let (collector, address) = Collector::start(Identity::from_pem(certificate, key)).await;
    let wanted = Wanted::new(USUAL)
        .env_of_all("KAIRO_TELEMETRY__EXPORT_INTERVAL_MS", "20")
        .env_of_all("KAIRO_TELEMETRY__METRICS_INTERVAL_MS", "100")
        .env_of_all("KAIRO_TELEMETRY__FORMAT", "json")
        .env_of_all("KAIRO_TELEMETRY__OTLP_ENDPOINT", format!("https://{address}"))
        .env_of_all("KAIRO_TELEMETRY__OTLP_CA", ca.display().to_string())
        .env_of_all("KAIRO_TELEMETRY__OTLP_HEADERS", json!({ "authorization": TOKEN }).to_string());
    let world = wanted.start().await;
    world.define("default").await;
    let other = world.send("default", "hello").await;
    let sent = world.send("default", "time please").await;
    world.reply(&sent).await;
    world.reply(&other).await;

    // All that the message led to carries its trace.
    let log = world.raw_log().await;
    let chain: Vec<_> = log.iter().map(|raw| raw.read(1_000_000).unwrap().envelope).collect();
    let chain: Vec<_> = chain.into_iter().filter(|envelope| envelope.correlation_id == sent.event_id).collect();
    assert_eq!(chain.len(), 6);
    let traces: BTreeSet<u128> = chain
        .iter()
        .map(|envelope| envelope.traceparent.as_ref().unwrap().parse::<Traceparent>().unwrap().trace_id())
        .collect();
    let [trace] = traces.into_iter().collect::<Vec<_>>()[..] else { panic!("several traces: {chain:#?}") };

    let spans = collector.trace(&trace.to_be_bytes(), is_whole).await;
    let names: BTreeSet<&str> = spans.iter().map(|span| span.name.as_str()).collect();
    for name in ["invoke_agent", "chat simulator", "execute_tool tools.now"] {
        assert!(names.contains(name), "no span {name}: {names:?}");
    }
    let mistakes: Vec<_> = spans.iter().flat_map(|span| conventions::mistakes(&span.name, &span.attributes)).collect();
    assert!(mistakes.is_empty(), "{mistakes:#?}");
    let roots: Vec<&Span> = spans.iter().filter(|span| span.parent.is_empty()).collect();
    assert!(roots.len() == 1 && roots[0].service == "gateway", "{roots:?}");

    // Another message is another trace.
    let other = log.iter().find(|raw| raw.header("ce-id") == Some(&other.event_id.to_string())).unwrap();
    let other: Traceparent = other.header("traceparent").unwrap().parse().unwrap();
    assert_ne!(other.trace_id(), trace);
    for service in Core::ALL {
        // What is always there, under the names that `/metrics` makes its own of.
        let gauges =
            TABLE.iter().filter(|metric| metric.services.contains(&service) && metric.kind == MetricKind::Gauge);
        // Without a limit of the log and without servers of tools there is nothing to be told of them.
        let absent = |name: &str| name.starts_with("kairo.log.limit") || name == "kairo.tool.server.up";
        let gauges = gauges.filter(|metric| !absent(metric.name));
        let gauges = gauges.map(|metric| (metric.name.to_owned(), metric.kind.openmetrics_type())).collect();
        collector.metrics(service.name(), &gauges).await;
    }
    // What is logged of a message that nobody can read belongs to its trace.
    let headers = HeaderMap::from_iter([(HeaderName::from_static("traceparent"), HeaderValue::from(TRACEPARENT))]);
    world.publish("kairo.system.shop.sold", headers, "?").await;
    world.dead_letters(1).await;
    let traces = traces_of_logs(&world);
    assert_eq!(traces.get(TRACEPARENT.split('-').nth(1).unwrap()), Some(&true), "no line has this trace: {traces:?}");

    let decided = BTreeMap::from([("kairo.agent.decision.duration".to_owned(), "histogram")]);
    collector.metrics(Core::AgentRuntime.name(), &decided).await;
    // What was measured last in each bucket leads to a trace that the collector has.
    let families = scrape(&reqwest::Client::new(), &world.stack.replicas(Service::AgentRuntime)[0]).await;
    for name in ["kairo_agent_decision_duration_seconds", "gen_ai_client_operation_duration_seconds"] {
        let family = families.iter().find(|family| family.name == name).unwrap();
        let named: Vec<&str> =
            family.samples.iter().filter_map(|sample| Some(sample.exemplar.as_ref()?["trace_id"].as_str())).collect();
        assert!(!named.is_empty(), "{name} has no exemplars");
        for id in named {
            let id = u128::from_str_radix(id, 16).unwrap().to_be_bytes();
            collector.trace(&id, |spans| spans.iter().any(|span| span.service == "agent-runtime")).await;
        }
    }
    world.end().await;
}
