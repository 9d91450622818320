//! The gRPC interface, on the same port as HTTP: commands, queries and the stream of events, whether the gateway takes
//! work, and what services there are.
//!
//! An rpc is answered by the endpoint of the HTTP interface that says the same ([`endpoints`], [`rpcs`]), in its own form
//! ([`transcode`], [`status`]); the stream comes from where the endpoint's does ([`events`]).

mod conversation;
mod endpoints;
mod events;
mod health;
mod rpcs;
mod status;
mod transcode;

/// The servers of the services in `proto/kairo/v1`.
#[allow(clippy::all, clippy::pedantic, unused_qualifications)]
mod generated {
    include!("generated/kairo.v1.services.rs");
}

use axum::{Router, extract::Request, middleware, response::IntoResponse};
use kairo_core::service::Readiness;
use tonic::server::NamedService;
use tower::Service;

use crate::http::{Gateway, body_timeout};
use endpoints::Endpoints;

/// Every service. `http` is the endpoints, with all that says who may use them.
pub fn routes(gateway: &Gateway, http: Router, readiness: &Readiness) -> Router {
    let largest = gateway.config.max_body_bytes;
    let endpoints = Endpoints::new(gateway.clone(), http);
    let bound = middleware::from_fn_with_state(gateway.clone(), body_timeout::limit_body_time);
    rpcs::routes(&endpoints, largest).layer(bound).merge(open_routes(gateway, readiness))
}

/// Routes that need no key: health and reflection.
fn open_routes(gateway: &Gateway, readiness: &Readiness) -> Router {
    let largest = gateway.config.max_body_bytes;
    let (reporter, health) = tonic_health::server::health_reporter();
    let services = [""].into_iter().chain(rpcs::NAMES.iter().copied()).collect();
    tokio::spawn(health::report_readiness(reporter, services, readiness.clone(), gateway.shutdown.clone()));
    let mut router = with(Router::new(), health.max_decoding_message_size(largest));
    let reflection = || {
        tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(kairo_proto::DESCRIPTORS)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
            .register_encoded_file_descriptor_set(tonic_reflection::pb::v1::FILE_DESCRIPTOR_SET)
            .register_encoded_file_descriptor_set(tonic_reflection::pb::v1alpha::FILE_DESCRIPTOR_SET)
            .include_reflection_service(false)
    };
    // Both versions: there are clients that know only the older one.
    match (reflection().build_v1(), reflection().build_v1alpha()) {
        (Ok(v1), Ok(v1alpha)) => {
            router = with(router, v1.max_decoding_message_size(largest));
            router = with(router, v1alpha.max_decoding_message_size(largest));
        }
        (Err(error), _) | (_, Err(error)) => tracing::error!(%error, "the services cannot be described"),
    }
    router.layer(middleware::from_fn_with_state(gateway.clone(), conversation::limit_conversation))
}

fn with<S>(router: Router, service: S) -> Router
where
    S: Service<Request, Error = std::convert::Infallible> + NamedService + Clone + Send + Sync + 'static,
    S::Response: IntoResponse,
    S::Future: Send + 'static,
{
    router.route_service(&format!("/{}/{{*rpc}}", S::NAME), service)
}

#[cfg(test)]
mod tests;
