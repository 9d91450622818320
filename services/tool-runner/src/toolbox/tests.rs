use jiff::Timestamp;
use serde_json::json;

use super::*;
use crate::tool::{Executor, ProgressReporter, ToolErrorKind, ToolSpec};

/// The behavior of the tool under test when it is called.
type Behavior = fn(CallContext) -> BoxFuture<'static, CallResult>;

struct Scripted(ToolSpec, Behavior);

impl Tool for Scripted {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn call(&self, _args: Value, ctx: CallContext) -> BoxFuture<'_, CallResult> {
        (self.1)(ctx)
    }
}

fn scripted(name: &str, behavior: Behavior) -> Arc<dyn Tool> {
    let spec = ToolSpec {
        name: name.to_owned(),
        description: String::new(),
        schema: json!({"type": "object", "properties": {"n": {"type": "integer"}}}),
        idempotent: false,
        timeout: Duration::from_secs(60),
        executor: Executor::ToolRunner,
        needs_approval: false,
        needs_approval_with: Vec::new(),
        acts_outside: false,
        definition: None,
    };
    Arc::new(Scripted(spec, behavior))
}

async fn toolbox(parallel: usize, behavior: Behavior) -> Toolbox {
    let config = ToolsConfig { parallel, max_result_bytes: 20, ..ToolsConfig::default() };
    let toolbox = Toolbox::start(&config, Vec::new()).await.unwrap();
    toolbox.registry.replace_tools("s", vec![scripted("s.tool", behavior)]);
    toolbox
}

fn context() -> CallContext {
    CallContext {
        user: Some("ann".to_owned()),
        action_id: "action".to_owned(),
        now: Timestamp::UNIX_EPOCH,
        begun: Timestamp::now(),
        agent: "agent".to_owned(),
        target: None,
        thread_id: String::new(),
        decision_sequence: 0,
        target_after: 0,
        cancel: CancellationToken::new(),
        progress: ProgressReporter::discard(),
        exchange: Exchange::default(),
    }
}

async fn outcome(behavior: Behavior) -> CallResult {
    let toolbox = toolbox(1, behavior).await;
    toolbox.call("s.tool", json!({}), context()).await
}

#[tokio::test]
async fn a_panic_leaves_in_doubt_what_may_have_left() {
    let error = outcome(|_| Box::pin(async { panic!("on purpose") })).await;
    assert_eq!(error.unwrap_err().kind, ToolErrorKind::InDoubt);
    // Also one before the first await.
    let error = outcome(|_| panic!("on purpose")).await;
    assert_eq!(error.unwrap_err().kind, ToolErrorKind::InDoubt);
    let error = outcome(|ctx| {
        ctx.exchange.mark_unsent();
        panic!("on purpose")
    });
    assert_eq!(error.await.unwrap_err().kind, ToolErrorKind::Failed);
}

#[tokio::test]
async fn a_result_that_is_too_large_is_in_doubt_unless_the_call_can_be_repeated() {
    let small = outcome(|_| Box::pin(async { Ok(json!("x".repeat(18))) })).await;
    assert!(small.is_ok());
    let large = outcome(|_| Box::pin(async { Ok(json!("x".repeat(19))) })).await.unwrap_err();
    assert_eq!(large.kind, ToolErrorKind::InDoubt);
    assert!(large.message.contains("xxxxxx"), "what could be read is told: {large}");
    let repeatable = bounded(Ok(json!("x".repeat(19))), 20, true).unwrap_err();
    assert_eq!(repeatable.kind, ToolErrorKind::TooLarge);
}

#[tokio::test]
async fn long_messages_are_cut_between_characters() {
    let error = outcome(|_| Box::pin(async { Err(ToolError::failed("é".repeat(9000))) })).await;
    assert_eq!(error.unwrap_err().message.chars().count(), MAX_MESSAGE_CHARS);
}

#[tokio::test]
async fn arguments_are_checked_before_the_call() {
    let toolbox = toolbox(1, |_| panic!("must not be called")).await;
    let call = toolbox.call("s.tool", json!({"n": "one"}), context());
    assert_eq!(call.await.unwrap_err().kind, ToolErrorKind::InvalidArguments);
    let call = toolbox.call("s.other", json!({}), context());
    assert_eq!(call.await.unwrap_err().kind, ToolErrorKind::NotFound);
}

/// One call, and its late answer, if one came.
async fn with_late(behavior: Behavior) -> (ToolErrorKind, Option<CallResult>) {
    let toolbox = toolbox(1, behavior).await;
    let admission = toolbox.admit(&context().holder(), "s.tool", json!({})).await.unwrap();
    let outcome = toolbox.carry_out(admission, context()).await;
    let late = match outcome.late {
        Some(late) => late.wait_for_answer().await.map(|(answer, _)| answer),
        None => None,
    };
    (outcome.result.unwrap_err().kind, late)
}

#[tokio::test(start_paused = true)]
async fn the_time_limit_holds_for_a_tool_that_ignores_it() {
    assert_eq!(with_late(|_| Box::pin(std::future::pending())).await, (ToolErrorKind::InDoubt, None));
    let nothing_sent = with_late(|ctx| {
        ctx.exchange.mark_unsent();
        Box::pin(std::future::pending())
    });
    assert_eq!(nothing_sent.await, (ToolErrorKind::TimedOut, None));
}

#[tokio::test(start_paused = true)]
async fn a_late_answer_settles_what_was_in_doubt() {
    let late = with_late(|ctx| {
        Box::pin(async move {
            let stopped = ctx.cancel.run_until_cancelled(tokio::time::sleep(Duration::from_secs(300))).await;
            stopped.map(|()| json!("paid")).ok_or_else(|| ToolError::canceled("it must not be stopped"))
        })
    });
    assert_eq!(late.await, (ToolErrorKind::InDoubt, Some(Ok(json!("paid")))));
    let as_doubtful = with_late(|_| {
        Box::pin(async {
            tokio::time::sleep(Duration::from_secs(300)).await;
            Err(ToolError::in_doubt("the connection was lost"))
        })
    });
    assert_eq!(as_doubtful.await, (ToolErrorKind::InDoubt, None));
}

#[tokio::test(start_paused = true)]
async fn what_a_stopped_tool_still_says_is_its_result_where_its_peer_says_it() {
    // It is stopped when nobody waits for its answer any more.
    let done = with_late(|ctx| {
        Box::pin(async move {
            ctx.cancel.cancelled().await;
            Ok(json!("done"))
        })
    });
    assert_eq!(done.await, (ToolErrorKind::InDoubt, Some(Ok(json!("done")))));
    let gave_up = with_late(|ctx| {
        Box::pin(async move {
            ctx.exchange.overdue().cancelled().await;
            Err(ToolError::canceled("the tool itself gave up"))
        })
    });
    assert_eq!(gave_up.await, (ToolErrorKind::InDoubt, None));
    let stopped = with_late(|ctx| {
        Box::pin(async move {
            ctx.exchange.overdue().cancelled().await;
            ctx.exchange.mark_answered();
            Err(ToolError::canceled("its peer stopped it"))
        })
    });
    assert_eq!(stopped.await, (ToolErrorKind::TimedOut, None));
}

#[tokio::test(start_paused = true)]
async fn a_canceled_call_is_canceled_where_nothing_has_left_and_else_in_doubt() {
    let toolbox = toolbox(1, |_| Box::pin(std::future::pending())).await;
    let running = context();
    let waiting = context();
    let tokens = [running.cancel.clone(), waiting.cancel.clone()];
    let calls = join_all([toolbox.call("s.tool", json!({}), running), toolbox.call("s.tool", json!({}), waiting)]);
    let cancel = async { tokens.iter().for_each(CancellationToken::cancel) };
    let (outcomes, ()) = tokio::join!(calls, cancel);
    let kinds: Vec<_> = outcomes.into_iter().map(|outcome| outcome.unwrap_err().kind).collect();
    assert_eq!(kinds, [ToolErrorKind::InDoubt, ToolErrorKind::Canceled]);
}

#[tokio::test]
async fn the_catalogue_is_watched_and_built_in_tools_win() {
    let toolbox = Toolbox::start(&ToolsConfig::default(), Vec::new()).await.unwrap();
    let mut watch = toolbox.watch();
    watch.mark_unchanged();
    let fake = scripted("tools.now", |_| panic!("must not be called"));
    toolbox.registry.replace_tools("tools", vec![fake]);
    assert!(watch.has_changed().unwrap(), "what is left out is told, too");
    watch.mark_unchanged();
    assert!(toolbox.call("tools.now", json!({}), context()).await.is_ok());
    let more = || vec![scripted("s.more", |_| panic!("must not be called"))];
    toolbox.registry.replace_tools("s", more());
    assert!(watch.has_changed().unwrap());
    assert_eq!(watch.borrow_and_update().len(), 3);
    toolbox.registry.replace_tools("s", more());
    assert!(!watch.has_changed().unwrap());
    toolbox.registry.replace_tools("s", Vec::new());
    assert_eq!(watch.borrow_and_update().len(), 2);
}

#[tokio::test]
async fn a_wrong_configuration_is_refused() {
    let config = ToolsConfig { parallel: 0, ..ToolsConfig::default() };
    assert!(matches!(
        Toolbox::start(&config, Vec::new()).await,
        Err(ToolboxError::Configuration(mistakes)) if mistakes.len() == 1
    ));
}

/// Places that one user's calls leave free serve another user's calls at once.
#[tokio::test(start_paused = true)]
async fn calls_of_one_user_leave_places_to_the_others() {
    let toolbox = Arc::new(
        toolbox(4, |ctx| {
            Box::pin(async move {
                match ctx.user.as_deref() {
                    Some("flood") => std::future::pending().await,
                    _ => Ok(json!("done")),
                }
            })
        })
        .await,
    );
    let flood: Vec<_> = (0..20)
        .map(|_| {
            let toolbox = toolbox.clone();
            let context = CallContext { user: Some("flood".to_owned()), ..context() };
            tokio::spawn(async move { toolbox.call("s.tool", json!({}), context).await })
        })
        .collect();
    tokio::task::yield_now().await;
    assert_eq!(toolbox.places.in_use(), 3);
    for _ in 0..4 {
        let called = toolbox.call("s.tool", json!({}), context());
        assert_eq!(tokio::time::timeout(Duration::from_secs(1), called).await.expect("it waits"), Ok(json!("done")));
    }
    flood.iter().for_each(tokio::task::JoinHandle::abort);
}
