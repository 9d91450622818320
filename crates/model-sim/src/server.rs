//! The HTTP server around the pure parts: sockets, time, and the state that requests share.

use std::borrow::Cow;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::body::{Body, Bytes};
use axum::extract::rejection::BytesRejection;
use axum::extract::{DefaultBodyLimit, Path, Query, State};
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::serve::ListenerExt;
use axum::{Router, serve};
use serde::Deserialize;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::Config;
use crate::answer::{ErrorReply, Reply, SimulatedAnswer};
use crate::conversation::Conversation;
use crate::counters::Counters;
use crate::delay::Delay;
use crate::delivery::{body_of_frames, pause};
use crate::form::WireForm;
use crate::matching::{self, Claim};
use crate::misbehaviour::{FAILURES, Misbehaviour};
use crate::recorder::{RecordedRequest, Recorder, RecorderLimits, page};
use crate::scenario::{Fault, Pace, Scenario};
use crate::tally::{CountedRequest, Tally};
use crate::wire::request::ChatRequest;
use crate::wire::response::{Delivery, Stamp, WireAnswer, error_body, json_bytes, models_body, to_wire_answer};

/// Time for answers under way to be sent once the server is to stop.
const DRAIN: Duration = Duration::from_secs(5);

/// Most counts of rules with `times` that are held.
const COUNTS: usize = 100_000;

const JSON: &str = "application/json";

/// A server that listens but does not answer yet.
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    router: Router,
    stopping: CancellationToken,
}

struct Simulator {
    scenario: Scenario,
    counters: Mutex<Counters>,
    recorder: Mutex<Recorder>,
    tally: Arc<Tally>,
    delay: Delay,
    misbehaviour: Misbehaviour,
    seed: u64,
    number_answers: bool,
    run: u64,
    requests: AtomicU64,
    /// Ends all waiting: delays, stalls and hangs.
    stopping: CancellationToken,
}

/// A prepared answer to a request. Owned, so that nothing is borrowed from the request while waiting.
struct PreparedAnswer {
    rule: Option<String>,
    /// The last user message.
    text: String,
    pace: Pace,
    /// The form that was drawn.
    form: Option<WireForm>,
    kind: PreparedContent,
}

enum PreparedContent {
    Hang,
    Error(ErrorReply),
    Body(WireAnswer),
}

/// Listens on the configured address.
///
/// # Errors
/// If the address cannot be listened on, or the journal not be created.
pub async fn bind(config: Config) -> io::Result<Server> {
    let failed = |what: String| move |error: io::Error| io::Error::other(format!("cannot {what}: {error}"));
    let listener = TcpListener::bind(config.listen).await.map_err(failed(format!("listen on {}", config.listen)))?;
    let tally = match &config.journal {
        Some(file) => Tally::with_journal(file).map_err(failed(format!("create {}", file.display())))?,
        None => Tally::default(),
    };
    let limits = RecorderLimits { requests: config.keep_requests, bytes: config.max_body_bytes.saturating_mul(4) };
    let stopping = CancellationToken::new();
    let simulator = Simulator {
        scenario: config.scenario,
        counters: Mutex::new(Counters::new(COUNTS)),
        recorder: Mutex::new(Recorder::new(limits)),
        tally: Arc::new(tally),
        delay: config.delay,
        misbehaviour: config.misbehaviour,
        seed: config.seed,
        number_answers: config.number_answers,
        run: since_1970().as_secs(),
        requests: AtomicU64::new(0),
        stopping: stopping.clone(),
    };
    let router = Router::new()
        .route("/v1/chat/completions", post(chat))
        .route("/as/{caller}/v1/chat/completions", post(chat))
        .route("/v1/models", get(list_models))
        .route("/as/{caller}/v1/models", get(list_models))
        .route("/v1/requests", get(list_requests))
        .route("/v1/counts", get(get_counts))
        .route("/healthz", get(|| async { "ok\n" }))
        .fallback(unknown_path)
        .layer(DefaultBodyLimit::max(config.max_body_bytes))
        .with_state(Arc::new(simulator));
    Ok(Server { address: listener.local_addr()?, listener, router, stopping })
}

impl Server {
    /// The address listened on, with the port that was found if any was asked for.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers until `shutdown` completes, then ends all delays and hangs and sends what is under
    /// way, for 5 seconds at most.
    ///
    /// # Errors
    /// None at present; the signature leaves room for accepting to fail.
    pub async fn run(self, shutdown: impl Future<Output = ()> + Send + 'static) -> io::Result<()> {
        let stopping = self.stopping.clone();
        let signal = async move {
            shutdown.await;
            stopping.cancel();
        };
        // A chunk is written when it is due: without this, it would wait for the last one's ack.
        let listener = self.listener.tap_io(|stream| drop(stream.set_nodelay(true)));
        let serving = serve(listener, self.router).with_graceful_shutdown(signal);
        tokio::select! {
            ended = serving.into_future() => ended,
            () = async { self.stopping.cancelled().await; tokio::time::sleep(DRAIN).await } => Ok(()),
        }
    }
}

async fn chat(
    State(simulator): State<Arc<Simulator>>,
    caller: Option<Path<String>>,
    request: Result<Bytes, BytesRejection>,
) -> Response {
    let request = match request {
        Ok(request) => request,
        Err(rejection) => {
            let status = rejection.status().as_u16();
            return error_response(invalid_request(status, rejection.body_text()));
        }
    };
    let number = simulator.requests.fetch_add(1, Ordering::Relaxed) + 1;
    let PreparedAnswer { rule, text, pace, form, kind } = simulator.prepare(number, &request);
    let asked = CountedRequest { number, caller: caller.map(|Path(caller)| caller), rule: rule.clone(), text, form };
    // From here on it is paid for, whatever becomes of the client.
    let open = simulator.tally.open(asked);
    simulator.record(rule, request);
    let stopping = &simulator.stopping;
    pause(pace.delay_ms.saturating_add(simulator.delay.draw(simulator.seed, number)), stopping).await;
    match kind {
        PreparedContent::Hang => {
            // Leaving drops this future: the HTTP server watches the connection meanwhile.
            stopping.cancelled().await;
            error_response(ErrorReply {
                kind: "server_error".to_owned(),
                ..invalid_request(503, "the model simulator is stopping".to_owned())
            })
        }
        PreparedContent::Error(reply) => {
            open.mark_answered();
            error_response(reply)
        }
        PreparedContent::Body(sent) => {
            let body = body_of_frames(sent.frames, sent.is_apart, pace.chunk_delay_ms, stopping.clone(), open);
            build_response((sent.status, &sent.content_type, sent.headers), body)
        }
    }
}

/// A response of these bytes. A header that is none is left out.
fn build_response((status, content_type, headers): (u16, &str, Vec<(String, String)>), body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let content_type = [("content-type".to_owned(), content_type.to_owned())];
    for (name, value) in content_type.into_iter().chain(headers) {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

async fn list_models(State(simulator): State<Arc<Simulator>>) -> Response {
    json_response(models_body(&simulator.scenario.models))
}

#[derive(Deserialize)]
struct RequestsQuery {
    limit: Option<usize>,
}

async fn list_requests(State(simulator): State<Arc<Simulator>>, Query(last): Query<RequestsQuery>) -> Response {
    let (total, requests) = lock(&simulator.recorder).last(last.limit.unwrap_or(usize::MAX));
    json_response(page(total, &requests))
}

#[derive(Deserialize)]
struct CountsQuery {
    #[serde(default)]
    texts: bool,
    #[serde(default)]
    rules: bool,
}

async fn get_counts(State(simulator): State<Arc<Simulator>>, Query(counted): Query<CountsQuery>) -> Response {
    json_response(json_bytes(&simulator.tally.page(counted.texts, counted.rules)))
}

async fn unknown_path() -> Response {
    error_response(invalid_request(
        404,
        "no such path; there are POST /v1/chat/completions and GET /v1/models, both also under /as/CALLER, \
         GET /v1/requests, GET /v1/counts and GET /healthz"
            .to_owned(),
    ))
}

impl Simulator {
    fn prepare(&self, number: u64, body: &[u8]) -> PreparedAnswer {
        let request: ChatRequest<'_> = match serde_json::from_slice(body) {
            Ok(request) => request,
            Err(reason) => {
                let text = format!("the body is not a chat completion request: {reason}");
                let kind = PreparedContent::Error(invalid_request(400, text));
                return PreparedAnswer { rule: None, text: String::new(), pace: self.scenario.pace, form: None, kind };
            }
        };
        let conversation = Conversation::from_request(&request).with_body(body);
        let mut answer = matching::answer(&self.scenario, &conversation, |claim| self.claim(claim));
        let form = self.draw(number, &answer, &conversation);
        answer.forms.extend(form);
        let options = request.stream_options.as_ref();
        let delivery = if request.stream == Some(true) {
            let include_usage = options.and_then(|options| options.include_usage) == Some(true);
            Delivery::Stream { include_usage }
        } else {
            Delivery::Whole
        };
        let kind = match &answer.reply {
            Reply::Error(reply) => PreparedContent::Error(reply.clone()),
            Reply::Message(_) if answer.fault == Some(Fault::Hang) => PreparedContent::Hang,
            Reply::Message(message) => PreparedContent::Body(to_wire_answer(
                &answer,
                message,
                &self.model(&request, number),
                self.stamp(number),
                delivery,
            )),
            Reply::Raw(raw) => match raw.to_wire_answer() {
                Ok(sent) => PreparedContent::Body(sent),
                Err(mistake) => PreparedContent::Error(invalid_request(500, mistake)),
            },
        };
        let rule = answer.rule.map(str::to_owned);
        PreparedAnswer { rule, text: conversation.user.to_owned(), pace: answer.pace, form, kind }
    }

    fn claim(&self, claim: Claim) -> bool {
        let now_ms = u64::try_from(since_1970().as_millis()).unwrap_or(u64::MAX);
        lock(&self.counters).claim(claim, now_ms)
    }

    /// The form in which this answer misbehaves, if it does. Failures of one turn are bounded.
    fn draw(&self, number: u64, answer: &SimulatedAnswer<'_>, conversation: &Conversation<'_>) -> Option<WireForm> {
        let is_plain = matches!(answer.reply, Reply::Message(_)) && answer.fault.is_none() && answer.forms.is_empty();
        let form = self.misbehaviour.draw(self.seed, number).filter(|_| is_plain)?;
        let counted_for = conversation.turn_key();
        let claim = || self.claim(Claim { rule: usize::MAX, counted_for, limit: FAILURES, within_ms: None });
        (!form.fails() || claim()).then_some(form)
    }

    /// Returns the model name for an answer; with the request's number if answers are numbered.
    fn model<'r>(&self, request: &'r ChatRequest<'_>, number: u64) -> Cow<'r, str> {
        match self.number_answers {
            true => format!("{}#{number}", request.model).into(),
            false => request.model.as_ref().into(),
        }
    }

    fn stamp(&self, number: u64) -> Stamp {
        Stamp { run: self.run, request: number, created: since_1970().as_secs() }
    }

    fn record(&self, rule: Option<String>, body: Bytes) {
        lock(&self.recorder).record(RecordedRequest { rule, body });
    }
}

fn json_response(body: Bytes) -> Response {
    ([(header::CONTENT_TYPE, JSON)], body).into_response()
}

fn error_response(reply: ErrorReply) -> Response {
    let mut response = json_response(error_body(&reply));
    *response.status_mut() = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    if let Some(seconds) = reply.retry_after {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

fn invalid_request(status: u16, message: String) -> ErrorReply {
    ErrorReply { status, message, kind: "invalid_request_error".to_owned(), code: None, retry_after: None }
}

/// Locks a mutex, poisoned or not: the data is whole between any two statements, so a panic elsewhere does not spoil
/// it.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
