//! tool-runner: carries out what decisions ask for, once, and says how it ended.
//!
//! A decision comes in ([`runner`]); the pure part ([`plan`]) says for each action whether it may begin; it is entered
//! in the ledger, done ([`toolbox`]: the built-in tools of [`builtin`], those of MCP servers, [`mcp`],
//! requests to web APIs, [`web_api`], and those of workers, [`workers`]), and its end
//! is written ([`results`]). Process tools are handed over to the process supervisor, whose word on how they ended
//! becomes the result ([`processes`]). Some tools are about other calls and about processes: [`control`]. How far a call
//! says it is, [`progress`] tells. Mail that comes in becomes an event ([`arrivals`]), also that of a mailbox on an IMAP
//! server ([`imap`]). What there is to call is published as one catalogue ([`published_catalogue`]).

mod address;
pub mod allow_list;
mod approval_check;
pub mod approval_rules;
mod arrivals;
mod attachments;
pub mod builtin;
mod canonical_json;
pub mod catalogue;
pub mod config;
mod control;
pub mod custom;
mod imap;
mod invoke_record;
pub mod late_answers;
pub mod mcp;
pub mod outcome;
mod person_wait;
pub mod pins;
pub mod plan;
mod processes;
mod progress;
mod published_catalogue;
pub mod questions;
mod redaction;
mod registry;
mod results;
mod runner;
mod sources;
pub mod tool;
pub mod tool_name;
mod tool_servers;
pub mod toolbox;
mod web;
pub mod web_api;
pub mod workers;

use std::{sync::Arc, time::Duration};

use kairo_core::{
    bus::{
        consume::consume, dead_letter_retry::DeadLetterRetrier, epoch::EpochInForce, ledger::Ledger,
        liveness::ActionLiveness, orders::OrderFollower,
    },
    metrics::table::IN_DOUBT,
    service::{ServiceContext, ServiceError, retry_until_nats},
    subjects::{Consumer, TOOL_INVOKE},
};

use kairo_proto::v1::tool_order;
use tokio_util::task::AbortOnDropHandle;

use builtin::memory::MemorySearch;
pub use config::Config;
pub use control::CANCELING;
use tool::Tool;

/// Runs until told to stop.
pub async fn run(config: Config, context: ServiceContext) -> Result<(), ServiceError> {
    run_with(config, context, Vec::new()).await
}

/// Runs with `further` tools, which are treated as built-in ones.
pub async fn run_with(
    config: Config,
    context: ServiceContext,
    further: Vec<Arc<dyn Tool>>,
) -> Result<(), ServiceError> {
    start(config, context, Offer::Further(further)).await
}

/// Runs with these tools alone, whatever their names: nothing is built in, no server or worker is asked, and no mail is
/// fetched. The tools are not published, either: the caller knows that agents were told of them. A tool named
/// [`CANCELING`] is replaced by the real one, which stops calls of the others.
pub async fn run_only(config: Config, context: ServiceContext, only: Vec<Arc<dyn Tool>>) -> Result<(), ServiceError> {
    start(config, context, Offer::Only(only)).await
}

/// The tools to offer: these besides the built-in ones, or only these.
enum Offer {
    Further(Vec<Arc<dyn Tool>>),
    Only(Vec<Arc<dyn Tool>>),
}

async fn start(config: Config, context: ServiceContext, offer: Offer) -> Result<(), ServiceError> {
    let ServiceContext { bus, shutdown, readiness } = context;
    let tools = &config.tool_runner;
    let is_whole = matches!(offer, Offer::Only(_));
    let invocations = Arc::new(Ledger::new(&bus, &TOOL_INVOKE));
    let results = Arc::new(results::Results::new(&bus));
    // Others may ask about an action until it has ended, hence longer than until shutdown.
    let liveness = ActionLiveness::start_answering(&bus, tokio_util::sync::CancellationToken::new()).await?;
    let from_now_on = retry_until_nats(&bus, &shutdown, async || OrderFollower::from_now_on(&bus).await);
    let Some(orders) = from_now_on.await? else { return Ok(()) };
    let held = liveness.clone();
    let following = orders.follow(move |order| {
        if let (Some(tool_order::Order::Stop(_)), Ok(action)) = (&order.body.order, order.body.action_id.parse()) {
            held.stop_here(action);
        }
    });
    // Like questions, for longer than until shutdown.
    let _following = AbortOnDropHandle::new(bus.spawn(following));
    let control = control::Control::new(&bus, invocations.clone(), results.clone(), liveness.clone(), tools);
    let other = |error: &dyn std::fmt::Display| ServiceError::Other(error.to_string());
    let questions = {
        let bus = bus.clone();
        questions::Questions::new(Duration::from_millis(tools.question_timeout_ms), move || (bus.new_id(), bus.now()))
    };
    let toolbox = match offer {
        Offer::Further(further) => {
            let memory =
                MemorySearch::new(&config.postgres, tools, bus.log_identity()?.id).map_err(|error| other(&error))?;
            let memory: Arc<dyn Tool> = Arc::new(memory);
            let more = control.tools().into_iter().chain([memory]).chain(further).collect();
            let vault = Arc::new(mcp::oauth::BucketVault::new(&bus));
            let people = mcp::PeopleAccess { vault, questions: Some(questions.clone()) };
            toolbox::Toolbox::start_with(tools, more, people).await.map_err(|error| other(&error))?
        }
        Offer::Only(mut only) => {
            if let Some(canceling) = only.iter_mut().find(|tool| tool.spec().name == CANCELING) {
                *canceling = control.into_cancel_tool();
            }
            toolbox::Toolbox::only(tools, only)
        }
    };
    let toolbox = Arc::new(toolbox);
    toolbox.observe(&bus.metrics);
    bus.metrics.init_counter(&IN_DOUBT);
    let catalogue = published_catalogue::PublishedCatalogue::new(
        &bus,
        toolbox.clone(),
        is_whole,
        tools.catalogue_limits(),
        (tools.approval_rules(), sources::Sources::of(tools)),
        readiness.clone(),
        shutdown.clone(),
    );
    let catalogue = Arc::new(catalogue);
    let presence = workers::Presence::default();
    let servers = tool_servers::ToolServers::new(&bus, tools, &toolbox, &catalogue, presence.clone());
    let told = servers.clone();
    readiness.tool_servers.set_source(move || told.rows());
    let workers = retry_until_nats(&bus, &shutdown, async || {
        workers::Attendance::begin(&bus, tools, toolbox.clone(), catalogue.clone(), presence.clone()).await
    });
    let Some(workers) = workers.await? else { return Ok(()) };
    let sign_ins = retry_until_nats(&bus, &shutdown, async || {
        let sign_ins = mcp::oauth::SignInResponder::start(&bus, toolbox.sign_ins().collect()).await?;
        Ok((sign_ins, questions::QuestionResponder::begin(&bus, questions.clone()).await?))
    });
    let Some(to_people) = sign_ins.await? else { return Ok(()) };
    let publishing = async || if is_whole { catalogue.assemble_unpublished().await } else { catalogue.publish().await };
    if retry_until_nats(&bus, &shutdown, publishing).await?.is_none() {
        return Ok(());
    }
    let keep_published = async {
        if !is_whole {
            catalogue.keep_published(shutdown.clone()).await;
        }
    };
    let stop = shutdown.clone();
    let consents =
        approval_check::ApprovalChecker::new(&bus, catalogue.clone(), EpochInForce::follow(&bus, shutdown.clone())?);
    let runner = runner::Runner::new(&bus, toolbox.clone(), invocations, results.clone(), liveness, consents, stop);
    readiness.announce_ready("");
    let runner = Arc::new(runner);
    let processes = Arc::new(processes::Processes { results });
    let retries = DeadLetterRetrier::new(&bus)
        .with_handler(Consumer::ToolRunner, runner.clone())
        .with_handler(Consumer::ToolRunnerProcesses, processes.clone());
    tokio::join!(
        consume(&bus, Consumer::ToolRunner, runner, shutdown.clone()),
        consume(&bus, Consumer::ToolRunnerProcesses, processes, shutdown.clone()),
        consume(&bus, Consumer::ToolRunnerRetries, Arc::new(retries), shutdown.clone()),
        keep_published,
        arrivals::watch(&bus, tools, &shutdown),
        imap::fetch(tools, &shutdown),
        workers.keep_listening(shutdown.clone()),
        servers.note_changes(shutdown.clone()),
    );
    drop((catalogue, to_people));
    if let Some(toolbox) = Arc::into_inner(toolbox) {
        toolbox.stop().await;
    }
    Ok(())
}
