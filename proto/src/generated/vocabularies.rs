// @generated from vocabularies.proto, and the options of fields.

vocabularies! {
    /// What makes a task run.
    TaskKind {
        /// Its time comes.
        Scheduled = "scheduled",
        /// Something happens.
        Hook = "hook",
        /// Its turn comes.
        Queued = "queued",
    }
    /// How often a scheduled task runs.
    TaskTiming {
        Once = "once",
        /// Once, after a while.
        Delay = "delay",
        Repeat = "repeat",
    }
    /// How a task stands.
    TaskStatus {
        /// Its time has not come yet.
        Pending = "pending",
        /// A hook that waits, or a repeated task that has fired before.
        Active = "active",
        /// It rests until it is resumed.
        Paused = "paused",
        Completed = "completed",
        Canceled = "canceled",
        Archived = "archived",
        Failed = "failed",
        /// A queued task that is being worked on.
        InProgress = "in_progress",
    }
    /// Who made a task.
    TaskSource {
        User = "user",
        System = "system",
        Itself = "self",
        Delegation = "delegation",
    }
    /// What a thread is for.
    ThreadKind {
        Topic = "topic",
        Work = "work",
        /// Of one thing that another agent asked for.
        Request = "request",
    }
    /// Whether a thread was put away, or is over.
    ThreadStatus {
        Active = "active",
        Archived = "archived",
        /// Of a thread of work.
        Completed = "completed",
        /// In use, and something of it was summed up.
        Compacted = "compacted",
    }
    /// How far a turn is.
    InteractionStatus {
        Started = "started",
        /// The agent has the message, and thinks about it or is about to.
        Planning = "planning",
        /// Something that was called runs, or waits for a human's consent.
        Executing = "executing",
        /// What was called has ended, and nothing was decided since.
        Reflecting = "reflecting",
        Completed = "completed",
        Failed = "failed",
    }
    /// What a step of a turn is.
    InteractionStepKind {
        Plan = "plan",
        Execute = "execute",
        /// The agent looks at what came of its calls.
        Reflect = "reflect",
        /// Words that no call and no review came before.
        Answer = "answer",
        /// An answer that a review read before the user saw it.
        Draft = "draft",
        /// What the review said of it.
        Review = "review",
        /// The answer that was written after a review asked for another one.
        Revision = "revision",
    }
    /// Who speaks in a thread.
    ThreadMessageRole {
        User = "user",
        Assistant = "assistant",
        /// What came of a call.
        Tool = "tool",
        /// What was summed up.
        System = "system",
    }
    /// What a chain was made from.
    ChainOrigin {
        Plan = "plan",
        /// The model called tools directly.
        Calls = "calls",
        Task = "task",
        Hook = "hook",
        /// What is looked at before a message is thought about.
        Environment = "environment",
        /// Another agent asks for a call.
        Request = "request",
    }
    /// How a chain ended.
    ChainOutcome {
        Done = "done",
        /// agent.decide said break.
        Broken = "broken",
        /// A step did.
        Failed = "failed",
        Canceled = "canceled",
        /// By another plan.
        Replaced = "replaced",
    }
    /// How far a step of a chain is.
    StepState {
        Pending = "pending",
        /// A human was.
        Asked = "asked",
        Running = "running",
        Done = "done",
        Failed = "failed",
        Skipped = "skipped",
        /// By a hook, or because a human rejected it.
        Stopped = "stopped",
    }
    /// Where a message was put.
    ThreadMatch {
        Continue = "continue",
        Switch = "switch",
        New = "new",
    }
    /// Who said where a message belongs.
    MatchedBy {
        Model = "model",
        /// By a choice.
        User = "user",
        /// There was nothing to choose from.
        Only = "only",
        /// It is answered with another message.
        Joined = "joined",
    }
    /// Where an agent suggests that a message goes.
    OfferAction {
        SuggestSwitch = "suggest_switch",
        SuggestNew = "suggest_new",
    }
    /// What a user answers to a suggestion.
    OfferAnswer {
        Accept = "accept",
        Decline = "decline",
    }
    /// How a call stands that a human was asked about.
    ConsentStatus {
        Waiting = "waiting",
        Approved = "approved",
        Rejected = "rejected",
        Withdrawn = "withdrawn",
    }
    /// What a human says of an action.
    Verdict {
        /// Of one in doubt.
        Happened = "happened",
        DidNotHappen = "did_not_happen",
        /// Of one that waits for consent.
        Approved = "approved",
        Rejected = "rejected",
    }
    /// What is ordered.
    OrderedCommand {
        Cancel = "cancel",
        Pause = "pause",
        Resume = "resume",
        Run = "run",
        Archive = "archive",
        Unarchive = "unarchive",
        /// Of a hook: that it fires for whatever happens to the agent, or for what concerns its own user only.
        Share = "share",
        Unshare = "unshare",
        /// Of a submodule.
        Add = "add",
        Remove = "remove",
    }
    /// What becomes of a message that comes while its agent is deciding.
    Interjection {
        /// Decided on when its turn comes.
        Order = "order",
        /// All that came are decided on together, next.
        Join = "join",
        /// The decision under way is begun again, with what came.
        Restart = "restart",
    }
    /// How an agent acts.
    Planning {
        /// The heavy model calls tools itself.
        Tools = "tools",
        /// It makes a plan, the fast model compiles it to a chain, the light model completes steps.
        Chain = "chain",
    }
    /// Who answers an agent's messages.
    Conduct {
        /// The turn that does what was asked for.
        Direct = "direct",
        /// A turn that acknowledges and queues a task, which is worked on beside the conversation.
        Background = "background",
    }
    /// What becomes of calls that act outside in a turn that has seen content which nobody here wrote.
    OutsideContent {
        /// A human is asked first.
        Consent = "consent",
        /// Nothing: they are made.
        Trusted = "trusted",
    }
    /// Which thread a message belongs to.
    Threads {
        /// One for each user.
        Single = "single",
        /// thread.match says, and asks the user where it would leave the current one.
        Topics = "topics",
    }
    /// Who said a message of a conversation.
    MessageRole {
        User = "user",
        Agent = "agent",
        /// No agent could receive it.
        Failure = "failure",
    }
    /// Whose a cap on what may be spent is.
    CapOwner {
        Agent = "agent",
        User = "user",
        Key = "key",
        Installation = "installation",
    }
    /// What a cap bounds.
    CapKind {
        TokensPerDay = "tokens_per_day",
        TokensInTotal = "tokens_in_total",
        CostPerDay = "cost_per_day",
        CostInTotal = "cost_in_total",
    }
    /// How a model's answer ended.
    AnswerEnding {
        Complete = "complete",
        /// By its length: what is missing nobody knows.
        Cut = "cut",
        /// By a filter of the model server.
        Filtered = "filtered",
        /// The model declines to answer, and says so.
        Refused = "refused",
        /// By an error of the model server: what came before it is a part of an answer at best.
        Failed = "failed",
        /// It says nothing and calls nothing.
        Empty = "empty",
    }
    /// What a memory is about.
    MemoryKind {
        Journal = "journal",
        Person = "person",
        Project = "project",
        Preference = "preference",
        Decision = "decision",
        Insight = "insight",
        Fact = "fact",
        State = "state",
        Secret = "secret",
    }
    /// Where an event comes from.
    EventSource {
        User = "user",
        Tool = "tool",
        System = "system",
        Internal = "internal",
    }
    /// What an event consists of.
    Modality {
        Text = "text",
        Image = "image",
        Audio = "audio",
        State = "state",
    }
    /// How far an action is.
    ActionStatus {
        /// Nobody has begun it.
        Asked = "asked",
        Running = "running",
        /// Nobody knows whether its effect happened.
        InDoubt = "in_doubt",
        Done = "done",
        Failed = "failed",
    }
    /// Why a tool call has no result.
    ToolErrorKind {
        /// The arguments do not fit the tool's schema; nothing was begun.
        InvalidArguments = "invalid_arguments",
        /// No such tool; nothing was begun.
        NotFound = "not_found",
        /// The tool says that it failed.
        Failed = "failed",
        /// The time limit passed.
        TimedOut = "timed_out",
        /// It was stopped on request.
        Canceled = "canceled",
        /// It was begun, and nobody knows whether its effect happened.
        InDoubt = "in_doubt",
        /// The result exceeds the configured size.
        TooLarge = "too_large",
        /// What it needs is away; nothing was done.
        Unavailable = "unavailable",
        /// A human must consent to it first; nothing was begun.
        ApprovalRequired = "approval_required",
    }
    /// What a supervisor answers about a process.
    ProcessAnswered {
        Done = "done",
        /// With the reason.
        Refused = "refused",
        /// This supervisor does not run it.
        NotHere = "not_here",
        /// It was stopped before it began.
        NotBegun = "not_begun",
    }
    /// What tool-runner answers about signing in at an MCP server.
    McpSignInAnswered {
        Done = "done",
        /// With the reason.
        Refused = "refused",
        /// No such server is configured.
        NoServer = "no_server",
    }
    /// What a person says to a question of an MCP server.
    QuestionAnswered {
        /// With the fields that it asks for.
        Accept = "accept",
        /// The call may go on without.
        Decline = "decline",
        /// The call shall not go on.
        Cancel = "cancel",
    }
    /// What became of such an answer.
    QuestionOutcome {
        Taken = "taken",
        /// It is not what the question asks for, which stays open.
        Unfit = "unfit",
    }
    /// How a process ended.
    ProcessOutcome {
        /// By itself.
        Exited = "exited",
        /// By a signal.
        Signaled = "signaled",
        TimedOut = "timed_out",
        /// On request, or because its supervisor was told to stop.
        Canceled = "canceled",
        /// Never run: it was not to be.
        Refused = "refused",
        /// Never run: it could not be.
        SpawnFailed = "spawn_failed",
        /// Killed with its supervisor, or its end is not known for another reason.
        SupervisorLost = "supervisor_lost",
    }
    /// What can be searched for.
    HitKind {
        Thread = "thread",
        Task = "task",
        Memory = "memory",
        Message = "message",
        State = "state",
    }
    /// Who answers a search.
    SearchBackend {
        Meilisearch = "meilisearch",
        Postgres = "postgres",
    }
    /// What an API key allows.
    Scope {
        /// To see what there is and follow what happens.
        Read = "read",
        /// To speak as a user: messages, choices, approvals and orders.
        Write = "write",
        /// Everything, among it agents, keys, dead letters and the read model.
        Admin = "admin",
    }
    /// The sections of what is held of a user, in the order in which they are told.
    ExportSection {
        Threads = "threads",
        /// What they sent, what was said to them, and what reached nobody.
        Messages = "messages",
        Tasks = "tasks",
        Memories = "memories",
        /// Every time that a key was written or deleted.
        InnerState = "inner_state",
        /// Calls that they were asked about.
        Approvals = "approvals",
        /// Threads that were suggested to them.
        Choices = "choices",
        Briefings = "briefings",
        /// Steps that were planned.
        Plans = "plans",
        /// Tools that were called on their behalf.
        Actions = "actions",
        Processes = "processes",
        ModelCalls = "model_calls",
    }
    /// How far forgetting a user is.
    ForgettingStep {
        /// It is wanted.
        Asked = "asked",
        /// What is new is sealed with another data key.
        Replaced = "replaced",
        /// Nothing more is sealed with the ones before, and the read model has all that was.
        Found = "found",
        /// The ones before are destroyed.
        Destroyed = "destroyed",
        /// Agents are told.
        Told = "told",
        /// Snapshots from before cannot be opened any more.
        Resealed = "resealed",
        /// The read models are built anew.
        Rebuilding = "rebuilding",
        /// Nothing is left to do.
        Done = "done",
    }
    /// How far the building of a read model is.
    GenerationState {
        /// Somebody wants it.
        Asked = "asked",
        /// It reads the log up to where that ended when it was begun.
        Filling = "filling",
        /// Its indexes are built.
        Indexing = "indexing",
        /// It reads on to where the live one was, and is held against it.
        Comparing = "comparing",
        /// It is not what the live one is, and waits for somebody to decide.
        Differing = "differing",
        /// It is about to become the live one.
        Ready = "ready",
        /// It answers queries.
        Live = "live",
        /// It was live before.
        Kept = "kept",
        /// It cannot be built.
        Failed = "failed",
        /// It is being removed.
        Dropping = "dropping",
    }
    /// What one agent asks of another.
    RequestKind {
        /// To work on a task.
        Work = "work",
        /// To leave a task that it was asked to work on.
        Cancel = "cancel",
        /// Of a lead, to those who work for it: to begin no task, or to go on.
        Pause = "pause",
        Resume = "resume",
        /// To call one of its tools, at once.
        Call = "call",
        /// To think about something and answer.
        Think = "think",
    }
    /// What becomes of what an agent is about to say.
    ReviewVerdict {
        /// It is said.
        Finished = "finished",
        /// It is written anew.
        Revise = "revise",
        /// Something is to be done first.
        Act = "act",
    }
    /// Which model a submodule thinks with.
    ModelTier {
        Heavy = "heavy",
        Fast = "fast",
        Light = "light",
    }
    /// What a submodule is shown.
    HeardKind {
        /// What users say, and what they choose.
        Message = "message",
        /// What came of a call, or of what another agent was asked for.
        Result = "result",
        /// How a process in the background ended.
        Process = "process",
        /// What happens outside: mail, events of other systems.
        Event = "event",
        /// A task that begins, by its time or by its turn.
        Task = "task",
        /// A human's verdict.
        Approval = "approval",
    }
    /// Why a submodule said nothing of use.
    SubmoduleFailure {
        /// It had not answered by its deadline.
        Late = "late",
        Failed = "failed",
    }
    /// What is told of thinking.
    ThoughtKind {
        Thought = "thought",
        /// It is for the next decision in its thread.
        Left = "left",
        /// A question to a submodule.
        Asked = "asked",
        /// It had not answered by its deadline.
        Late = "late",
        Failed = "failed",
        /// What was decided was shown to submodules.
        Broadcast = "broadcast",
    }
    /// What came of dealing with a dead letter's message again.
    RetryOutcome {
        /// It is dealt with, by this retry or by one before it.
        Handled = "handled",
        Failed = "failed",
    }
    /// How it is with a team.
    TeamStatus {
        Active = "active",
        /// Its lead and its workers begin no task.
        Paused = "paused",
        /// For good.
        Archived = "archived",
    }
    /// Where a tool comes from.
    ToolSource {
        /// Kairo itself.
        BuiltIn = "built_in",
        Mcp = "mcp",
        Worker = "worker",
        /// A request to a web API.
        WebApi = "web_api",
    }
    /// How it is with an MCP server or a tool worker.
    ToolServerState {
        /// It was not reached yet.
        Starting = "starting",
        Up = "up",
        /// It is gone, or does not answer; it is tried again.
        Down = "down",
        /// For good.
        Stopped = "stopped",
    }
    /// Whether a human must consent to calls of a tool.
    ConsentRule {
        Always = "always",
        /// To those with some arguments.
        ByArguments = "by_arguments",
        Never = "never",
    }
}

fields! {
    Submodule.tier as tier_word: ModelTier,
    SubmoduleFailed.kind as kind_word: SubmoduleFailure,
    ProcessReply.outcome as outcome_word: ProcessAnswered,
    ProcessExited.outcome as outcome_word: ProcessOutcome,
    ChatMessage.role as role_word: ThreadMessageRole,
    UserChoice.option as option_word: OfferAnswer,
    UserApproval.verdict as verdict_word: Verdict,
    UserCommand.command as command_word: OrderedCommand,
    ToolQuestionEnd.action as action_word: QuestionAnswered,
    ToolError.kind as kind_word: ToolErrorKind,
    AgentProfile.interjection as interjection_word: Interjection,
    AgentProfile.planning as planning_word: Planning,
    AgentProfile.threads as threads_word: Threads,
    AgentProfile.outside_content as outside_content_word: OutsideContent,
    AgentProfile.conduct as conduct_word: Conduct,
    AgentRequest.kind as kind_word: RequestKind,
    AgentAnswer.status as status_word: TaskStatus,
    AgentAnswer.kind as kind_word: RequestKind,
    ImportedMessage.role as role_word: MessageRole,
    AgentChoice.option as option_word: OfferAnswer,
    AgentApproval.verdict as verdict_word: Verdict,
    AgentCommand.command as command_word: OrderedCommand,
    Ask.kind as kind_word: RequestKind,
    Say.ending as ending_word: AnswerEnding,
    AgentReflected.verdict as verdict_word: ReviewVerdict,
    AgentAnswered.kind as kind_word: RequestKind,
    AgentAnswered.status as status_word: TaskStatus,
    TeamChanged.status as status_word: TeamStatus,
    ThreadCreated.kind as kind_word: ThreadKind,
    ThreadMatched.action as action_word: ThreadMatch,
    ThreadMatched.by as by_word: MatchedBy,
    ThreadSuggested.action as action_word: OfferAction,
    ChainStarted.origin as origin_word: ChainOrigin,
    ChainStepEnded.outcome as outcome_word: StepState,
    ChainEnded.outcome as outcome_word: ChainOutcome,
    Task.kind as kind_word: TaskKind,
    Task.r#type as type_word: TaskTiming,
    Task.source as source_word: TaskSource,
    TaskEnded.status as status_word: TaskStatus,
    TaskChanged.status as status_word: TaskStatus,
    MemoryAppended.kind as kind_word: MemoryKind,
    Completion.ending as ending_word: AnswerEnding,
    ChooseRequest.option as option_word: OfferAnswer,
    ApproveRequest.verdict as verdict_word: Verdict,
    AnswerQuestionRequest.action as action_word: QuestionAnswered,
    OrderRequest.command as command_word: OrderedCommand,
    DefineAgentRequest.interjection as interjection_word: Interjection,
    DefineAgentRequest.planning as planning_word: Planning,
    DefineAgentRequest.threads as threads_word: Threads,
    DefineAgentRequest.outside_content as outside_content_word: OutsideContent,
    DefineAgentRequest.conduct as conduct_word: Conduct,
    GivenSubmodule.tier as tier_word: ModelTier,
    OrderedSubmodule.tier as tier_word: ModelTier,
    GivenLead.interjection as interjection_word: Interjection,
    GivenLead.planning as planning_word: Planning,
    GivenLead.threads as threads_word: Threads,
    GivenLead.outside_content as outside_content_word: OutsideContent,
    GivenWorker.interjection as interjection_word: Interjection,
    GivenWorker.planning as planning_word: Planning,
    GivenWorker.threads as threads_word: Threads,
    GivenWorker.outside_content as outside_content_word: OutsideContent,
    TurnStatus.status as status_word: InteractionStatus,
    optional TurnStatus.previous as previous_word: InteractionStatus,
    Event.source as source_word: EventSource,
    Event.modality as modality_word: Modality,
    ToolSpec.source as source_word: ToolSource,
    DeadLetterRetried.outcome as outcome_word: RetryOutcome,
    TeamRow.status as status_word: TeamStatus,
    ThreadRow.kind as kind_word: ThreadKind,
    ThreadRow.status as status_word: ThreadStatus,
    ThreadMessageRow.role as role_word: ThreadMessageRole,
    InteractionRow.status as status_word: InteractionStatus,
    InteractionStepRow.kind as kind_word: InteractionStepKind,
    optional InteractionStepRow.status as status_word: StepState,
    ChainRow.origin as origin_word: ChainOrigin,
    optional ChainRow.outcome as outcome_word: ChainOutcome,
    ChainStepRow.state as state_word: StepState,
    TaskRow.kind as kind_word: TaskKind,
    optional TaskRow.r#type as type_word: TaskTiming,
    TaskRow.source as source_word: TaskSource,
    TaskRow.status as status_word: TaskStatus,
    ConversationRow.last_role as last_role_word: MessageRole,
    MessageRow.role as role_word: MessageRole,
    optional MessageRow.ending as ending_word: AnswerEnding,
    MemoryRow.r#type as type_word: MemoryKind,
    OfferRow.action as action_word: OfferAction,
    ConsentRow.status as status_word: ConsentStatus,
    optional ProcessRow.outcome as outcome_word: ProcessOutcome,
    ToolServerRow.source as source_word: ToolSource,
    ToolServerRow.state as state_word: ToolServerState,
    ToolRow.source as source_word: ToolSource,
    ToolRow.consent as consent_word: ConsentRule,
    HitRow.kind as kind_word: HitKind,
    CapRow.of as of_word: CapOwner,
    CapRow.cap as cap_word: CapKind,
    ThoughtRow.kind as kind_word: ThoughtKind,
    SubmoduleRow.tier as tier_word: ModelTier,
    GenerationRow.state as state_word: GenerationState,
    DigestRow.state as state_word: GenerationState,
    optional RetryRow.outcome as outcome_word: RetryOutcome,
    GetForgettingResponse.step as step_word: ForgettingStep,
    ExportedRow.section as section_word: ExportSection,
    ExportedModelCall.tier as tier_word: ModelTier,
    ProcessAnswer.outcome as outcome_word: ProcessAnswered,
    McpSignInAnswer.outcome as outcome_word: McpSignInAnswered,
    QuestionAnswer.action as action_word: QuestionAnswered,
    QuestionsAnswer.outcome as outcome_word: QuestionOutcome,
    ListTasksRequest.kind as kind_word: TaskKind,
    SearchResponse.backend as backend_word: SearchBackend,
    ListToolsRequest.source as source_word: ToolSource,
}
