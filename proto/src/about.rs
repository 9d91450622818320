//! What messages are about: who has to do with a few of them matches these groups, and names what is passed over. A new
//! message is put into a group here, and then there is no building without those who match that group.

use crate::{
    body::Body,
    v1::{self, decided_event::Event},
};

/// What a message is about.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum About<'m> {
    User(User<'m>),
    Agent(Agent<'m>),
    Decision(&'m v1::AgentDecision),
    Decided(Decided<'m>),
    Outside(Outside<'m>),
    Tool(Tool<'m>),
    Process(Process<'m>),
    System(System<'m>),
    Live(Live<'m>),
}

/// What an event of a decision is about.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Decided<'m> {
    Turn(Turn<'m>),
    Thread(Thread<'m>),
    Chain(Chain<'m>),
    Task(Task<'m>),
    Memory(&'m v1::MemoryAppended),
}

macro_rules! groups {
    ($($(#[$doc:meta])* $group:ident { $($variant:ident($message:ident)),* $(,)? })*) => {
        $($(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub enum $group<'m> {
            $($variant(&'m v1::$message)),*
        })*
    };
}

groups! {
    /// What users say, as it entered.
    User {
        Message(UserMessage),
        Undelivered(UserMessageUndelivered),
        Choice(UserChoice),
        Approval(UserApproval),
        Command(UserCommand),
    }
    /// What agents are, and what is said to them.
    Agent {
        Defined(AgentDefined),
        Message(AgentMessage),
        Choice(AgentChoice),
        Approval(AgentApproval),
        Command(AgentCommand),
    }
    /// What an agent does in a turn.
    Turn {
        Thought(AgentThought),
        Action(AgentAction),
        Failed(AgentFailed),
        Joined(AgentJoined),
    }
    /// Which thread a turn belongs to, and what becomes of threads.
    Thread {
        Created(ThreadCreated),
        Matched(ThreadMatched),
        Suggested(ThreadSuggested),
        Summarized(ThreadSummarized),
        Archived(ThreadArchived),
    }
    /// The steps that a turn consists of.
    Chain {
        Started(ChainStarted),
        ApprovalRequested(ApprovalRequested),
        StepEnded(ChainStepEnded),
        Ended(ChainEnded),
    }
    /// What is to be done later.
    Task {
        Scheduled(TaskScheduled),
        Fired(TaskFired),
        Changed(TaskChanged),
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
        Capabilities(ProcessCapabilities),
        Basis(DecisionBasis),
        Epoch(Epoch),
        DeadLetter(DeadLetter),
        Status(ServiceStatus),
    }
    /// What is seen while it happens, and never stored.
    Live {
        Token(LiveToken),
        Output(LiveOutput),
    }
}

impl Body {
    pub fn about(&self) -> About<'_> {
        match self {
            Body::UserMessage(it) => About::User(User::Message(it)),
            Body::UserMessageUndelivered(it) => About::User(User::Undelivered(it)),
            Body::UserChoice(it) => About::User(User::Choice(it)),
            Body::UserApproval(it) => About::User(User::Approval(it)),
            Body::UserCommand(it) => About::User(User::Command(it)),
            Body::AgentDefined(it) => About::Agent(Agent::Defined(it)),
            Body::AgentMessage(it) => About::Agent(Agent::Message(it)),
            Body::AgentChoice(it) => About::Agent(Agent::Choice(it)),
            Body::AgentApproval(it) => About::Agent(Agent::Approval(it)),
            Body::AgentCommand(it) => About::Agent(Agent::Command(it)),
            Body::AgentDecision(it) => About::Decision(it),
            Body::AgentThought(it) => About::Decided(Decided::Turn(Turn::Thought(it))),
            Body::AgentAction(it) => About::Decided(Decided::Turn(Turn::Action(it))),
            Body::AgentFailed(it) => About::Decided(Decided::Turn(Turn::Failed(it))),
            Body::AgentJoined(it) => About::Decided(Decided::Turn(Turn::Joined(it))),
            Body::ThreadCreated(it) => About::Decided(Decided::Thread(Thread::Created(it))),
            Body::ThreadMatched(it) => About::Decided(Decided::Thread(Thread::Matched(it))),
            Body::ThreadSuggested(it) => About::Decided(Decided::Thread(Thread::Suggested(it))),
            Body::ThreadSummarized(it) => About::Decided(Decided::Thread(Thread::Summarized(it))),
            Body::ThreadArchived(it) => About::Decided(Decided::Thread(Thread::Archived(it))),
            Body::ChainStarted(it) => About::Decided(Decided::Chain(Chain::Started(it))),
            Body::ApprovalRequested(it) => About::Decided(Decided::Chain(Chain::ApprovalRequested(it))),
            Body::ChainStepEnded(it) => About::Decided(Decided::Chain(Chain::StepEnded(it))),
            Body::ChainEnded(it) => About::Decided(Decided::Chain(Chain::Ended(it))),
            Body::TaskScheduled(it) => About::Decided(Decided::Task(Task::Scheduled(it))),
            Body::TaskFired(it) => About::Decided(Decided::Task(Task::Fired(it))),
            Body::TaskChanged(it) => About::Decided(Decided::Task(Task::Changed(it))),
            Body::MemoryAppended(it) => About::Decided(Decided::Memory(it)),
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
            Body::ProcessCapabilities(it) => About::System(System::Capabilities(it)),
            Body::DecisionBasis(it) => About::System(System::Basis(it)),
            Body::Epoch(it) => About::System(System::Epoch(it)),
            Body::DeadLetter(it) => About::System(System::DeadLetter(it)),
            Body::ServiceStatus(it) => About::System(System::Status(it)),
            Body::LiveToken(it) => About::Live(Live::Token(it)),
            Body::LiveOutput(it) => About::Live(Live::Output(it)),
        }
    }
}

impl Event {
    pub fn about(&self) -> Decided<'_> {
        match self {
            Event::Thought(it) => Decided::Turn(Turn::Thought(it)),
            Event::Action(it) => Decided::Turn(Turn::Action(it)),
            Event::Failed(it) => Decided::Turn(Turn::Failed(it)),
            Event::Joined(it) => Decided::Turn(Turn::Joined(it)),
            Event::ThreadCreated(it) => Decided::Thread(Thread::Created(it)),
            Event::ThreadMatched(it) => Decided::Thread(Thread::Matched(it)),
            Event::ThreadSuggested(it) => Decided::Thread(Thread::Suggested(it)),
            Event::ThreadSummarized(it) => Decided::Thread(Thread::Summarized(it)),
            Event::ThreadArchived(it) => Decided::Thread(Thread::Archived(it)),
            Event::ChainStarted(it) => Decided::Chain(Chain::Started(it)),
            Event::ApprovalRequested(it) => Decided::Chain(Chain::ApprovalRequested(it)),
            Event::ChainStepEnded(it) => Decided::Chain(Chain::StepEnded(it)),
            Event::ChainEnded(it) => Decided::Chain(Chain::Ended(it)),
            Event::TaskScheduled(it) => Decided::Task(Task::Scheduled(it)),
            Event::TaskFired(it) => Decided::Task(Task::Fired(it)),
            Event::TaskChanged(it) => Decided::Task(Task::Changed(it)),
            Event::MemoryAppended(it) => Decided::Memory(it),
        }
    }
}
