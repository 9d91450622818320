// @generated from the options of fields.

impl Personal for v1::SubmoduleFailed {
    fn personal(&mut self, visit: &mut dyn FnMut(Value<'_>)) {
        visit(Value::Text(&mut self.message));
    }
}

impl Personal for v1::SubmoduleAsked {
    fn personal(&mut self, visit: &mut dyn FnMut(Value<'_>)) {
        visit(Value::Text(&mut self.question));
    }
}

impl Personal for v1::ProcessSpawned {
    fn personal(&mut self, visit: &mut dyn FnMut(Value<'_>)) {
        self.arguments.iter_mut().for_each(|it| visit(Value::Text(it)));
    }
}

impl Personal for v1::ProcessProgress {
    fn personal(&mut self, visit: &mut dyn FnMut(Value<'_>)) {
        visit(Value::Text(&mut self.message));
        visit(Value::Text(&mut self.tail));
    }
}

impl Personal for v1::ProcessReply {
    fn personal(&mut self, visit: &mut dyn FnMut(Value<'_>)) {
        visit(Value::Text(&mut self.reason));
    }
}

impl Personal for v1::ProcessExited {
    fn personal(&mut self, visit: &mut dyn FnMut(Value<'_>)) {
        visit(Value::Text(&mut self.reason));
        visit(Value::Text(&mut self.stdout_tail));
        visit(Value::Text(&mut self.stderr_tail));
    }
}

impl Personal for v1::ProcessWrite {
    fn personal(&mut self, visit: &mut dyn FnMut(Value<'_>)) {
        visit(Value::Text(&mut self.text));
    }
}

impl Personal for v1::UserMessage {
    fn personal(&mut self, visit: &mut dyn FnMut(Value<'_>)) {
        visit(Value::Text(&mut self.text));
        self.parts.iter_mut().for_each(|it| it.personal(visit));
        visit(Value::Text(&mut self.environment));
        visit(Value::Text(&mut self.state));
        self.chat.iter_mut().for_each(|it| it.personal(visit));
    }
}

impl Personal for v1::ChatRequest {
    fn personal(&mut self, visit: &mut dyn FnMut(Value<'_>)) {
        visit(Value::Text(&mut self.instructions));
        self.history.iter_mut().for_each(|it| it.personal(visit));
        visit(Value::Text(&mut self.tools));
        visit(Value::Text(&mut self.response_format));
        self.results.iter_mut().for_each(|it| it.personal(visit));
        visit(Value::Text(&mut self.digest));
        visit(Value::Text(&mut self.conversation));
    }
}

impl Personal for v1::ChatMessage {
    fn personal(&mut self, visit: &mut dyn FnMut(Value<'_>)) {
        visit(Value::Text(&mut self.text));
        self.calls.iter_mut().for_each(|it| it.personal(visit));
    }
}

impl Personal for v1::ChatToolCall {
    fn personal(&mut self, visit: &mut dyn FnMut(Value<'_>)) {
        visit(Value::Text(&mut self.arguments));
    }
}

impl Personal for v1::ChatToolResult {
    fn personal(&mut self, visit: &mut dyn FnMut(Value<'_>)) {
        visit(Value::Text(&mut self.text));
    }
}

impl Personal for v1::Part {
    fn personal(&mut self, visit: &mut dyn FnMut(Value<'_>)) {
        visit(Value::Text(&mut self.digest));
        visit(Value::Text(&mut self.name));
    }
}

impl Personal for v1::UserMessageUndelivered {
    fn personal(&mut self, visit: &mut dyn FnMut(Value<'_>)) {
        visit(Value::Text(&mut self.reason));
    }
}

impl Personal for v1::UserApproval {
    fn personal(&mut self, visit: &mut dyn FnMut(Value<'_>)) {
        visit(Value::Text(&mut self.note));
        visit(Value::Text(&mut self.arguments));
    }
}

impl Personal for v1::UserCommand {
    fn personal(&mut self, visit: &mut dyn FnMut(Value<'_>)) {
        self.task.iter_mut().for_each(|it| it.personal(visit));
    }
}

impl Personal for v1::QueuedTask {
    fn personal(&mut self, visit: &mut dyn FnMut(Value<'_>)) {
        visit(Value::Text(&mut self.text));
        visit(Value::Text(&mut self.title));
    }
}

impl Personal for v1::ToolInvoke {
    fn personal(&mut self, visit: &mut dyn FnMut(Value<'_>)) {
        self.actions.iter_mut().for_each(|it| it.personal(visit));
    }
}

impl Personal for v1::ToolInvocation {
    fn personal(&mut self, visit: &mut dyn FnMut(Value<'_>)) {
        visit(Value::Text(&mut self.arguments));
    }
}

impl Personal for v1::ToolOrder {
    fn personal(&mut self, visit: &mut dyn FnMut(Value<'_>)) {
        match &mut self.order {
            Some(v1::tool_order::Order::Write(it)) => it.personal(visit),
            _ => {}
        }
    }
}

impl Personal for v1::ToolProgress {
    fn personal(&mut self, visit: &mut dyn FnMut(Value<'_>)) {
        visit(Value::Text(&mut self.message));
        self.outside.iter_mut().for_each(|it| visit(Value::Text(it)));
        self.question.iter_mut().for_each(|it| it.personal(visit));
    }
}

impl Personal for v1::ToolQuestion {
    fn personal(&mut self, visit: &mut dyn FnMut(Value<'_>)) {
        visit(Value::Text(&mut self.message));
        visit(Value::Text(&mut self.schema));
        visit(Value::Text(&mut self.url));
    }
}

impl Personal for v1::ToolResult {
    fn personal(&mut self, visit: &mut dyn FnMut(Value<'_>)) {
        visit(Value::Text(&mut self.result));
        self.error.iter_mut().for_each(|it| it.personal(visit));
        self.outside.iter_mut().for_each(|it| visit(Value::Text(it)));
        self.parts.iter_mut().for_each(|it| it.personal(visit));
    }
}

impl Personal for v1::ToolError {
    fn personal(&mut self, visit: &mut dyn FnMut(Value<'_>)) {
        visit(Value::Text(&mut self.message));
    }
}

impl Personal for v1::AgentRequest {
    fn personal(&mut self, visit: &mut dyn FnMut(Value<'_>)) {
        visit(Value::Text(&mut self.title));
        visit(Value::Text(&mut self.text));
        self.outside.iter_mut().for_each(|it| visit(Value::Text(it)));
        visit(Value::Text(&mut self.arguments));
    }
}

impl Personal for v1::AgentAnswer {
    fn personal(&mut self, visit: &mut dyn FnMut(Value<'_>)) {
        visit(Value::Text(&mut self.result));
        visit(Value::Text(&mut self.reason));
        self.outside.iter_mut().for_each(|it| visit(Value::Text(it)));
        self.error.iter_mut().for_each(|it| it.personal(visit));
    }
}

impl Personal for v1::AgentMessage {
    fn personal(&mut self, visit: &mut dyn FnMut(Value<'_>)) {
        visit(Value::Text(&mut self.text));
        self.parts.iter_mut().for_each(|it| it.personal(visit));
        visit(Value::Text(&mut self.environment));
        visit(Value::Text(&mut self.state));
        self.chat.iter_mut().for_each(|it| it.personal(visit));
    }
}

impl Personal for v1::AgentImported {
    fn personal(&mut self, visit: &mut dyn FnMut(Value<'_>)) {
        self.threads.iter_mut().for_each(|it| it.personal(visit));
        self.messages.iter_mut().for_each(|it| it.personal(visit));
        self.outside.iter_mut().for_each(|it| visit(Value::Text(it)));
    }
}

impl Personal for v1::ImportedThread {
    fn personal(&mut self, visit: &mut dyn FnMut(Value<'_>)) {
        visit(Value::Text(&mut self.title));
        visit(Value::Text(&mut self.summary));
    }
}

impl Personal for v1::ImportedMessage {
    fn personal(&mut self, visit: &mut dyn FnMut(Value<'_>)) {
        visit(Value::Text(&mut self.text));
        self.parts.iter_mut().for_each(|it| it.personal(visit));
    }
}

impl Personal for v1::AgentApproval {
    fn personal(&mut self, visit: &mut dyn FnMut(Value<'_>)) {
        visit(Value::Text(&mut self.note));
        visit(Value::Text(&mut self.arguments));
    }
}

impl Personal for v1::AgentCommand {
    fn personal(&mut self, visit: &mut dyn FnMut(Value<'_>)) {
        self.task.iter_mut().for_each(|it| it.personal(visit));
    }
}

impl Personal for v1::AgentDecision {
    fn personal(&mut self, visit: &mut dyn FnMut(Value<'_>)) {
        self.events.iter_mut().for_each(|it| it.personal(visit));
        self.completions.iter_mut().for_each(|it| it.personal(visit));
    }
}

impl Personal for v1::DecidedEvent {
    fn personal(&mut self, visit: &mut dyn FnMut(Value<'_>)) {
        match &mut self.event {
            Some(v1::decided_event::Event::Thought(it)) => it.personal(visit),
            Some(v1::decided_event::Event::Action(it)) => it.personal(visit),
            Some(v1::decided_event::Event::Failed(it)) => it.personal(visit),
            Some(v1::decided_event::Event::ThreadCreated(it)) => it.personal(visit),
            Some(v1::decided_event::Event::ThreadMatched(it)) => it.personal(visit),
            Some(v1::decided_event::Event::ThreadSuggested(it)) => it.personal(visit),
            Some(v1::decided_event::Event::ThreadSummarized(it)) => it.personal(visit),
            Some(v1::decided_event::Event::ChainStarted(it)) => it.personal(visit),
            Some(v1::decided_event::Event::ChainStepEnded(it)) => it.personal(visit),
            Some(v1::decided_event::Event::ChainEnded(it)) => it.personal(visit),
            Some(v1::decided_event::Event::ApprovalRequested(it)) => it.personal(visit),
            Some(v1::decided_event::Event::TaskScheduled(it)) => it.personal(visit),
            Some(v1::decided_event::Event::TaskFired(it)) => it.personal(visit),
            Some(v1::decided_event::Event::TaskChanged(it)) => it.personal(visit),
            Some(v1::decided_event::Event::MemoryAppended(it)) => it.personal(visit),
            Some(v1::decided_event::Event::TaskEnded(it)) => it.personal(visit),
            Some(v1::decided_event::Event::Briefed(it)) => it.personal(visit),
            Some(v1::decided_event::Event::ThreadCompacted(it)) => it.personal(visit),
            Some(v1::decided_event::Event::Goal(it)) => it.personal(visit),
            Some(v1::decided_event::Event::Reflected(it)) => it.personal(visit),
            Some(v1::decided_event::Event::StateWritten(it)) => it.personal(visit),
            Some(v1::decided_event::Event::StateDeleted(it)) => it.personal(visit),
            Some(v1::decided_event::Event::Answered(it)) => it.personal(visit),
            Some(v1::decided_event::Event::SubmoduleFailed(it)) => it.personal(visit),
            Some(v1::decided_event::Event::SubmoduleAsked(it)) => it.personal(visit),
            _ => {}
        }
    }
}

impl Personal for v1::AgentThought {
    fn personal(&mut self, visit: &mut dyn FnMut(Value<'_>)) {
        visit(Value::Text(&mut self.text));
        self.outside.iter_mut().for_each(|it| visit(Value::Text(it)));
    }
}

impl Personal for v1::AgentAction {
    fn personal(&mut self, visit: &mut dyn FnMut(Value<'_>)) {
        match &mut self.action {
            Some(v1::agent_action::Action::Say(it)) => it.personal(visit),
            Some(v1::agent_action::Action::ToolCall(it)) => it.personal(visit),
            Some(v1::agent_action::Action::Ask(it)) => it.personal(visit),
            _ => {}
        }
    }
}

impl Personal for v1::Ask {
    fn personal(&mut self, visit: &mut dyn FnMut(Value<'_>)) {
        visit(Value::Text(&mut self.title));
        visit(Value::Text(&mut self.text));
        self.outside.iter_mut().for_each(|it| visit(Value::Text(it)));
        visit(Value::Text(&mut self.arguments));
    }
}

impl Personal for v1::Say {
    fn personal(&mut self, visit: &mut dyn FnMut(Value<'_>)) {
        visit(Value::Text(&mut self.text));
        self.client_calls.iter_mut().for_each(|it| it.personal(visit));
        visit(Value::Text(&mut self.passed_back));
    }
}

impl Personal for v1::ToolCall {
    fn personal(&mut self, visit: &mut dyn FnMut(Value<'_>)) {
        visit(Value::Text(&mut self.arguments));
        visit(Value::Text(&mut self.reasoning_details));
        visit(Value::Text(&mut self.passed_back));
        visit(Value::Text(&mut self.answer_passed_back));
    }
}

impl Personal for v1::AgentBriefed {
    fn personal(&mut self, visit: &mut dyn FnMut(Value<'_>)) {
        visit(Value::Text(&mut self.reason));
        visit(Value::Text(&mut self.summary));
    }
}

impl Personal for v1::AgentGoal {
    fn personal(&mut self, visit: &mut dyn FnMut(Value<'_>)) {
        visit(Value::Text(&mut self.text));
    }
}

impl Personal for v1::AgentReflected {
    fn personal(&mut self, visit: &mut dyn FnMut(Value<'_>)) {
        visit(Value::Text(&mut self.reason));
        visit(Value::Text(&mut self.draft));
    }
}

impl Personal for v1::AgentAnswered {
    fn personal(&mut self, visit: &mut dyn FnMut(Value<'_>)) {
        visit(Value::Text(&mut self.result));
        visit(Value::Text(&mut self.reason));
        self.error.iter_mut().for_each(|it| it.personal(visit));
        self.answer.iter_mut().for_each(|it| it.personal(visit));
    }
}

impl Personal for v1::AgentFailed {
    fn personal(&mut self, visit: &mut dyn FnMut(Value<'_>)) {
        visit(Value::Text(&mut self.message));
    }
}

impl Personal for v1::ThreadCreated {
    fn personal(&mut self, visit: &mut dyn FnMut(Value<'_>)) {
        visit(Value::Text(&mut self.title));
    }
}

impl Personal for v1::ThreadMatched {
    fn personal(&mut self, visit: &mut dyn FnMut(Value<'_>)) {
        visit(Value::Text(&mut self.reason));
    }
}

impl Personal for v1::ThreadSuggested {
    fn personal(&mut self, visit: &mut dyn FnMut(Value<'_>)) {
        visit(Value::Text(&mut self.reason));
        visit(Value::Text(&mut self.summary));
    }
}

impl Personal for v1::ThreadSummarized {
    fn personal(&mut self, visit: &mut dyn FnMut(Value<'_>)) {
        visit(Value::Text(&mut self.title));
        visit(Value::Text(&mut self.summary));
    }
}

impl Personal for v1::ThreadCompacted {
    fn personal(&mut self, visit: &mut dyn FnMut(Value<'_>)) {
        visit(Value::Text(&mut self.summary));
    }
}

impl Personal for v1::ChainStarted {
    fn personal(&mut self, visit: &mut dyn FnMut(Value<'_>)) {
        visit(Value::Text(&mut self.plan));
        self.steps.iter_mut().for_each(|it| it.personal(visit));
        visit(Value::Text(&mut self.passed_back));
    }
}

impl Personal for v1::ChainStep {
    fn personal(&mut self, visit: &mut dyn FnMut(Value<'_>)) {
        visit(Value::Text(&mut self.params));
        visit(Value::Text(&mut self.decide));
        visit(Value::Text(&mut self.passed_back));
    }
}

impl Personal for v1::ChainStepEnded {
    fn personal(&mut self, visit: &mut dyn FnMut(Value<'_>)) {
        visit(Value::Text(&mut self.result));
        visit(Value::Text(&mut self.reason));
        visit(Value::Text(&mut self.params));
        self.outside.iter_mut().for_each(|it| visit(Value::Text(it)));
    }
}

impl Personal for v1::ChainEnded {
    fn personal(&mut self, visit: &mut dyn FnMut(Value<'_>)) {
        visit(Value::Text(&mut self.reason));
    }
}

impl Personal for v1::ApprovalRequested {
    fn personal(&mut self, visit: &mut dyn FnMut(Value<'_>)) {
        visit(Value::Text(&mut self.arguments));
        self.outside.iter_mut().for_each(|it| visit(Value::Text(it)));
    }
}

impl Personal for v1::TaskScheduled {
    fn personal(&mut self, visit: &mut dyn FnMut(Value<'_>)) {
        self.task.iter_mut().for_each(|it| it.personal(visit));
    }
}

impl Personal for v1::Task {
    fn personal(&mut self, visit: &mut dyn FnMut(Value<'_>)) {
        visit(Value::Text(&mut self.title));
        visit(Value::Text(&mut self.action));
        visit(Value::Text(&mut self.condition));
        self.outside.iter_mut().for_each(|it| visit(Value::Text(it)));
        visit(Value::Text(&mut self.text));
    }
}

impl Personal for v1::TaskEnded {
    fn personal(&mut self, visit: &mut dyn FnMut(Value<'_>)) {
        visit(Value::Text(&mut self.result));
        visit(Value::Text(&mut self.reason));
        self.answer.iter_mut().for_each(|it| it.personal(visit));
    }
}

impl Personal for v1::TaskAnswer {
    fn personal(&mut self, visit: &mut dyn FnMut(Value<'_>)) {
        self.outside.iter_mut().for_each(|it| visit(Value::Text(it)));
    }
}

impl Personal for v1::TaskFired {
    fn personal(&mut self, visit: &mut dyn FnMut(Value<'_>)) {
        visit(Value::Text(&mut self.data));
        self.outside.iter_mut().for_each(|it| visit(Value::Text(it)));
    }
}

impl Personal for v1::TaskChanged {
    fn personal(&mut self, visit: &mut dyn FnMut(Value<'_>)) {
        visit(Value::Text(&mut self.reason));
    }
}

impl Personal for v1::MemoryAppended {
    fn personal(&mut self, visit: &mut dyn FnMut(Value<'_>)) {
        visit(Value::Text(&mut self.subject));
        visit(Value::Text(&mut self.content));
        self.keywords.iter_mut().for_each(|it| visit(Value::Text(it)));
        self.secrets.iter_mut().for_each(|it| it.personal(visit));
        self.outside.iter_mut().for_each(|it| visit(Value::Text(it)));
    }
}

impl Personal for v1::StateWritten {
    fn personal(&mut self, visit: &mut dyn FnMut(Value<'_>)) {
        visit(Value::Text(&mut self.key));
        visit(Value::Text(&mut self.content));
        self.related_keys.iter_mut().for_each(|it| visit(Value::Text(it)));
        self.outside.iter_mut().for_each(|it| visit(Value::Text(it)));
        self.secrets.iter_mut().for_each(|it| it.personal(visit));
    }
}

impl Personal for v1::StateDeleted {
    fn personal(&mut self, visit: &mut dyn FnMut(Value<'_>)) {
        visit(Value::Text(&mut self.key));
    }
}

impl Personal for v1::SealedSecret {
    fn personal(&mut self, visit: &mut dyn FnMut(Value<'_>)) {
        visit(Value::Bytes(&mut self.sealed));
    }
}

impl Personal for v1::Completion {
    fn personal(&mut self, visit: &mut dyn FnMut(Value<'_>)) {
        visit(Value::Text(&mut self.text));
        visit(Value::Text(&mut self.reasoning));
        self.tool_calls.iter_mut().for_each(|it| it.personal(visit));
        self.error.iter_mut().for_each(|it| it.personal(visit));
        visit(Value::Text(&mut self.passed_back));
        visit(Value::Text(&mut self.reasoning_details));
    }
}

impl Personal for v1::CompletionToolCall {
    fn personal(&mut self, visit: &mut dyn FnMut(Value<'_>)) {
        visit(Value::Text(&mut self.arguments));
        visit(Value::Text(&mut self.passed_back));
    }
}

impl Personal for v1::CompletionError {
    fn personal(&mut self, visit: &mut dyn FnMut(Value<'_>)) {
        visit(Value::Text(&mut self.message));
    }
}

impl Personal for v1::ProcessRequest {
    fn personal(&mut self, visit: &mut dyn FnMut(Value<'_>)) {
        match &mut self.ask {
            Some(v1::process_request::Ask::Write(it)) => it.personal(visit),
            _ => {}
        }
    }
}

impl Personal for v1::TaskTriggered {
    fn personal(&mut self, visit: &mut dyn FnMut(Value<'_>)) {
        visit(Value::Text(&mut self.data));
        self.outside.iter_mut().for_each(|it| visit(Value::Text(it)));
    }
}

impl Personal for v1::EmailReceived {
    fn personal(&mut self, visit: &mut dyn FnMut(Value<'_>)) {
        visit(Value::Text(&mut self.sender));
        self.to.iter_mut().for_each(|it| visit(Value::Text(it)));
        visit(Value::Text(&mut self.subject));
        visit(Value::Text(&mut self.body));
        self.outside.iter_mut().for_each(|it| visit(Value::Text(it)));
    }
}

impl Personal for Body {
    fn personal(&mut self, visit: &mut dyn FnMut(Value<'_>)) {
        match self {
            Body::SubmoduleChanged(_) => {}
            Body::SubmoduleFailed(it) => it.personal(visit),
            Body::SubmoduleAsked(it) => it.personal(visit),
            Body::AgentBroadcast(_) => {}
            Body::ProcessSpawned(it) => it.personal(visit),
            Body::ProcessProgress(it) => it.personal(visit),
            Body::ProcessCanceled(_) => {}
            Body::ProcessReply(it) => it.personal(visit),
            Body::ProcessExited(it) => it.personal(visit),
            Body::UserMessage(it) => it.personal(visit),
            Body::UserMessageUndelivered(it) => it.personal(visit),
            Body::UserSwitched(_) => {}
            Body::UserForget(_) => {}
            Body::UserForgotten(_) => {}
            Body::UserChoice(_) => {}
            Body::UserApproval(it) => it.personal(visit),
            Body::UserCommand(it) => it.personal(visit),
            Body::ToolInvoke(it) => it.personal(visit),
            Body::ToolOrder(it) => it.personal(visit),
            Body::ToolProgress(it) => it.personal(visit),
            Body::ToolResult(it) => it.personal(visit),
            Body::AgentDefined(_) => {}
            Body::AgentRequest(it) => it.personal(visit),
            Body::AgentAnswer(it) => it.personal(visit),
            Body::AgentMessage(it) => it.personal(visit),
            Body::AgentImported(it) => it.personal(visit),
            Body::AgentForgotten(_) => {}
            Body::AgentChoice(_) => {}
            Body::AgentApproval(it) => it.personal(visit),
            Body::AgentCommand(it) => it.personal(visit),
            Body::AgentDecision(it) => it.personal(visit),
            Body::AgentThought(it) => it.personal(visit),
            Body::AgentAction(it) => it.personal(visit),
            Body::AgentBriefed(it) => it.personal(visit),
            Body::AgentGoal(it) => it.personal(visit),
            Body::AgentReflected(it) => it.personal(visit),
            Body::AgentAnswered(it) => it.personal(visit),
            Body::TeamChanged(_) => {}
            Body::AgentJoined(_) => {}
            Body::AgentFailed(it) => it.personal(visit),
            Body::ThreadCreated(it) => it.personal(visit),
            Body::ThreadMatched(it) => it.personal(visit),
            Body::ThreadSuggested(it) => it.personal(visit),
            Body::ThreadSummarized(it) => it.personal(visit),
            Body::ThreadArchived(_) => {}
            Body::ThreadCompacted(it) => it.personal(visit),
            Body::ThreadCompleted(_) => {}
            Body::ChainStarted(it) => it.personal(visit),
            Body::ChainStepEnded(it) => it.personal(visit),
            Body::ChainEnded(it) => it.personal(visit),
            Body::ApprovalRequested(it) => it.personal(visit),
            Body::TaskScheduled(it) => it.personal(visit),
            Body::TaskStarted(_) => {}
            Body::TaskEnded(it) => it.personal(visit),
            Body::TaskFired(it) => it.personal(visit),
            Body::TaskChanged(it) => it.personal(visit),
            Body::MemoryAppended(it) => it.personal(visit),
            Body::StateWritten(it) => it.personal(visit),
            Body::StateDeleted(it) => it.personal(visit),
            Body::ToolCatalogue(_) => {}
            Body::DecisionBasis(_) => {}
            Body::Epoch(_) => {}
            Body::ProcessCapabilities(_) => {}
            Body::DeadLetter(_) => {}
            Body::DeadLetterRetry(_) => {}
            Body::DeadLetterRetried(_) => {}
            Body::LiveToken(_) => {}
            Body::LiveOutput(_) => {}
            Body::TaskDue(_) => {}
            Body::TaskTriggered(it) => it.personal(visit),
            Body::EmailReceived(it) => it.personal(visit),
        }
    }
}
