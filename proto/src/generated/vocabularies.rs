// @generated from vocabularies.proto, and the options of fields.

vocabularies! {
    /// The kind of a task: the condition on which it runs.
    TaskKind {
        /// Its time comes.
        Scheduled = "scheduled",
        /// Something happens.
        Hook = "hook",
        /// Its turn comes.
        Queued = "queued",
    }
    /// The timing of a scheduled task.
    TaskTiming {
        Once = "once",
        /// Once, after a while.
        Delay = "delay",
        Repeat = "repeat",
    }
    /// The status of a task.
    TaskStatus {
        /// Its time has not come yet.
        Pending = "pending",
        /// A hook that waits, or a repeated task that has fired before.
        Active = "active",
        /// It does not run until it is resumed.
        Paused = "paused",
        Completed = "completed",
        Canceled = "canceled",
        Archived = "archived",
        Failed = "failed",
        /// A queued task that is being worked on.
        InProgress = "in_progress",
    }
    /// The creator of a task.
    TaskSource {
        User = "user",
        System = "system",
        Itself = "self",
        Delegation = "delegation",
    }
    /// The purpose of a thread.
    ThreadKind {
        Topic = "topic",
        Work = "work",
        /// For one request of another agent.
        Request = "request",
    }
    /// The status of a thread.
    ThreadStatus {
        Active = "active",
        Archived = "archived",
        /// A thread of work that is over.
        Completed = "completed",
        /// In use, and a part of it was summed up.
        Compacted = "compacted",
    }
    /// The status of a turn.
    InteractionStatus {
        Started = "started",
        /// The agent has the message, and thinks about it or is about to.
        Planning = "planning",
        /// A call is running, or waits for a human's consent.
        Executing = "executing",
        /// The calls have ended, and nothing was decided since.
        Reflecting = "reflecting",
        Completed = "completed",
        Failed = "failed",
    }
    /// The kind of a step of a turn.
    InteractionStepKind {
        Plan = "plan",
        Execute = "execute",
        /// The agent looks at the results of its calls.
        Reflect = "reflect",
        /// An answer without a call or a review before it.
        Answer = "answer",
        /// An answer that a review read before the user saw it.
        Draft = "draft",
        /// The review of a draft.
        Review = "review",
        /// The answer that was written after a review asked for another one.
        Revision = "revision",
    }
    /// The role of the speaker of a message in a thread.
    ThreadMessageRole {
        User = "user",
        Assistant = "assistant",
        /// The result of a call.
        Tool = "tool",
        /// A summary of earlier messages.
        System = "system",
    }
    /// The origin of a chain.
    ChainOrigin {
        Plan = "plan",
        /// The model called tools directly.
        Calls = "calls",
        Task = "task",
        Hook = "hook",
        /// The calls that an agent's environment takes when a message arrives, before the model is asked.
        Environment = "environment",
        /// Another agent asks for a call.
        Request = "request",
    }
    /// The outcome of a chain.
    ChainOutcome {
        Done = "done",
        /// agent.decide said break.
        Broken = "broken",
        /// A step failed.
        Failed = "failed",
        Canceled = "canceled",
        /// Another plan replaced it.
        Replaced = "replaced",
    }
    /// The state of a step of a chain.
    StepState {
        Pending = "pending",
        /// A human was asked for consent.
        Asked = "asked",
        Running = "running",
        Done = "done",
        Failed = "failed",
        Skipped = "skipped",
        /// Stopped by a hook, or because a human rejected it.
        Stopped = "stopped",
    }
    /// The way a message was assigned to a thread.
    ThreadMatch {
        Continue = "continue",
        Switch = "switch",
        New = "new",
    }
    /// The reason a message was assigned to its thread.
    MatchedBy {
        Model = "model",
        /// The user chose it.
        User = "user",
        /// There was no other thread to choose.
        Only = "only",
        /// It is answered with another message.
        Joined = "joined",
    }
    /// The kind of thread that an agent suggests for a message.
    OfferAction {
        SuggestSwitch = "suggest_switch",
        SuggestNew = "suggest_new",
    }
    /// A user's answer to a suggestion.
    OfferAnswer {
        Accept = "accept",
        Decline = "decline",
    }
    /// The status of a call that a human was asked about.
    ConsentStatus {
        Waiting = "waiting",
        Approved = "approved",
        Rejected = "rejected",
        Withdrawn = "withdrawn",
        /// Nobody answered in time: it counts as rejected.
        Expired = "expired",
    }
    /// A human's verdict on an action.
    Verdict {
        /// For an action in doubt, like the next.
        Happened = "happened",
        DidNotHappen = "did_not_happen",
        /// For an action that waits for consent, like the next.
        Approved = "approved",
        Rejected = "rejected",
    }
    /// A direct order to an agent.
    OrderedCommand {
        Cancel = "cancel",
        Pause = "pause",
        Resume = "resume",
        Run = "run",
        Archive = "archive",
        Unarchive = "unarchive",
        /// For a hook: it fires for whatever happens to the agent; with the next, only for what concerns its own user.
        Share = "share",
        Unshare = "unshare",
        /// For a submodule, like the next.
        Add = "add",
        Remove = "remove",
        /// For a new task: it is put into the queue.
        Queue = "queue",
    }
    /// The handling of a message that arrives while its agent is deciding.
    Interjection {
        /// It is decided on when its turn comes.
        Order = "order",
        /// All messages that arrived are decided on together, next.
        Join = "join",
        /// The decision under way is begun again, with the messages that arrived.
        Restart = "restart",
    }
    /// The way an agent acts.
    Planning {
        /// The heavy model calls tools itself.
        Tools = "tools",
        /// It makes a plan, the fast model compiles it to a chain, the light model completes steps.
        Chain = "chain",
    }
    /// The way an agent's messages are answered.
    Conduct {
        /// By the turn that does what was asked for.
        Direct = "direct",
        /// By a turn that acknowledges the message and queues a task, which is worked on beside the conversation.
        Background = "background",
    }
    /// The handling of calls that act outside in a turn that has seen content from outside.
    OutsideContent {
        /// A human is asked first.
        Consent = "consent",
        /// The calls are made.
        Trusted = "trusted",
    }
    /// The way an agent's messages are assigned to threads.
    Threads {
        /// One thread for each user.
        Single = "single",
        /// thread.match chooses the thread, and asks the user before it leaves the current one.
        Topics = "topics",
    }
    /// The role of the sender of a message in a conversation.
    MessageRole {
        User = "user",
        Agent = "agent",
        /// The report that no agent could receive a message.
        Failure = "failure",
    }
    /// The owner of a cap on spending.
    CapOwner {
        Agent = "agent",
        User = "user",
        Key = "key",
        Installation = "installation",
    }
    /// The amount that a cap bounds.
    CapKind {
        TokensPerDay = "tokens_per_day",
        TokensInTotal = "tokens_in_total",
        CostPerDay = "cost_per_day",
        CostInTotal = "cost_in_total",
    }
    /// The ending of a model's answer.
    AnswerEnding {
        Complete = "complete",
        /// Cut off at the length limit: the rest is not known.
        Cut = "cut",
        /// Ended by a filter of the model server.
        Filtered = "filtered",
        /// The model declines to answer, and says so.
        Refused = "refused",
        /// Ended by an error of the model server: the text before it is at best a part of an answer.
        Failed = "failed",
        /// The answer has no text and no calls.
        Empty = "empty",
    }
    /// The subject matter of a memory.
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
    /// The source of an event.
    EventSource {
        User = "user",
        Tool = "tool",
        System = "system",
        Internal = "internal",
    }
    /// The kind of content of an event.
    Modality {
        Text = "text",
        Image = "image",
        Audio = "audio",
        State = "state",
    }
    /// The status of an action.
    ActionStatus {
        /// It has not begun.
        Asked = "asked",
        Running = "running",
        /// It is not known whether its effect happened.
        InDoubt = "in_doubt",
        Done = "done",
        Failed = "failed",
    }
    /// The reason a tool call has no result.
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
        /// It was begun, and it is not known whether its effect happened.
        InDoubt = "in_doubt",
        /// The result exceeds the configured size.
        TooLarge = "too_large",
        /// Something it needs is unavailable; nothing was done.
        Unavailable = "unavailable",
        /// A human must consent to it first; nothing was begun.
        ApprovalRequired = "approval_required",
    }
    /// A supervisor's answer to a request about a process.
    ProcessAnswered {
        Done = "done",
        /// Refused, with the reason.
        Refused = "refused",
        /// This supervisor does not run it.
        NotHere = "not_here",
        /// It was stopped before it began.
        NotBegun = "not_begun",
    }
    /// The answer of tool-runner to a request to sign in at an MCP server.
    McpSignInAnswered {
        Done = "done",
        /// Refused, with the reason.
        Refused = "refused",
        /// No such server is configured.
        NoServer = "no_server",
    }
    /// A person's answer to a question of an MCP server.
    QuestionAnswered {
        /// Accepted, with the fields that the question asks for.
        Accept = "accept",
        /// The call may go on without an answer.
        Decline = "decline",
        /// The call is not to go on.
        Cancel = "cancel",
    }
    /// The outcome of an answer to a question of an MCP server.
    QuestionOutcome {
        Taken = "taken",
        /// The answer does not fit the question, which stays open.
        Unfit = "unfit",
    }
    /// The outcome of a process.
    ProcessOutcome {
        /// It ended by itself.
        Exited = "exited",
        /// A signal ended it.
        Signaled = "signaled",
        TimedOut = "timed_out",
        /// Stopped on request, or because its supervisor was told to stop.
        Canceled = "canceled",
        /// Never run: it was not allowed.
        Refused = "refused",
        /// Never run: it could not be started.
        SpawnFailed = "spawn_failed",
        /// Killed with its supervisor, or its end is not known for another reason.
        SupervisorLost = "supervisor_lost",
    }
    /// The kind of a search hit.
    HitKind {
        Thread = "thread",
        Task = "task",
        Memory = "memory",
        Message = "message",
        State = "state",
    }
    /// The backend that answers a search.
    SearchBackend {
        Meilisearch = "meilisearch",
        Postgres = "postgres",
    }
    /// A scope of an API key.
    Scope {
        /// Allows reading the data that exists, and following events.
        Read = "read",
        /// Allows speaking as a user: messages, choices, approvals and orders.
        Write = "write",
        /// Allows everything, including agents, keys, dead letters and the read model.
        Admin = "admin",
    }
    /// The sections of the export of a user's data, in their order.
    ExportSection {
        Threads = "threads",
        /// Messages that they sent, messages to them, and messages that reached nobody.
        Messages = "messages",
        Tasks = "tasks",
        Memories = "memories",
        /// Each write and each deletion of a key.
        InnerState = "inner_state",
        /// Calls that they were asked to approve.
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
    /// The progress of forgetting a user.
    ForgettingStep {
        /// It was asked for.
        Asked = "asked",
        /// New data is sealed with another data key.
        Replaced = "replaced",
        /// Nothing more is sealed with the previous data keys, and the read model has all data that was.
        Found = "found",
        /// The previous data keys are destroyed.
        Destroyed = "destroyed",
        /// Agents are told.
        Told = "told",
        /// Earlier snapshots can no longer be opened.
        Resealed = "resealed",
        /// The read models are rebuilt.
        Rebuilding = "rebuilding",
        /// Nothing is left to do.
        Done = "done",
    }
    /// The state of a generation of a read model.
    GenerationState {
        /// It was asked for.
        Asked = "asked",
        /// It reads the log up to the position at which the log ended when it was begun.
        Filling = "filling",
        /// Its indexes are built.
        Indexing = "indexing",
        /// It reads on to the position of the live one, and is compared with it.
        Comparing = "comparing",
        /// It differs from the live one, and waits for a decision.
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
    /// The kind of a request of one agent to another.
    RequestKind {
        /// To work on a task.
        Work = "work",
        /// To leave a task that it was asked to work on.
        Cancel = "cancel",
        /// Of a lead to its workers: to begin no task; with the next, to go on.
        Pause = "pause",
        Resume = "resume",
        /// To call one of its tools, at once.
        Call = "call",
        /// To think about something and answer.
        Think = "think",
    }
    /// The verdict of a review on an agent's answer before it is given.
    ReviewVerdict {
        /// The answer is given.
        Finished = "finished",
        /// The answer is rewritten.
        Revise = "revise",
        /// Something is to be done before the answer.
        Act = "act",
    }
    /// The tier of a model.
    ModelTier {
        Heavy = "heavy",
        Fast = "fast",
        Light = "light",
    }
    /// A kind of input that a submodule is shown.
    HeardKind {
        /// Users' messages and choices.
        Message = "message",
        /// The result of a call, or of a request to another agent.
        Result = "result",
        /// The end of a process in the background.
        Process = "process",
        /// Events from outside: mail, events of other systems.
        Event = "event",
        /// A task that begins because it is due, or because its turn has come.
        Task = "task",
        /// A human's verdict.
        Approval = "approval",
    }
    /// The reason a submodule gave no usable answer.
    SubmoduleFailure {
        /// The submodule had not answered by its deadline.
        Late = "late",
        Failed = "failed",
    }
    /// The kind of a thought.
    ThoughtKind {
        Thought = "thought",
        /// A thought for the next decision in its thread.
        Left = "left",
        /// A question to a submodule.
        Asked = "asked",
        /// The submodule had not answered by its deadline.
        Late = "late",
        Failed = "failed",
        /// Decisions were shown to submodules.
        Broadcast = "broadcast",
    }
    /// The outcome of the retry of a dead letter.
    RetryOutcome {
        /// The message was handled, by this retry or by an earlier one.
        Handled = "handled",
        Failed = "failed",
    }
    /// The status of a team.
    TeamStatus {
        Active = "active",
        /// Its lead and its workers begin no task.
        Paused = "paused",
        /// Permanently.
        Archived = "archived",
    }
    /// The source of a tool.
    ToolSource {
        /// Kairo itself.
        BuiltIn = "built_in",
        Mcp = "mcp",
        Worker = "worker",
        /// A request to a web API.
        WebApi = "web_api",
    }
    /// The state of an MCP server or a tool worker.
    ToolServerState {
        /// It has not been reached yet.
        Starting = "starting",
        Up = "up",
        /// It is gone, or does not answer; the connection is tried again.
        Down = "down",
        /// Permanently.
        Stopped = "stopped",
    }
    /// The reasons for which the work of agents waits.
    WaitReason {
        /// A human's consent to a call.
        Consent = "consent",
        /// A user's choice of a thread.
        Choice = "choice",
        /// A replica that begins a call.
        Runner = "runner",
        /// The end of a call that has begun.
        Tool = "tool",
        /// An agent's decision: most of the time models take.
        Decision = "decision",
    }
    /// The rule for a human's consent to calls of a tool.
    ConsentRule {
        Always = "always",
        /// Only for calls with certain arguments.
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
    WaitRow.waits_for as waits_for_word: WaitReason,
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
    ChooseRequest.option as option_word: OfferAnswer,
    ApproveRequest.verdict as verdict_word: Verdict,
    AnswerQuestionRequest.action as action_word: QuestionAnswered,
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
