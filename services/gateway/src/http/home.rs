//! `GET /`: what this is. A browser is led to the console; the text is for whoever asks with a program. What it says of rpcs
//! is generated from the protos.

use axum::{
    http::{HeaderMap, header},
    response::{IntoResponse, Redirect, Response},
};

use crate::console;

const TEXT: &str = concat!(
    "\
This is the gateway of Kairo, which runs LLM agents as event-sourced services over NATS JetStream.

",
    include_str!("generated/endpoints.txt"),
    "
GET /v1/agents/{agent}/state
    What an agent knew at a place of the log, for administrators
GET /v1/agents/{agent}/requests
    What models were asked for a decision of it, made again from the log
POST /v1/agents/{agent}/replay
    Its decisions made again, with another prompt or other limits; no model is asked
POST /v1/agents/{agent}/whatif
    Which of its decisions would be others, had a message not been there or said something else
POST /v1/agents/{agent}/forks
    The agent goes on from a place of its log, apart from it, in the gateway's memory; nothing of it reaches anybody
GET /v1/forks
    Such forks that are open
GET /v1/forks/{fork}
    One of them: what it began with, and what it has used of what it may
DELETE /v1/forks/{fork}
    It ends
GET /v1/forks/{fork}/events
    What happens in it, as server-sent events, from its beginning or where a client comes back
POST /v1/forks/{fork}/messages
    Say something to it
POST /v1/forks/{fork}/answers
    What a call comes to that neither the log nor anybody has an answer to
POST /v1/forks/{fork}/approvals
    Approve or reject what it may not do by itself
POST /v1/forks/{fork}/wait
    Let time pass in it, by seconds or until its next timer
GET /v1/incidents/{agent}
    Its part of the log in one file, for kairo state, replay, whatif and incident
POST /v1/objects
    Store an image or audio, as it is, with its content-type; its digest goes into the parts of a message
GET /v1/objects/{digest}
    Such an image or audio
GET /v1/whoami
    Whom the gateway takes you for, and what you may do
GET /v1/ws
    What to watch, and what to say, over a WebSocket
POST /v1/chat/completions
    As in OpenAI's API, for chat clients: each agent is a model
GET /v1/models
GET /v1/models/{model}
    Every agent as a model
GET /openapi.json
GET /openapi.yaml
    All that goes over HTTP, as OpenAPI 3.1
GET /asyncapi.yaml
    What goes over the WebSocket and through NATS, as AsyncAPI 3
GET /console/
    What agents do, as it happens, and why: for people, with a browser
GET /healthz
GET /readyz
    Whether the gateway lives, and whether it takes work

Where an API key is required, send it as authorization: Bearer <key>; a browser's WebSocket offers the subprotocols
kairo.v1 and kairo.key.<key>, or brings a ticket. What is answered from the read model says which position of the log it
is of (Kairo-Position, position), and waits until that is at least the sequence of a command: ?at_least=&wait_ms=, or the
header Kairo-At-Least. What is wrong with a request is answered as application/problem+json (RFC 9457).
"
);

pub async fn get_home(headers: HeaderMap) -> Response {
    let vary = [(header::VARY, "accept")];
    if wants_page(&headers) {
        (vary, Redirect::to(console::PATH)).into_response()
    } else {
        (vary, TEXT).into_response()
    }
}

/// As browsers ask, which name what they show best.
fn wants_page(headers: &HeaderMap) -> bool {
    let mut accepted = headers.get_all(header::ACCEPT).into_iter().filter_map(|value| value.to_str().ok());
    accepted.any(|list| list.split([',', ';']).any(|name| name.trim().eq_ignore_ascii_case("text/html")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::access;

    #[test]
    fn browsers_are_led_to_the_console_and_programs_are_not() {
        let wants = |accepted: &str| wants_page(&HeaderMap::from_iter([(header::ACCEPT, accepted.parse().unwrap())]));
        assert!(wants("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"));
        assert!(!wants("*/*") && !wants("text/plain") && !wants_page(&HeaderMap::new()));
    }

    #[test]
    fn every_endpoint_is_told() {
        for row in access::all_endpoints() {
            let told = format!("{} {}", row.method, row.path);
            // It is what is being read.
            assert!(row.path == "/" || TEXT.lines().any(|line| line == told), "{told}");
        }
    }
}
