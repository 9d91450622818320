//! `GET /`: what this is, for people who open the address in a browser.

const TEXT: &str = "\
This is the gateway of Kairo, which runs LLM agents as event-sourced services over NATS JetStream.

POST /v1/messages               say something to an agent: {user, agent?, text, message_id?, thread_id?}
POST /v1/agents                 create or change an agent: {agent, description?, prompt, tools?, max_steps?, history_limit?}
GET  /v1/agents                 every agent
GET  /v1/events                 the log: ?agent=&thread=&correlation=&after=&since=&latest=&limit=
GET  /v1/events/stream          the log as it grows, as server-sent events: ?agent=&thread=&correlation=&after=&live=
GET  /v1/conversations/{agent}  what was said: ?user=&after=&latest=&limit=
GET  /v1/threads                the threads of an agent: ?agent=
GET  /v1/actions                what an agent has asked for that has no result yet: ?agent=&in_flight=true
GET  /v1/status                 services, consumers, the log, the read model
GET  /v1/dead-letters           messages that were set aside, newest first: ?limit=
POST /v1/projections/rebuild    build the read model anew from the log
GET  /healthz, /readyz          whether the gateway lives, and whether it takes work

What is wrong with a request is answered as application/problem+json (RFC 9457).
";

pub async fn get() -> &'static str {
    TEXT
}
