//! `GET /`: what this is, for people who open the address in a browser.

const TEXT: &str = "\
This is the gateway of Kairo, which runs LLM agents as event-sourced services over NATS JetStream.

POST /v1/messages               say something to an agent: {user, agent?, text, message_id?, thread_id?}
POST /v1/choices                answer what an agent put to you: {user, agent, offer_id, option, choice_id?}
POST /v1/approvals              say what became of an action in doubt: {user, agent, action_id, verdict, note?, approval_id?}
POST /v1/commands               cancel an action or a process: {user, agent, command, action_id | process_id, command_id?}
POST /v1/agents                 create or change an agent: {agent, description?, prompt, tools?, max_steps?, history_limit?, interjection?}
GET  /v1/agents                 every agent
GET  /v1/events                 the log: ?agent=&thread=&correlation=&after=&since=&latest=&limit=
GET  /v1/events/stream          the log as it grows, as server-sent events: ?agent=&thread=&correlation=&after=&live=
GET  /v1/ws                     all of this over a WebSocket: what to watch, what to say
GET  /asyncapi.yaml             what goes over that WebSocket and through NATS, as AsyncAPI 3
GET  /v1/conversations/{agent}  what was said: ?user=&after=&latest=&limit=
GET  /v1/threads                the threads of an agent: ?agent=
GET  /v1/actions                what agents have asked for that has no result yet, or is in doubt: ?agent=&in_flight=true, &in_doubt=true
GET  /v1/processes              the processes of agents, newest first: ?agent=&running=
GET  /v1/status                 services, consumers, the log, the read model
GET  /v1/dead-letters           messages that were set aside, newest first: ?limit=
POST /v1/projections/rebuild    build the read model anew from the log
GET  /healthz, /readyz          whether the gateway lives, and whether it takes work

What is wrong with a request is answered as application/problem+json (RFC 9457).
";

pub async fn get() -> &'static str {
    TEXT
}
