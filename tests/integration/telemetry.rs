//! One message is one trace over all services, as a collector sees it.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
};

use futures::stream;
use kairo_core::telemetry::Traceparent;
use kairo_local::Service;
use opentelemetry_proto::tonic::{
    collector::trace::v1::{
        ExportTraceServiceRequest, ExportTraceServiceResponse,
        trace_service_server::{TraceService, TraceServiceServer},
    },
    common::v1::any_value::Value,
};
use tokio::{
    net::TcpListener,
    sync::watch::{self, Ref},
};
use tonic::{Request, Response, Status, transport::Server};

use crate::world::{DEADLINE, Wanted, scenario::USUAL};

/// A span as it was collected.
#[derive(Clone, Debug)]
struct Span {
    service: String,
    trace: Vec<u8>,
    id: Vec<u8>,
    parent: Vec<u8>,
}

/// A real OTLP collector, which keeps everything.
#[derive(Clone)]
struct Collector {
    spans: watch::Sender<Vec<Span>>,
}

impl Collector {
    /// Listens until the test ends.
    async fn start() -> (Self, SocketAddr) {
        let collector = Self { spans: watch::Sender::default() };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let connections = stream::unfold(listener, async |listener| {
            let connection = listener.accept().await.map(|(connection, _)| connection);
            Some((connection, listener))
        });
        let server = Server::builder().add_service(TraceServiceServer::new(collector.clone()));
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
}

#[tonic::async_trait]
impl TraceService for Collector {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        let mut spans = Vec::new();
        for resource in request.into_inner().resource_spans {
            let attributes = resource.resource.unwrap().attributes;
            let service = attributes.into_iter().find(|attribute| attribute.key == "service.name").unwrap();
            let Some(Value::StringValue(service)) = service.value.unwrap().value else { panic!("no text") };
            for span in resource.scope_spans.into_iter().flat_map(|scope| scope.spans) {
                let service = service.clone();
                let (trace, id, parent) = (span.trace_id, span.span_id, span.parent_span_id);
                spans.push(Span { service, trace, id, parent });
            }
        }
        self.spans.send_modify(|all| all.append(&mut spans));
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

/// The services of a turn with a tool, in the order in which it reaches them.
const WAY: [&str; 5] = ["gateway", "router", "agent-runtime", "tool-runner", "agent-runtime"];

/// Whether every span but the root has its parent, and one of them has come the whole way.
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

#[tokio::test]
async fn one_message_is_one_trace_over_all_services() {
    let (collector, address) = Collector::start().await;
    let mut wanted = Wanted::new(USUAL).env_of_all("KAIRO_TELEMETRY__EXPORT_INTERVAL_MS", "20");
    for service in Service::ALL {
        wanted = wanted.env(service, "KAIRO_TELEMETRY__OTLP_ENDPOINT", format!("http://{address}"));
    }
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
    let roots: Vec<&Span> = spans.iter().filter(|span| span.parent.is_empty()).collect();
    assert!(roots.len() == 1 && roots[0].service == "gateway", "{roots:?}");

    // Another message is another trace.
    let other = log.iter().find(|raw| raw.header("ce-id") == Some(&other.event_id.to_string())).unwrap();
    let other: Traceparent = other.header("traceparent").unwrap().parse().unwrap();
    assert_ne!(other.trace_id(), trace);
    world.end().await;
}
