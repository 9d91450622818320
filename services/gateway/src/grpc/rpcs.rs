//! The rpcs that are asked and answered once, each with the endpoint that answers it.

use axum::http::Method;
use kairo_proto::v1::*;
use tonic::{Request, Response, Status};

use super::{
    endpoints::Endpoints,
    generated::{commands_server::Commands, queries_server::Queries},
};
use crate::http::endpoints::*;

/// The service, its rpcs and their endpoints; what stands in braces is the field that fills the place.
macro_rules! rpcs {
    ($service:ident: $($rpc:ident($asked:ty) -> $answer:ty = $method:ident $route:ident,)+) => {
        #[tonic::async_trait]
        impl $service for Endpoints {
            $(async fn $rpc(&self, request: Request<$asked>) -> Result<Response<$answer>, Status> {
                self.answer(Method::$method, $route, request).await
            })+
        }
    };
}

include!("generated/rpcs.rs");
