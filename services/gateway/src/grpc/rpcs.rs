//! The rpcs that are asked and answered once, each with the endpoint that answers it; and every service.

use axum::{Router, http::Method};
use kairo_proto::v1::*;
use tonic::{Request, Response, Status, server::NamedService};

use super::{
    endpoints::{Endpoint, Endpoints},
    generated, with,
};
use crate::http::endpoints::*;

/// The service, its rpcs and their endpoints; a name in braces in a path is the field that fills it. An rpc may name
/// the field that is the body of its endpoint.
macro_rules! rpcs {
    ($service:path: $($rpc:ident($asked:ty) -> $answer:ty = $method:ident $route:ident $($body:literal)?,)+) => {
        #[tonic::async_trait]
        impl $service for Endpoints {
            $(async fn $rpc(&self, request: Request<$asked>) -> Result<Response<$answer>, Status> {
                let endpoint = Endpoint { method: Method::$method, route: $route, body: None$(.or(Some($body)))? };
                self.answer(endpoint, request).await
            })+
        }
    };
}

macro_rules! services {
    ($($server:ty,)+) => {
        /// The full names of the services.
        pub const NAMES: &[&str] = &[$(<$server as NamedService>::NAME),+];

        /// Every service; messages of clients are at most so many bytes long.
        pub fn routes(endpoints: &Endpoints, largest: usize) -> Router {
            let router = Router::new();
            $(let router = with(router, <$server>::new(endpoints.clone()).max_decoding_message_size(largest));)+
            router
        }
    };
}

include!("generated/rpcs.rs");
