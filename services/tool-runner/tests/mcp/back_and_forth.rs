//! Tests of requests that a server sends to the client during a call: answers of people, roots, and calls as tasks.

use std::sync::Arc;

use kairo_tool_runner::mcp::PeopleAccess;
use kairo_tool_runner::questions::{AnswerRefusal, QuestionKind, Questions, UserAnswer, UserQuestion};
use kairo_tool_runner::tool::{CallContext, CallResult, ProgressReporter, ToolErrorKind};
use kairo_tool_runner::toolbox::Toolbox;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::support::{Processes, call, config, context, everything, first, within_deadline};

const LONG: std::time::Duration = std::time::Duration::from_secs(600);
const ASK: &str = "all.trigger-elicitation-request";

struct Desk {
    toolbox: Toolbox,
    questions: Arc<Questions>,
    processes: Processes,
}

impl Desk {
    async fn start() -> Self {
        let processes = Processes::new();
        let questions = Questions::new(LONG, || (uuid::Uuid::now_v7(), jiff::Timestamp::now()));
        let people = PeopleAccess { questions: Some(questions.clone()), ..PeopleAccess::default() };
        let mut server = processes.mark(everything("all"));
        server.roots = vec!["/srv/notes".into()];
        let config = config(vec![server]);
        let toolbox = within_deadline(Toolbox::start_with(&config, Vec::new(), people)).await.unwrap();
        Self { toolbox, questions, processes }
    }

    /// Calls the tool that asks, as ann, and has somebody do something once the question is there.
    async fn ask<F: Future<Output = ()>>(&self, then: impl FnOnce(UserQuestion, CallContext) -> F) -> CallResult {
        let (ctx, mut progress) = ann();
        let calling = self.toolbox.call(ASK, json!({}), ctx.clone());
        let answering = async {
            first(&mut progress).await;
            let mut open = self.questions.open_for_user("ann");
            then(open.pop().unwrap(), ctx).await;
        };
        let (outcome, ()) = within_deadline(async { tokio::join!(calling, answering) }).await;
        assert_eq!(self.questions.open_for_user("ann"), []);
        outcome
    }

    async fn stop(self) {
        within_deadline(self.toolbox.stop()).await;
        self.processes.assert_gone();
    }
}

fn ann() -> (CallContext, watch::Receiver<Option<kairo_tool_runner::tool::ProgressReport>>) {
    let (progress, reports) = ProgressReporter::channel();
    (CallContext { user: Some("ann".to_owned()), progress, ..context() }, reports)
}

fn text(outcome: &CallResult) -> String {
    outcome.as_ref().unwrap().to_string()
}

#[tokio::test]
async fn a_user_answers_what_a_server_asks() {
    let desk = Desk::start().await;
    let accepted = desk.ask(async |question, _| {
        assert_eq!((question.subject.agent.as_str(), question.subject.server.as_str()), ("tester", "all"));
        assert!(
            matches!(&question.kind, QuestionKind::Form(schema) if schema["properties"]["name"]["type"] == "string")
        );
        // Nobody answers in another's place, and what does not fit leaves the question open.
        let answer =
            |user: &str, content: Value| desk.questions.accept_answer(question.id, user, UserAnswer::Accept(content));
        assert_eq!(desk.questions.open_for_user("bob"), []);
        assert_eq!(answer("bob", json!({"name": "Bob"})), Err(AnswerRefusal::Unknown));
        for unfit in [json!({"integer": 1000}), json!({"email": "nowhere"}), json!({"pin": 1})] {
            assert!(matches!(answer("ann", unfit.clone()), Err(AnswerRefusal::Unfit(_))), "{unfit}");
        }
        assert_eq!(answer("ann", json!({"name": "Ann Lee"})), Ok(()));
        assert_eq!(answer("ann", json!({})), Err(AnswerRefusal::Unknown));
    });
    let accepted = text(&accepted.await);
    // With the defaults of what was left out.
    assert!(accepted.contains("Ann Lee") && accepted.contains("dark and stormy"), "{accepted}");

    let declined =
        desk.ask(async |question, _| desk.questions.accept_answer(question.id, "ann", UserAnswer::Decline).unwrap());
    let declined = text(&declined.await);
    assert!(declined.to_lowercase().contains("decline"), "{declined}");
    desk.stop().await;
}

#[tokio::test]
async fn a_question_ends_with_its_call_and_is_not_put_on_nobodys_behalf() {
    let desk = Desk::start().await;
    let canceled = desk.ask(async |_, ctx| ctx.cancel.cancel());
    // The server hears that its question is canceled, and says what came of the call, unless it takes longer than the grace.
    match canceled.await {
        Ok(said) => assert!(said.to_string().to_lowercase().contains("cancel"), "{said}"),
        Err(error) => assert_eq!(error.kind, ToolErrorKind::InDoubt, "{error}"),
    }
    let nobodys = call(&desk.toolbox, ASK, json!({})).await;
    assert!(text(&nobodys).to_lowercase().contains("decline"), "{nobodys:?}");
    desk.stop().await;
}

#[tokio::test]
async fn a_server_is_told_its_roots() {
    let desk = Desk::start().await;
    let told = call(&desk.toolbox, "all.get-roots-list", json!({})).await;
    assert!(text(&told).contains("file:///srv/notes"), "{told:?}");
    desk.stop().await;
}

#[tokio::test]
async fn a_tool_that_is_called_as_a_task_only_is_called_so() {
    let desk = Desk::start().await;
    let args = json!({"topic": "tea", "ambiguous": false});
    let (ctx, _reports) = ann();
    let researched = within_deadline(desk.toolbox.call("all.simulate-research-query", args, ctx)).await;
    assert!(text(&researched).contains("tea"), "{researched:?}");
    desk.stop().await;
}
