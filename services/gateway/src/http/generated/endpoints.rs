// @generated from the services of the protos.

pub const SEND_MESSAGE: &str = "/v1/messages";
pub const CHOOSE: &str = "/v1/choices";
pub const APPROVE: &str = "/v1/approvals";
pub const ANSWER_QUESTION: &str = "/v1/questions/{question_id}";
pub const ORDER: &str = "/v1/commands";
pub const QUEUE_TASK: &str = "/v1/tasks";
pub const DEFINE_AGENT: &str = "/v1/agents";
pub const CHANGE_AGENT: &str = "/v1/agents/{agent}";
pub const ROLL_BACK_AGENT: &str = "/v1/agents/{agent}/rollback";
pub const CREATE_TEAM: &str = "/v1/teams";
pub const IMPORT_CONVERSATION: &str = "/v1/conversations/{agent}/import";
pub const STREAM: &str = "/v1/events/stream";
pub const MAKE_TICKET: &str = "/v1/tickets";
pub const LIST_KEYS: &str = "/v1/keys";
pub const MAKE_KEY: &str = "/v1/keys";
pub const REVOKE_KEY: &str = "/v1/keys/{key_id}";
pub const LIST_PROJECTIONS: &str = "/v1/projections";
pub const REBUILD_PROJECTION: &str = "/v1/projections/{projection}/rebuild";
pub const SWAP_PROJECTION: &str = "/v1/projections/{projection}/swap";
pub const DIGEST_PROJECTION: &str = "/v1/projections/{projection}/digests";
pub const DROP_GENERATION: &str = "/v1/projections/{projection}/generations/{generation}";
pub const GET_FLEET: &str = "/v1/fleet";
pub const PROMOTE_FLEET: &str = "/v1/fleet/promote";
pub const HOLD_FLEET: &str = "/v1/fleet/hold";
pub const RELEASE_FLEET: &str = "/v1/fleet/release";
pub const FORGET_USER: &str = "/v1/users/{user}/forget";
pub const GET_FORGETTING: &str = "/v1/users/{user}/forget";
pub const EXPORT_USER: &str = "/v1/users/{user}/export";
pub const REWRAP_DATA_KEYS: &str = "/v1/privacy/rewrap";
pub const BEGIN_MCP_LOGIN: &str = "/v1/mcp/{server}/login";
pub const FINISH_MCP_LOGIN: &str = "/v1/mcp/{server}/login/finish";
pub const MCP_LOGOUT: &str = "/v1/mcp/{server}/login";
pub const LIST_MCP_SIGN_INS: &str = "/v1/mcp/sign-ins";
pub const LIST_DEAD_LETTERS: &str = "/v1/dead-letters";
pub const RETRY_DEAD_LETTER: &str = "/v1/dead-letters/{letter}/retry";
pub const GET_AGENT_LOG: &str = "/v1/agents/{agent}/log";
pub const GET_LOG: &str = "/v1/log";
pub const LIST_AGENTS: &str = "/v1/agents";
pub const LIST_COMMANDS: &str = "/v1/commands";
pub const GET_AGENT: &str = "/v1/agents/{agent}";
pub const LIST_AGENT_VERSIONS: &str = "/v1/agents/{agent}/versions";
pub const LIST_TEAMS: &str = "/v1/teams";
pub const GET_TEAM: &str = "/v1/teams/{team}";
pub const LIST_THREADS: &str = "/v1/threads";
pub const GET_THREAD: &str = "/v1/threads/{thread_id}";
pub const LIST_THREAD_MESSAGES: &str = "/v1/threads/{thread_id}/messages";
pub const GET_INTERACTION: &str = "/v1/interactions/{turn_id}";
pub const LIST_TASKS: &str = "/v1/tasks";
pub const GET_TASK: &str = "/v1/tasks/{task_id}";
pub const AWAIT_TASK: &str = "/v1/tasks/{task_id}/result";
pub const GET_CHAIN: &str = "/v1/chains/{chain_id}";
pub const LIST_CONVERSATIONS: &str = "/v1/conversations";
pub const GET_CONVERSATION: &str = "/v1/conversations/{agent}";
pub const LIST_MEMORIES: &str = "/v1/memories";
pub const GET_MEMORY: &str = "/v1/memories/{agent}/{memory_id}";
pub const GET_MEMORY_HISTORY: &str = "/v1/memories/{agent}/{memory_id}/history";
pub const LIST_INNER_STATE: &str = "/v1/agents/{agent}/inner-state";
pub const GET_INNER_STATE_HISTORY: &str = "/v1/agents/{agent}/inner-state/history";
pub const SEARCH: &str = "/v1/search";
pub const GET_INBOX: &str = "/v1/inbox";
pub const LIST_THOUGHTS: &str = "/v1/agents/{agent}/thoughts";
pub const LIST_SUBMODULES: &str = "/v1/agents/{agent}/submodules";
pub const LIST_BRIEFINGS: &str = "/v1/briefings";
pub const LIST_APPROVALS: &str = "/v1/approvals";
pub const GET_APPROVAL: &str = "/v1/approvals/{action_id}";
pub const LIST_ACTIONS: &str = "/v1/actions";
pub const GET_ACTION: &str = "/v1/actions/{action_id}";
pub const LIST_PROCESSES: &str = "/v1/processes";
pub const GET_PROCESS: &str = "/v1/processes/{process_id}";
pub const LIST_EVENTS: &str = "/v1/events";
pub const GET_EVENTS_OUTLINE: &str = "/v1/events/outline";
pub const GET_USAGE: &str = "/v1/usage";
pub const GET_STATUS: &str = "/v1/status";
pub const LIST_TOOLS: &str = "/v1/tools";
pub const GET_TOOL: &str = "/v1/tools/{tool}";

/// The callers who may use each of them.
pub const ACCESS: &[Access] = &[
    row("POST", SEND_MESSAGE, WRITE, Asked, Asked),
    row("POST", CHOOSE, WRITE, Asked, Asked),
    row("POST", APPROVE, WRITE, Asked, Asked),
    row("POST", ANSWER_QUESTION, WRITE, Asked, Asked),
    row("POST", ORDER, WRITE, Asked, Asked),
    row("POST", QUEUE_TASK, WRITE, Asked, Asked),
    row("POST", DEFINE_AGENT, ADMIN, Asked, Closed),
    row("PATCH", CHANGE_AGENT, ADMIN, Named, Closed),
    row("POST", ROLL_BACK_AGENT, ADMIN, Named, Closed),
    row("POST", CREATE_TEAM, ADMIN, Asked, Closed),
    row("POST", IMPORT_CONVERSATION, WRITE, Named, Asked),
    row("GET", STREAM, READ, Named, Asked),
    row("POST", MAKE_TICKET, KEY, Free, Free),
    row("GET", LIST_KEYS, ADMIN, Closed, Closed),
    row("POST", MAKE_KEY, ADMIN, Closed, Closed),
    row("DELETE", REVOKE_KEY, ADMIN, Closed, Closed),
    row("GET", LIST_PROJECTIONS, READ, Free, Free),
    row("POST", REBUILD_PROJECTION, ADMIN, Closed, Closed),
    row("POST", SWAP_PROJECTION, ADMIN, Closed, Closed),
    row("GET", DIGEST_PROJECTION, ADMIN, Closed, Closed),
    row("DELETE", DROP_GENERATION, ADMIN, Closed, Closed),
    row("GET", GET_FLEET, ADMIN, Closed, Closed),
    row("POST", PROMOTE_FLEET, ADMIN, Closed, Closed),
    row("POST", HOLD_FLEET, ADMIN, Closed, Closed),
    row("POST", RELEASE_FLEET, ADMIN, Closed, Closed),
    row("POST", FORGET_USER, ADMIN, Closed, Closed),
    row("GET", GET_FORGETTING, ADMIN, Closed, Closed),
    row("GET", EXPORT_USER, ADMIN, Closed, Closed),
    row("POST", REWRAP_DATA_KEYS, ADMIN, Closed, Closed),
    row("POST", BEGIN_MCP_LOGIN, WRITE, Asked, Asked),
    row("POST", FINISH_MCP_LOGIN, WRITE, Asked, Asked),
    row("DELETE", MCP_LOGOUT, WRITE, Asked, Asked),
    row("GET", LIST_MCP_SIGN_INS, READ, Asked, Named),
    row("GET", LIST_DEAD_LETTERS, ADMIN, Closed, Closed),
    row("POST", RETRY_DEAD_LETTER, ADMIN, Closed, Closed),
    row("GET", GET_AGENT_LOG, ADMIN, Closed, Closed),
    row("GET", GET_LOG, ADMIN, Closed, Closed),
    row("GET", LIST_AGENTS, READ, Asked, Free),
    row("GET", LIST_COMMANDS, READ, Asked, Free),
    row("GET", GET_AGENT, READ, Named, Free),
    row("GET", LIST_AGENT_VERSIONS, ADMIN, Named, Closed),
    row("GET", LIST_TEAMS, READ, Asked, Asked),
    row("GET", GET_TEAM, READ, Asked, Asked),
    row("GET", LIST_THREADS, READ, Named, Named),
    row("GET", GET_THREAD, READ, Asked, Asked),
    row("GET", LIST_THREAD_MESSAGES, READ, Asked, Asked),
    row("GET", GET_INTERACTION, READ, Asked, Asked),
    row("GET", LIST_TASKS, READ, Named, Named),
    row("GET", GET_TASK, READ, Asked, Asked),
    row("GET", AWAIT_TASK, READ, Asked, Asked),
    row("GET", GET_CHAIN, READ, Asked, Asked),
    row("GET", LIST_CONVERSATIONS, READ, Named, Named),
    row("GET", GET_CONVERSATION, READ, Named, Named),
    row("GET", LIST_MEMORIES, READ, Named, Named),
    row("GET", GET_MEMORY, READ, Asked, Asked),
    row("GET", GET_MEMORY_HISTORY, READ, Asked, Asked),
    row("GET", LIST_INNER_STATE, READ, Named, Named),
    row("GET", GET_INNER_STATE_HISTORY, READ, Named, Named),
    row("GET", SEARCH, READ, Named, Named),
    row("GET", GET_INBOX, READ, Asked, Named),
    row("GET", LIST_THOUGHTS, READ, Named, Asked),
    row("GET", LIST_SUBMODULES, READ, Named, Free),
    row("GET", LIST_BRIEFINGS, READ, Named, Named),
    row("GET", LIST_APPROVALS, READ, Named, Named),
    row("GET", GET_APPROVAL, READ, Asked, Asked),
    row("GET", LIST_ACTIONS, READ, Named, Asked),
    row("GET", GET_ACTION, READ, Asked, Asked),
    row("GET", LIST_PROCESSES, READ, Named, Asked),
    row("GET", GET_PROCESS, READ, Asked, Asked),
    row("GET", LIST_EVENTS, READ, Named, Asked),
    row("GET", GET_EVENTS_OUTLINE, READ, Named, Closed),
    row("GET", GET_USAGE, READ, Named, Named),
    row("GET", GET_STATUS, READ, Free, Free),
    row("GET", LIST_TOOLS, READ, Free, Free),
    row("GET", GET_TOOL, READ, Free, Free),
];

/// The handlers of all paths, by rpc.
pub struct Handlers {
    pub send_message: MethodRouter<Gateway>,
    pub choose: MethodRouter<Gateway>,
    pub approve: MethodRouter<Gateway>,
    pub answer_question: MethodRouter<Gateway>,
    pub order: MethodRouter<Gateway>,
    pub queue_task: MethodRouter<Gateway>,
    pub define_agent: MethodRouter<Gateway>,
    pub change_agent: MethodRouter<Gateway>,
    pub roll_back_agent: MethodRouter<Gateway>,
    pub create_team: MethodRouter<Gateway>,
    pub import_conversation: MethodRouter<Gateway>,
    pub stream: MethodRouter<Gateway>,
    pub make_ticket: MethodRouter<Gateway>,
    pub list_keys: MethodRouter<Gateway>,
    pub make_key: MethodRouter<Gateway>,
    pub revoke_key: MethodRouter<Gateway>,
    pub list_projections: MethodRouter<Gateway>,
    pub rebuild_projection: MethodRouter<Gateway>,
    pub swap_projection: MethodRouter<Gateway>,
    pub digest_projection: MethodRouter<Gateway>,
    pub drop_generation: MethodRouter<Gateway>,
    pub get_fleet: MethodRouter<Gateway>,
    pub promote_fleet: MethodRouter<Gateway>,
    pub hold_fleet: MethodRouter<Gateway>,
    pub release_fleet: MethodRouter<Gateway>,
    pub forget_user: MethodRouter<Gateway>,
    pub get_forgetting: MethodRouter<Gateway>,
    pub export_user: MethodRouter<Gateway>,
    pub rewrap_data_keys: MethodRouter<Gateway>,
    pub begin_mcp_login: MethodRouter<Gateway>,
    pub finish_mcp_login: MethodRouter<Gateway>,
    pub mcp_logout: MethodRouter<Gateway>,
    pub list_mcp_sign_ins: MethodRouter<Gateway>,
    pub list_dead_letters: MethodRouter<Gateway>,
    pub retry_dead_letter: MethodRouter<Gateway>,
    pub get_agent_log: MethodRouter<Gateway>,
    pub get_log: MethodRouter<Gateway>,
    pub list_agents: MethodRouter<Gateway>,
    pub list_commands: MethodRouter<Gateway>,
    pub get_agent: MethodRouter<Gateway>,
    pub list_agent_versions: MethodRouter<Gateway>,
    pub list_teams: MethodRouter<Gateway>,
    pub get_team: MethodRouter<Gateway>,
    pub list_threads: MethodRouter<Gateway>,
    pub get_thread: MethodRouter<Gateway>,
    pub list_thread_messages: MethodRouter<Gateway>,
    pub get_interaction: MethodRouter<Gateway>,
    pub list_tasks: MethodRouter<Gateway>,
    pub get_task: MethodRouter<Gateway>,
    pub await_task: MethodRouter<Gateway>,
    pub get_chain: MethodRouter<Gateway>,
    pub list_conversations: MethodRouter<Gateway>,
    pub get_conversation: MethodRouter<Gateway>,
    pub list_memories: MethodRouter<Gateway>,
    pub get_memory: MethodRouter<Gateway>,
    pub get_memory_history: MethodRouter<Gateway>,
    pub list_inner_state: MethodRouter<Gateway>,
    pub get_inner_state_history: MethodRouter<Gateway>,
    pub search: MethodRouter<Gateway>,
    pub get_inbox: MethodRouter<Gateway>,
    pub list_thoughts: MethodRouter<Gateway>,
    pub list_submodules: MethodRouter<Gateway>,
    pub list_briefings: MethodRouter<Gateway>,
    pub list_approvals: MethodRouter<Gateway>,
    pub get_approval: MethodRouter<Gateway>,
    pub list_actions: MethodRouter<Gateway>,
    pub get_action: MethodRouter<Gateway>,
    pub list_processes: MethodRouter<Gateway>,
    pub get_process: MethodRouter<Gateway>,
    pub list_events: MethodRouter<Gateway>,
    pub get_events_outline: MethodRouter<Gateway>,
    pub get_usage: MethodRouter<Gateway>,
    pub get_status: MethodRouter<Gateway>,
    pub list_tools: MethodRouter<Gateway>,
    pub get_tool: MethodRouter<Gateway>,
}

impl Handlers {
    pub fn router(self) -> Router<Gateway> {
        Router::new()
            .route(SEND_MESSAGE, self.send_message)
            .route(CHOOSE, self.choose)
            .route(APPROVE, self.approve)
            .route(ANSWER_QUESTION, self.answer_question)
            .route(ORDER, self.order)
            .route(QUEUE_TASK, self.queue_task)
            .route(DEFINE_AGENT, self.define_agent)
            .route(CHANGE_AGENT, self.change_agent)
            .route(ROLL_BACK_AGENT, self.roll_back_agent)
            .route(CREATE_TEAM, self.create_team)
            .route(IMPORT_CONVERSATION, self.import_conversation)
            .route(STREAM, self.stream)
            .route(MAKE_TICKET, self.make_ticket)
            .route(LIST_KEYS, self.list_keys)
            .route(MAKE_KEY, self.make_key)
            .route(REVOKE_KEY, self.revoke_key)
            .route(LIST_PROJECTIONS, self.list_projections)
            .route(REBUILD_PROJECTION, self.rebuild_projection)
            .route(SWAP_PROJECTION, self.swap_projection)
            .route(DIGEST_PROJECTION, self.digest_projection)
            .route(DROP_GENERATION, self.drop_generation)
            .route(GET_FLEET, self.get_fleet)
            .route(PROMOTE_FLEET, self.promote_fleet)
            .route(HOLD_FLEET, self.hold_fleet)
            .route(RELEASE_FLEET, self.release_fleet)
            .route(FORGET_USER, self.forget_user)
            .route(GET_FORGETTING, self.get_forgetting)
            .route(EXPORT_USER, self.export_user)
            .route(REWRAP_DATA_KEYS, self.rewrap_data_keys)
            .route(BEGIN_MCP_LOGIN, self.begin_mcp_login)
            .route(FINISH_MCP_LOGIN, self.finish_mcp_login)
            .route(MCP_LOGOUT, self.mcp_logout)
            .route(LIST_MCP_SIGN_INS, self.list_mcp_sign_ins)
            .route(LIST_DEAD_LETTERS, self.list_dead_letters)
            .route(RETRY_DEAD_LETTER, self.retry_dead_letter)
            .route(GET_AGENT_LOG, self.get_agent_log)
            .route(GET_LOG, self.get_log)
            .route(LIST_AGENTS, self.list_agents)
            .route(LIST_COMMANDS, self.list_commands)
            .route(GET_AGENT, self.get_agent)
            .route(LIST_AGENT_VERSIONS, self.list_agent_versions)
            .route(LIST_TEAMS, self.list_teams)
            .route(GET_TEAM, self.get_team)
            .route(LIST_THREADS, self.list_threads)
            .route(GET_THREAD, self.get_thread)
            .route(LIST_THREAD_MESSAGES, self.list_thread_messages)
            .route(GET_INTERACTION, self.get_interaction)
            .route(LIST_TASKS, self.list_tasks)
            .route(GET_TASK, self.get_task)
            .route(AWAIT_TASK, self.await_task)
            .route(GET_CHAIN, self.get_chain)
            .route(LIST_CONVERSATIONS, self.list_conversations)
            .route(GET_CONVERSATION, self.get_conversation)
            .route(LIST_MEMORIES, self.list_memories)
            .route(GET_MEMORY, self.get_memory)
            .route(GET_MEMORY_HISTORY, self.get_memory_history)
            .route(LIST_INNER_STATE, self.list_inner_state)
            .route(GET_INNER_STATE_HISTORY, self.get_inner_state_history)
            .route(SEARCH, self.search)
            .route(GET_INBOX, self.get_inbox)
            .route(LIST_THOUGHTS, self.list_thoughts)
            .route(LIST_SUBMODULES, self.list_submodules)
            .route(LIST_BRIEFINGS, self.list_briefings)
            .route(LIST_APPROVALS, self.list_approvals)
            .route(GET_APPROVAL, self.get_approval)
            .route(LIST_ACTIONS, self.list_actions)
            .route(GET_ACTION, self.get_action)
            .route(LIST_PROCESSES, self.list_processes)
            .route(GET_PROCESS, self.get_process)
            .route(LIST_EVENTS, self.list_events)
            .route(GET_EVENTS_OUTLINE, self.get_events_outline)
            .route(GET_USAGE, self.get_usage)
            .route(GET_STATUS, self.get_status)
            .route(LIST_TOOLS, self.list_tools)
            .route(GET_TOOL, self.get_tool)
    }
}
