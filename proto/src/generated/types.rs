// @generated from the options of the protos.

bodies! {
    UserMessage = "kairo.user.message.v1",
    UserMessageUndelivered = "kairo.user.undelivered.v1",
    UserSwitched = "kairo.user.switched.v1",
    UserChoice = "kairo.user.choice.v1",
    UserApproval = "kairo.user.approval.v1",
    UserCommand = "kairo.user.command.v1",
    AgentDefined = "kairo.agent.defined.v1",
    AgentRequest = "kairo.agent.request.v1",
    AgentAnswer = "kairo.agent.answer.v1",
    AgentMessage = "kairo.agent.message.v1",
    AgentImported = "kairo.agent.imported.v1",
    AgentChoice = "kairo.agent.choice.v1",
    AgentApproval = "kairo.agent.approval.v1",
    AgentCommand = "kairo.agent.command.v1",
    AgentDecision = "kairo.agent.decision.v1",
    SubmoduleChanged = "kairo.agent.submodule_changed.v1",
    SubmoduleFailed = "kairo.agent.submodule_failed.v1",
    SubmoduleAsked = "kairo.agent.submodule_asked.v1",
    AgentBroadcast = "kairo.agent.broadcast.v1",
    AgentThought = "kairo.agent.thought.v1",
    AgentAction = "kairo.agent.action.v1",
    AgentBriefed = "kairo.agent.briefed.v1",
    AgentGoal = "kairo.agent.goal.v1",
    AgentReflected = "kairo.agent.reflected.v1",
    AgentAnswered = "kairo.agent.answered.v1",
    TeamChanged = "kairo.agent.team_changed.v1",
    AgentJoined = "kairo.agent.joined.v1",
    AgentFailed = "kairo.agent.failed.v1",
    ThreadCreated = "kairo.thread.created.v1",
    ThreadMatched = "kairo.thread.matched.v1",
    ThreadSuggested = "kairo.thread.suggested.v1",
    ThreadSummarized = "kairo.thread.summarized.v1",
    ThreadArchived = "kairo.thread.archived.v1",
    ThreadCompacted = "kairo.thread.compacted.v1",
    ThreadCompleted = "kairo.thread.completed.v1",
    ChainStarted = "kairo.chain.started.v1",
    ChainStepEnded = "kairo.chain.step_ended.v1",
    ChainEnded = "kairo.chain.ended.v1",
    ApprovalRequested = "kairo.agent.approval_requested.v1",
    TaskScheduled = "kairo.task.scheduled.v1",
    TaskStarted = "kairo.task.started.v1",
    TaskEnded = "kairo.task.ended.v1",
    TaskFired = "kairo.task.fired.v1",
    TaskChanged = "kairo.task.changed.v1",
    MemoryAppended = "kairo.memory.appended.v1",
    TaskDue = "kairo.task.due.v1",
    TaskTriggered = "kairo.task.triggered.v1",
    EmailReceived = "kairo.email.received.v1",
    ToolInvoke = "kairo.tool.invoke.v1",
    ToolProgress = "kairo.tool.progress.v1",
    ToolResult = "kairo.tool.result.v1",
    ProcessSpawned = "kairo.process.spawned.v1",
    ProcessProgress = "kairo.process.progress.v1",
    ProcessCanceled = "kairo.process.canceled.v1",
    ProcessExited = "kairo.process.exited.v1",
    ToolCatalogue = "kairo.system.catalogue.v1",
    DecisionBasis = "kairo.system.basis.v1",
    Epoch = "kairo.system.epoch.v1",
    ProcessCapabilities = "kairo.system.capabilities.v1",
    DeadLetter = "kairo.dlq.letter.v1",
    LiveToken = "kairo.live.token.v1",
    LiveOutput = "kairo.live.output.v1",
    StateWritten = "kairo.state.written.v1",
    StateDeleted = "kairo.state.deleted.v1",
}

decided! {
    SubmoduleChanged(SubmoduleChanged),
    SubmoduleFailed(SubmoduleFailed),
    SubmoduleAsked(SubmoduleAsked),
    Broadcast(AgentBroadcast),
    Thought(AgentThought),
    Action(AgentAction),
    Briefed(AgentBriefed),
    Goal(AgentGoal),
    Reflected(AgentReflected),
    Answered(AgentAnswered),
    TeamChanged(TeamChanged),
    Joined(AgentJoined),
    Failed(AgentFailed),
    ThreadCreated(ThreadCreated),
    ThreadMatched(ThreadMatched),
    ThreadSuggested(ThreadSuggested),
    ThreadSummarized(ThreadSummarized),
    ThreadArchived(ThreadArchived),
    ThreadCompacted(ThreadCompacted),
    ThreadCompleted(ThreadCompleted),
    ChainStarted(ChainStarted),
    ChainStepEnded(ChainStepEnded),
    ChainEnded(ChainEnded),
    ApprovalRequested(ApprovalRequested),
    TaskScheduled(TaskScheduled),
    TaskStarted(TaskStarted),
    TaskEnded(TaskEnded),
    TaskFired(TaskFired),
    TaskChanged(TaskChanged),
    MemoryAppended(MemoryAppended),
    StateWritten(StateWritten),
    StateDeleted(StateDeleted),
}

groups! {
    /// What users say, as it entered.
    User {
        Message(UserMessage),
        Undelivered(UserMessageUndelivered),
        Switched(UserSwitched),
        Choice(UserChoice),
        Approval(UserApproval),
        Command(UserCommand),
    }
    /// What agents are, and what is said to them.
    Agent {
        Defined(AgentDefined),
        Request(AgentRequest),
        Answer(AgentAnswer),
        Message(AgentMessage),
        Imported(AgentImported),
        Choice(AgentChoice),
        Approval(AgentApproval),
        Command(AgentCommand),
    }
    /// What an agent does in a turn.
    Turn {
        SubmoduleChanged(SubmoduleChanged),
        SubmoduleFailed(SubmoduleFailed),
        SubmoduleAsked(SubmoduleAsked),
        Broadcast(AgentBroadcast),
        Thought(AgentThought),
        Action(AgentAction),
        Briefed(AgentBriefed),
        Goal(AgentGoal),
        Reflected(AgentReflected),
        Answered(AgentAnswered),
        TeamChanged(TeamChanged),
        Joined(AgentJoined),
        Failed(AgentFailed),
    }
    /// Which thread a turn belongs to, and what becomes of threads.
    Thread {
        Created(ThreadCreated),
        Matched(ThreadMatched),
        Suggested(ThreadSuggested),
        Summarized(ThreadSummarized),
        Archived(ThreadArchived),
        Compacted(ThreadCompacted),
        Completed(ThreadCompleted),
    }
    /// The steps that a turn consists of.
    Chain {
        Started(ChainStarted),
        StepEnded(ChainStepEnded),
        Ended(ChainEnded),
        ApprovalRequested(ApprovalRequested),
    }
    /// What is to be done later.
    Task {
        Scheduled(TaskScheduled),
        Started(TaskStarted),
        Ended(TaskEnded),
        Fired(TaskFired),
        Changed(TaskChanged),
    }
    /// What an agent remembers.
    Memory {
        Appended(MemoryAppended),
    }
    /// What happens to agents without anybody speaking to them.
    Outside {
        Due(TaskDue),
        Triggered(TaskTriggered),
        Email(EmailReceived),
    }
    /// What becomes of actions.
    Tool {
        Invoke(ToolInvoke),
        Progress(ToolProgress),
        Result(ToolResult),
    }
    /// What becomes of processes.
    Process {
        Spawned(ProcessSpawned),
        Progress(ProcessProgress),
        Canceled(ProcessCanceled),
        Exited(ProcessExited),
    }
    /// What services say of themselves.
    System {
        Catalogue(ToolCatalogue),
        Basis(DecisionBasis),
        Epoch(Epoch),
        Capabilities(ProcessCapabilities),
        DeadLetter(DeadLetter),
    }
    /// What is seen while it happens, and never stored.
    Live {
        Token(LiveToken),
        Output(LiveOutput),
    }
    /// What an agent keeps in its inner state.
    State {
        Written(StateWritten),
        Deleted(StateDeleted),
    }
}

/// Types that not all builds know, and the version of readers that does.
pub const READERS: &[(&str, u32)] = &[
    ("kairo.user.switched.v1", 6),
    ("kairo.agent.request.v1", 5),
    ("kairo.agent.answer.v1", 5),
    ("kairo.agent.imported.v1", 6),
    ("kairo.agent.submodule_changed.v1", 6),
    ("kairo.agent.submodule_failed.v1", 6),
    ("kairo.agent.submodule_asked.v1", 6),
    ("kairo.agent.broadcast.v1", 6),
    ("kairo.agent.briefed.v1", 5),
    ("kairo.agent.goal.v1", 6),
    ("kairo.agent.reflected.v1", 6),
    ("kairo.agent.answered.v1", 6),
    ("kairo.agent.team_changed.v1", 5),
    ("kairo.thread.compacted.v1", 5),
    ("kairo.thread.completed.v1", 4),
    ("kairo.task.started.v1", 4),
    ("kairo.task.ended.v1", 4),
    ("kairo.state.written.v1", 6),
    ("kairo.state.deleted.v1", 6),
];
/// The newest of these, and of those that fields ask for.
pub const READER: u32 = 7;

/// What a message is about.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum About<'m> {
    /// What users say, as it entered.
    User(User<'m>),
    /// What agents are, and what is said to them.
    Agent(Agent<'m>),
    /// What an agent decided.
    Decision(&'m v1::AgentDecision),
    /// What happens to agents without anybody speaking to them.
    Outside(Outside<'m>),
    /// What becomes of actions.
    Tool(Tool<'m>),
    /// What becomes of processes.
    Process(Process<'m>),
    /// What services say of themselves.
    System(System<'m>),
    /// What is seen while it happens, and never stored.
    Live(Live<'m>),
    /// An event that a decision holds.
    Decided(Decided<'m>),
}

/// What an event of a decision is about.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Decided<'m> {
    /// What an agent does in a turn.
    Turn(Turn<'m>),
    /// Which thread a turn belongs to, and what becomes of threads.
    Thread(Thread<'m>),
    /// The steps that a turn consists of.
    Chain(Chain<'m>),
    /// What is to be done later.
    Task(Task<'m>),
    /// What an agent remembers.
    Memory(Memory<'m>),
    /// What an agent keeps in its inner state.
    State(State<'m>),
}

impl Body {
    /// What it is about.
    pub fn about(&self) -> About<'_> {
        match self {
            Body::UserMessage(it) => About::User(User::Message(it)),
            Body::UserMessageUndelivered(it) => About::User(User::Undelivered(it)),
            Body::UserSwitched(it) => About::User(User::Switched(it)),
            Body::UserChoice(it) => About::User(User::Choice(it)),
            Body::UserApproval(it) => About::User(User::Approval(it)),
            Body::UserCommand(it) => About::User(User::Command(it)),
            Body::AgentDefined(it) => About::Agent(Agent::Defined(it)),
            Body::AgentRequest(it) => About::Agent(Agent::Request(it)),
            Body::AgentAnswer(it) => About::Agent(Agent::Answer(it)),
            Body::AgentMessage(it) => About::Agent(Agent::Message(it)),
            Body::AgentImported(it) => About::Agent(Agent::Imported(it)),
            Body::AgentChoice(it) => About::Agent(Agent::Choice(it)),
            Body::AgentApproval(it) => About::Agent(Agent::Approval(it)),
            Body::AgentCommand(it) => About::Agent(Agent::Command(it)),
            Body::AgentDecision(it) => About::Decision(it),
            Body::SubmoduleChanged(it) => About::Decided(Decided::Turn(Turn::SubmoduleChanged(it))),
            Body::SubmoduleFailed(it) => About::Decided(Decided::Turn(Turn::SubmoduleFailed(it))),
            Body::SubmoduleAsked(it) => About::Decided(Decided::Turn(Turn::SubmoduleAsked(it))),
            Body::AgentBroadcast(it) => About::Decided(Decided::Turn(Turn::Broadcast(it))),
            Body::AgentThought(it) => About::Decided(Decided::Turn(Turn::Thought(it))),
            Body::AgentAction(it) => About::Decided(Decided::Turn(Turn::Action(it))),
            Body::AgentBriefed(it) => About::Decided(Decided::Turn(Turn::Briefed(it))),
            Body::AgentGoal(it) => About::Decided(Decided::Turn(Turn::Goal(it))),
            Body::AgentReflected(it) => About::Decided(Decided::Turn(Turn::Reflected(it))),
            Body::AgentAnswered(it) => About::Decided(Decided::Turn(Turn::Answered(it))),
            Body::TeamChanged(it) => About::Decided(Decided::Turn(Turn::TeamChanged(it))),
            Body::AgentJoined(it) => About::Decided(Decided::Turn(Turn::Joined(it))),
            Body::AgentFailed(it) => About::Decided(Decided::Turn(Turn::Failed(it))),
            Body::ThreadCreated(it) => About::Decided(Decided::Thread(Thread::Created(it))),
            Body::ThreadMatched(it) => About::Decided(Decided::Thread(Thread::Matched(it))),
            Body::ThreadSuggested(it) => About::Decided(Decided::Thread(Thread::Suggested(it))),
            Body::ThreadSummarized(it) => About::Decided(Decided::Thread(Thread::Summarized(it))),
            Body::ThreadArchived(it) => About::Decided(Decided::Thread(Thread::Archived(it))),
            Body::ThreadCompacted(it) => About::Decided(Decided::Thread(Thread::Compacted(it))),
            Body::ThreadCompleted(it) => About::Decided(Decided::Thread(Thread::Completed(it))),
            Body::ChainStarted(it) => About::Decided(Decided::Chain(Chain::Started(it))),
            Body::ChainStepEnded(it) => About::Decided(Decided::Chain(Chain::StepEnded(it))),
            Body::ChainEnded(it) => About::Decided(Decided::Chain(Chain::Ended(it))),
            Body::ApprovalRequested(it) => About::Decided(Decided::Chain(Chain::ApprovalRequested(it))),
            Body::TaskScheduled(it) => About::Decided(Decided::Task(Task::Scheduled(it))),
            Body::TaskStarted(it) => About::Decided(Decided::Task(Task::Started(it))),
            Body::TaskEnded(it) => About::Decided(Decided::Task(Task::Ended(it))),
            Body::TaskFired(it) => About::Decided(Decided::Task(Task::Fired(it))),
            Body::TaskChanged(it) => About::Decided(Decided::Task(Task::Changed(it))),
            Body::MemoryAppended(it) => About::Decided(Decided::Memory(Memory::Appended(it))),
            Body::TaskDue(it) => About::Outside(Outside::Due(it)),
            Body::TaskTriggered(it) => About::Outside(Outside::Triggered(it)),
            Body::EmailReceived(it) => About::Outside(Outside::Email(it)),
            Body::ToolInvoke(it) => About::Tool(Tool::Invoke(it)),
            Body::ToolProgress(it) => About::Tool(Tool::Progress(it)),
            Body::ToolResult(it) => About::Tool(Tool::Result(it)),
            Body::ProcessSpawned(it) => About::Process(Process::Spawned(it)),
            Body::ProcessProgress(it) => About::Process(Process::Progress(it)),
            Body::ProcessCanceled(it) => About::Process(Process::Canceled(it)),
            Body::ProcessExited(it) => About::Process(Process::Exited(it)),
            Body::ToolCatalogue(it) => About::System(System::Catalogue(it)),
            Body::DecisionBasis(it) => About::System(System::Basis(it)),
            Body::Epoch(it) => About::System(System::Epoch(it)),
            Body::ProcessCapabilities(it) => About::System(System::Capabilities(it)),
            Body::DeadLetter(it) => About::System(System::DeadLetter(it)),
            Body::LiveToken(it) => About::Live(Live::Token(it)),
            Body::LiveOutput(it) => About::Live(Live::Output(it)),
            Body::StateWritten(it) => About::Decided(Decided::State(State::Written(it))),
            Body::StateDeleted(it) => About::Decided(Decided::State(State::Deleted(it))),
        }
    }
}

impl Event {
    /// What it is about.
    pub fn about(&self) -> Decided<'_> {
        match self {
            Event::SubmoduleChanged(it) => Decided::Turn(Turn::SubmoduleChanged(it)),
            Event::SubmoduleFailed(it) => Decided::Turn(Turn::SubmoduleFailed(it)),
            Event::SubmoduleAsked(it) => Decided::Turn(Turn::SubmoduleAsked(it)),
            Event::Broadcast(it) => Decided::Turn(Turn::Broadcast(it)),
            Event::Thought(it) => Decided::Turn(Turn::Thought(it)),
            Event::Action(it) => Decided::Turn(Turn::Action(it)),
            Event::Briefed(it) => Decided::Turn(Turn::Briefed(it)),
            Event::Goal(it) => Decided::Turn(Turn::Goal(it)),
            Event::Reflected(it) => Decided::Turn(Turn::Reflected(it)),
            Event::Answered(it) => Decided::Turn(Turn::Answered(it)),
            Event::TeamChanged(it) => Decided::Turn(Turn::TeamChanged(it)),
            Event::Joined(it) => Decided::Turn(Turn::Joined(it)),
            Event::Failed(it) => Decided::Turn(Turn::Failed(it)),
            Event::ThreadCreated(it) => Decided::Thread(Thread::Created(it)),
            Event::ThreadMatched(it) => Decided::Thread(Thread::Matched(it)),
            Event::ThreadSuggested(it) => Decided::Thread(Thread::Suggested(it)),
            Event::ThreadSummarized(it) => Decided::Thread(Thread::Summarized(it)),
            Event::ThreadArchived(it) => Decided::Thread(Thread::Archived(it)),
            Event::ThreadCompacted(it) => Decided::Thread(Thread::Compacted(it)),
            Event::ThreadCompleted(it) => Decided::Thread(Thread::Completed(it)),
            Event::ChainStarted(it) => Decided::Chain(Chain::Started(it)),
            Event::ChainStepEnded(it) => Decided::Chain(Chain::StepEnded(it)),
            Event::ChainEnded(it) => Decided::Chain(Chain::Ended(it)),
            Event::ApprovalRequested(it) => Decided::Chain(Chain::ApprovalRequested(it)),
            Event::TaskScheduled(it) => Decided::Task(Task::Scheduled(it)),
            Event::TaskStarted(it) => Decided::Task(Task::Started(it)),
            Event::TaskEnded(it) => Decided::Task(Task::Ended(it)),
            Event::TaskFired(it) => Decided::Task(Task::Fired(it)),
            Event::TaskChanged(it) => Decided::Task(Task::Changed(it)),
            Event::MemoryAppended(it) => Decided::Memory(Memory::Appended(it)),
            Event::StateWritten(it) => Decided::State(State::Written(it)),
            Event::StateDeleted(it) => Decided::State(State::Deleted(it)),
        }
    }
}

mapped! {
    Submodule,
    SubmoduleChanged,
    SubmoduleFailed,
    SubmoduleAsked,
    AgentBroadcast,
    ToolInvoke,
    ToolInvocation,
    ToolProgress,
    ToolResult,
    ToolError,
    UserMessage,
    Part,
    UserMessageUndelivered,
    UserSwitched,
    UserChoice,
    UserApproval,
    UserCommand,
    AgentDefined,
    AgentProfile,
    Member,
    Perception,
    SessionBounds,
    ProfileCommand,
    Team,
    TeamWorker,
    AgentRequest,
    AgentAnswer,
    Spent,
    AgentMessage,
    AgentImported,
    ImportedThread,
    ImportedMessage,
    AgentChoice,
    AgentApproval,
    AgentCommand,
    AgentDecision,
    DecidedEvent,
    AgentThought,
    AgentAction,
    Ask,
    Say,
    ToolCall,
    AgentBriefed,
    AgentGoal,
    AgentReflected,
    AgentAnswered,
    TeamChanged,
    AgentJoined,
    AgentFailed,
    ThreadCreated,
    ThreadMatched,
    ThreadSuggested,
    ThreadSummarized,
    ThreadArchived,
    ThreadCompacted,
    ThreadCompleted,
    ChainStarted,
    ChainStep,
    ChainStepEnded,
    ChainEnded,
    ApprovalRequested,
    TaskScheduled,
    Task,
    TaskStarted,
    TaskEnded,
    TaskAnswer,
    TaskFired,
    TaskChanged,
    MemoryAppended,
    StateWritten,
    StateDeleted,
    SealedSecret,
    Completion,
    HashLink,
    GivenUpCall,
    RequestDigests,
    CompletionToolCall,
    CompletionError,
    LiveToken,
    LiveOutput,
    ProcessRequest,
    ProcessLook,
    ProcessSignal,
    ProcessWrite,
    ProcessStop,
    ProcessAnswer,
    ProcessState,
    TailRequest,
    ProcessSpawned,
    ProcessProgress,
    ProcessCanceled,
    ProcessExited,
    ProcessUsage,
    ToolCatalogue,
    ToolPin,
    ToolSpec,
    ToolArgument,
    DecisionBasis,
    BasisLibrary,
    BasisModel,
    BasisPrice,
    Epoch,
    ProcessCapabilities,
    DeadLetter,
    TaskDue,
    TaskTriggered,
    EmailReceived,
}
