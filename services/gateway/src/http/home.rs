//! `GET /`: what this is, for people who open the address in a browser.

const TEXT: &str = "\
This is the gateway of Kairo, which runs LLM agents as event-sourced services over NATS JetStream.

POST /v1/messages               say something to an agent: {user, agent?, text, parts?, message_id?, thread_id?}
POST /v1/objects                store an image or audio, as it is, with its content-type; its digest goes into the parts of a message
GET  /v1/objects/{digest}       such an image or audio
POST /v1/choices                answer what an agent put to you: {user, agent, offer_id, option: accept | decline, choice_id?}
POST /v1/approvals              say yes or no to an action, or what became of one in doubt: {user, agent, action_id, verdict, note?, approval_id?}
POST /v1/commands               give a direct order: {user, agent, command, action_id | process_id | chain_id | task_id | thread_id, command_id?}
POST /v1/agents                 create or change an agent: {agent, description?, prompt, tools?, max_steps?, history_limit?, interjection?,
                                planning?, threads?, time_zone?, day_ends_at?}
GET  /v1/agents                 every agent, or so many: ?after=&limit=
GET  /v1/agents/{agent}         one of them
GET  /v1/events                 the log: ?agent=&thread=&correlation=&after=&since=&latest=&limit=
GET  /v1/events/stream          the log as it grows, as server-sent events: ?agent=&thread=&correlation=&after=&live=
GET  /v1/ws                     all of this over a WebSocket: what to watch, what to say
GET  /asyncapi.yaml             what goes over that WebSocket and through NATS, as AsyncAPI 3
GET  /openapi.json, .yaml       all that goes over HTTP, as OpenAPI 3.1
GET  /v1/conversations          who speaks with whom, and what was said last: ?agent=&user=&before=&limit=
GET  /v1/conversations/{agent}  what was said: ?user=&after=&latest=&limit=
GET  /v1/threads                threads, the one where something happened last first: ?agent=&user=&status=active|archived|all&before=&limit=
GET  /v1/threads/{thread}       what happened in a thread, and its chains: ?agent=&before=&limit=
GET  /v1/chains/{chain}         a chain and its steps
GET  /v1/tasks                  tasks, newest first: ?agent=&user=&status=&kind=scheduled|hook&before=&limit=
GET  /v1/tasks/{task}           a task, when it fired, and the chains of that
GET  /v1/inbox                  suggestions and approvals that wait for a user's answer: ?user=
GET  /v1/approvals              calls that a human was asked about, newest first: ?agent=&user=&status=waiting|approved|rejected|withdrawn|all&before=&limit=
GET  /v1/approvals/{approval}   one of them
GET  /v1/actions                what agents have asked for, newest first: ?agent=&thread=&status=open|asked|running|in_doubt|done|failed|all&before=&limit=
GET  /v1/actions/{action}       one of them, with what came of it
GET  /v1/memories               what agents remember: ?q=&agent=&user=&type=&from=&to=&scope=recent|all&limit=
GET  /v1/memories/{agent}/{memory}  one of them
GET  /v1/search                 threads, tasks and memories, misspelt words too: ?q=&in=thread,task,memory&agent=&user=&type=&status=
                                &from=&to=&facets=true&limit=&page=
GET  /v1/processes              the processes of agents, newest first: ?agent=&running=&outcome=&before=&limit=
GET  /v1/processes/{process}    one of them
GET  /v1/usage                  tokens that models took, and their cost: ?by=day,agent,user,thread,model&agent=&user=&thread=&model=&from=&to=&after=&limit=
GET  /v1/status                 services, consumers, the log, the read model
POST /v1/fleet/promote          have this version write all that it can, once no older replica is left
GET  /v1/dead-letters           messages that were set aside, newest first: ?limit=
GET  /v1/projections            the read models: how far each is, and each generation of it
POST /v1/projections/{projection}/rebuild   build another generation from the log, beside the live one; all for every one
POST /v1/projections/{projection}/swap      have a generation answer that differs from the live one
GET  /v1/projections/{projection}/digests   a digest of what is in each generation, and whether they are equal
DELETE /v1/projections/{projection}/generations/{generation}   have a generation removed that is not live
POST /v1/chat/completions       as in OpenAI's API, for chat clients: each agent is a model
GET  /v1/models, /v1/models/{model}
GET  /v1/keys                   API keys, without their secrets
POST /v1/keys                   make one, and see it once: {name, scopes: [read | write | admin], agents?, user?, expires_at?}
DELETE /v1/keys/{key}           revoke one
POST /v1/tickets                what stands for the key as ?ticket= of /v1/events/stream and /v1/ws, once, for a moment
GET  /healthz, /readyz          whether the gateway lives, and whether it takes work

Where an API key is required, send it as authorization: Bearer <key>; a browser's WebSocket offers the subprotocols
kairo.v1 and kairo.key.<key>, or brings a ticket. What is answered from the read model says which position of the log it
is of (Kairo-Position, position), and waits until that is at least the sequence of a command: ?at_least=&wait_ms=, or the
header Kairo-At-Least. What is wrong with a request is answered as application/problem+json (RFC 9457).
";

pub async fn get() -> &'static str {
    TEXT
}
