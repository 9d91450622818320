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
use serde_json::{Map, Value};
use tonic::{Response, Status};
use tower::ServiceExt;

use super::{status::to_status, transcode};
use crate::{http::Gateway, problem::Problem};

/// The client metadata passed on to endpoints.
const HEADERS: [HeaderName; 2] = [header::AUTHORIZATION, HeaderName::from_static("traceparent")];

/// The endpoint that answers an rpc.
#[derive(Clone, Debug)]
pub struct Endpoint {
    pub method: Method,
    /// Its path, with fields of the request in braces.
    pub route: &'static str,
    /// The field that is the body. Without it, all fields that are not in the path are the body, or the query of a GET.
    pub body: Option<&'static str>,
}

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

    /// Sends the request to the endpoint, and returns its answer.
    pub async fn answer<Q: Serialize, A: DeserializeOwned>(
        &self,
        endpoint: Endpoint,
        request: tonic::Request<Q>,
    ) -> Result<Response<A>, Status> {
        let request = translate_request(endpoint, request).map_err(|problem| to_status(&problem))?;
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
pub fn translate_request<Q: Serialize>(endpoint: Endpoint, request: tonic::Request<Q>) -> Result<Request, Problem> {
    let Endpoint { method, route, body } = endpoint;
    let (metadata, extensions, message) = request.into_parts();
    let mut fields = transcode::request_fields(&message).map_err(|error| Problem::internal(&error))?;
    let path = transcode::fill_path(route, &mut fields);
    let body = match body {
        Some(field) => Some(fields.remove(field).unwrap_or_else(|| Value::Object(Map::new()))),
        None if method == Method::GET => None,
        None => Some(Value::Object(std::mem::take(&mut fields))),
    };
    let uri = format!("{path}{}", transcode::to_query(&fields));
    let body = body.map(|body| serde_json::to_vec(&body)).transpose().map_err(|error| Problem::internal(&error))?;
    let body = body.map_or_else(Body::empty, Body::from);
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
