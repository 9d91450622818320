//! Answers each rpc through its counterpart among the endpoints of the HTTP interface, within the process. So its
//! rules on keys, limits, fields, waiting and visibility hold here too, and are written once.

use std::net::SocketAddr;

use axum::{
    Router,
    body::{self, Body},
    extract::{ConnectInfo, Request},
    http::{Extensions, HeaderMap, HeaderName, Method, header},
};
use serde::{Serialize, de::DeserializeOwned};
use tonic::{Response, Status};
use tower::ServiceExt;

use super::{status::to_status, transcode};
use crate::{http::Gateway, problem::Problem};

/// The client metadata passed on to endpoints.
const HEADERS: [HeaderName; 2] = [header::AUTHORIZATION, HeaderName::from_static("traceparent")];

/// The endpoints, as those see them who ask for a client.
#[derive(Clone)]
pub struct Endpoints {
    pub gateway: Gateway,
    http: Router,
}

impl Endpoints {
    pub fn new(gateway: Gateway, http: Router) -> Self {
        Self { gateway, http }
    }

    /// Sends the request to the endpoint of this method and route, and returns its answer.
    pub async fn answer<Q: Serialize, A: DeserializeOwned>(
        &self,
        method: Method,
        route: &str,
        request: tonic::Request<Q>,
    ) -> Result<Response<A>, Status> {
        let request = translate_request(method, route, request).map_err(|problem| to_status(&problem))?;
        let Ok(answer) = self.http.clone().oneshot(request).await;
        if let Some(problem) = answer.extensions().get::<Problem>() {
            return Err(to_status(problem));
        }
        // It is in memory already.
        let body = body::to_bytes(answer.into_body(), usize::MAX).await;
        let body = body.map_err(|error| to_status(&Problem::internal(&error)))?;
        let message = serde_json::from_slice(&body).map_err(|error| to_status(&Problem::internal(&error)))?;
        Ok(Response::new(message))
    }
}

/// A client's message as a request to an endpoint, with all that tells who the client is.
pub fn translate_request<Q: Serialize>(
    method: Method,
    route: &str,
    request: tonic::Request<Q>,
) -> Result<Request, Problem> {
    let (metadata, extensions, message) = request.into_parts();
    let mut fields = transcode::request_fields(&message).map_err(|error| Problem::internal(&error))?;
    let path = transcode::fill_path(route, &mut fields);
    let (uri, body) = if method == Method::GET {
        (format!("{path}{}", transcode::to_query(&fields)), Body::empty())
    } else {
        let json = serde_json::to_vec(&fields).map_err(|error| Problem::internal(&error))?;
        (path, Body::from(json))
    };
    let built = Request::builder().method(method).uri(uri).header(header::CONTENT_TYPE, "application/json").body(body);
    let mut request = built.map_err(|_| Problem::too_large("the fields are longer than a URL may be"))?;
    copy_client_context(&mut request, &metadata.into_headers(), &extensions);
    Ok(request)
}

fn copy_client_context(request: &mut Request, headers: &HeaderMap, extensions: &Extensions) {
    for name in HEADERS {
        if let Some(value) = headers.get(&name) {
            request.headers_mut().insert(name, value.clone());
        }
    }
    if let Some(peer) = extensions.get::<ConnectInfo<SocketAddr>>() {
        request.extensions_mut().insert(*peer);
    }
}
