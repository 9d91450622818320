//! `POST /v1/tickets`: a ticket, which stands for the caller's key in one URL. Everything about them: [`crate::auth::tickets`].

use std::net::SocketAddr;

use axum::{
    Extension, Json,
    extract::{Request, State},
    http::{HeaderValue, StatusCode, Uri, header, uri::PathAndQuery},
    middleware::Next,
    response::{IntoResponse, Response},
};
use jiff::Timestamp;
use kairo_proto::{time, v1::MakeTicketResponse};
use url::form_urlencoded;

use super::{Gateway, endpoints::STREAM};
use crate::{
    auth::{
        Caller, limits,
        tickets::{TicketHold, TicketUse},
    },
    problem::Problem,
};

/// The endpoints that take tickets.
pub const WEBSOCKET: &str = "/v1/ws";
/// The field of the query in which they come.
const FIELD: &str = "ticket";

pub async fn make_ticket(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
) -> Result<Response, Problem> {
    let (ticket, expires_at) = gateway.tickets.issue(gateway.keys.ticket_identity(&caller)).await?;
    let made = MakeTicketResponse { ticket, expires_at: Some(time::message(expires_at)) };
    let mut response = (StatusCode::CREATED, Json(made)).into_response();
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

/// The ticket that a request carried.
#[derive(Clone)]
pub struct RequestTicket(pub String);

/// A ticket, and what it is shown for.
pub struct PresentedTicket {
    ticket: String,
    used: TicketUse,
}

impl PresentedTicket {
    /// Reads the ticket of a request; `None` if there is none, or a key beside it, which counts instead.
    pub fn from_request(request: &Request) -> Option<Self> {
        let RequestTicket(ticket) = request.extensions().get::<RequestTicket>()?;
        let headers = request.headers();
        if headers.contains_key(header::AUTHORIZATION) {
            return None;
        }
        let path = request.uri().path();
        let query = request.uri().query();
        let comes_back = headers.get("last-event-id").is_some_and(|id| !id.is_empty());
        let used = if path == STREAM { TicketUse::for_stream(path, query, comes_back) } else { TicketUse::Once };
        Some(Self { ticket: ticket.clone(), used })
    }

    /// Uses the ticket: who it stands for, and how its stream is kept.
    pub async fn redeem(self, gateway: &Gateway, peer: SocketAddr) -> Result<(Caller, Option<TicketHold>), Problem> {
        // Who it is of is known only when it has been looked up, which must not be had for nothing.
        gateway.limits.count_request(&limits::holder_for_peer(peer.ip())).map_err(Problem::too_many_requests)?;
        let now = Timestamp::now();
        let taken = gateway.tickets.redeem(&self.ticket, &self.used, now).await?.ok_or_else(Problem::no_valid_key)?;
        let caller =
            gateway.keys.caller_for(&taken.stands_for, &gateway.oidc, now).ok_or_else(Problem::no_valid_key)?;
        Ok((caller, taken.stay))
    }
}

/// Takes a ticket out of the URL before anybody sees that: no log, span or error can show it.
pub async fn strip_ticket(mut request: Request, next: Next) -> Response {
    if matches!(request.uri().path(), STREAM | WEBSOCKET)
        && let Some((given, uri)) = split_ticket(request.uri())
    {
        *request.uri_mut() = uri;
        request.extensions_mut().insert(given);
    }
    next.run(request).await
}

/// The ticket in a URL, and the URL without it.
fn split_ticket(uri: &Uri) -> Option<(RequestTicket, Uri)> {
    let mut tickets = Vec::new();
    // What is left stays as it is, letter by letter: a stream is known again by it.
    let is_ticket = |part: &&str| {
        let found = form_urlencoded::parse(part.as_bytes()).find(|(field, _)| field == FIELD);
        found.map(|(_, value)| value.into_owned())
    };
    let rest: Vec<&str> =
        uri.query()?.split('&').filter(|part| is_ticket(part).map(|ticket| tickets.push(ticket)).is_none()).collect();
    // Several are none that is good.
    let given = RequestTicket(tickets.first().filter(|_| tickets.len() == 1).cloned().unwrap_or_default());
    let path = if rest.is_empty() { uri.path().to_owned() } else { format!("{}?{}", uri.path(), rest.join("&")) };
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(PathAndQuery::try_from(path).ok()?);
    let uri = Uri::from_parts(parts).ok()?;
    (!tickets.is_empty()).then_some((given, uri))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_is_taken_out_of_the_url_and_nothing_else_is() {
        let read = |uri: &str| {
            let found = split_ticket(&uri.parse().unwrap());
            found.map(|(given, uri)| (given.0, uri.to_string()))
        };
        let of = |ticket: &str, uri: &str| Some((ticket.to_owned(), uri.to_owned()));
        assert_eq!(read("/v1/ws?ticket=abc"), of("abc", "/v1/ws"));
        assert_eq!(read("/v1/ws?a=%20b&ticket=abc&c=&d"), of("abc", "/v1/ws?a=%20b&c=&d"));
        assert_eq!(read("/v1/ws?tic%6bet=a%62c&x=1"), of("abc", "/v1/ws?x=1"));
        assert_eq!(read("/v1/ws?ticket=abc&ticket=def"), of("", "/v1/ws"));
        assert_eq!(read("/v1/ws?tickets=abc"), None);
        assert_eq!(read("/v1/ws"), None);
    }
}
