// @generated from the services of the protos.

rpcs! { generated::administration_server::Administration:
    make_ticket(MakeTicketRequest) -> MakeTicketResponse = POST MAKE_TICKET,
    list_keys(ListKeysRequest) -> ListKeysResponse = GET LIST_KEYS,
    make_key(MakeKeyRequest) -> MakeKeyResponse = POST MAKE_KEY,
    revoke_key(RevokeKeyRequest) -> RevokeKeyResponse = DELETE REVOKE_KEY,
    list_projections(ListProjectionsRequest) -> ListProjectionsResponse = GET LIST_PROJECTIONS,
    rebuild_projection(RebuildProjectionRequest) -> RebuildProjectionResponse = POST REBUILD_PROJECTION,
    swap_projection(SwapProjectionRequest) -> SwapProjectionResponse = POST SWAP_PROJECTION,
    digest_projection(DigestProjectionRequest) -> DigestProjectionResponse = GET DIGEST_PROJECTION,
    drop_generation(DropGenerationRequest) -> DropGenerationResponse = DELETE DROP_GENERATION,
    promote_fleet(PromoteFleetRequest) -> PromoteFleetResponse = POST PROMOTE_FLEET,
    list_dead_letters(ListDeadLettersRequest) -> ListDeadLettersResponse = GET LIST_DEAD_LETTERS,
    get_agent_log(GetAgentLogRequest) -> GetAgentLogResponse = GET GET_AGENT_LOG,
    get_log(GetLogRequest) -> GetLogResponse = GET GET_LOG,
}

rpcs! { generated::commands_server::Commands:
    send_message(SendMessageRequest) -> SendMessageResponse = POST SEND_MESSAGE,
    choose(ChooseRequest) -> ChooseResponse = POST CHOOSE,
    approve(ApproveRequest) -> ApproveResponse = POST APPROVE,
    order(OrderRequest) -> OrderResponse = POST ORDER,
    define_agent(DefineAgentRequest) -> DefineAgentResponse = POST DEFINE_AGENT,
    create_team(CreateTeamRequest) -> CreateTeamResponse = POST CREATE_TEAM,
    import_conversation(ImportConversationRequest) -> ImportConversationResponse = POST IMPORT_CONVERSATION,
}

rpcs! { generated::queries_server::Queries:
    list_agents(ListAgentsRequest) -> ListAgentsResponse = GET LIST_AGENTS,
    list_commands(ListCommandsRequest) -> ListCommandsResponse = GET LIST_COMMANDS,
    get_agent(GetAgentRequest) -> GetAgentResponse = GET GET_AGENT,
    list_teams(ListTeamsRequest) -> ListTeamsResponse = GET LIST_TEAMS,
    get_team(GetTeamRequest) -> GetTeamResponse = GET GET_TEAM,
    list_threads(ListThreadsRequest) -> ListThreadsResponse = GET LIST_THREADS,
    get_thread(GetThreadRequest) -> GetThreadResponse = GET GET_THREAD,
    list_thread_messages(ListThreadMessagesRequest) -> ListThreadMessagesResponse = GET LIST_THREAD_MESSAGES,
    get_interaction(GetInteractionRequest) -> GetInteractionResponse = GET GET_INTERACTION,
    list_tasks(ListTasksRequest) -> ListTasksResponse = GET LIST_TASKS,
    get_task(GetTaskRequest) -> GetTaskResponse = GET GET_TASK,
    get_chain(GetChainRequest) -> GetChainResponse = GET GET_CHAIN,
    list_conversations(ListConversationsRequest) -> ListConversationsResponse = GET LIST_CONVERSATIONS,
    get_conversation(GetConversationRequest) -> GetConversationResponse = GET GET_CONVERSATION,
    list_memories(ListMemoriesRequest) -> ListMemoriesResponse = GET LIST_MEMORIES,
    get_memory(GetMemoryRequest) -> GetMemoryResponse = GET GET_MEMORY,
    list_inner_state(ListInnerStateRequest) -> ListInnerStateResponse = GET LIST_INNER_STATE,
    get_inner_state_history(GetInnerStateHistoryRequest) -> GetInnerStateHistoryResponse = GET GET_INNER_STATE_HISTORY,
    search(SearchRequest) -> SearchResponse = GET SEARCH,
    get_inbox(GetInboxRequest) -> GetInboxResponse = GET GET_INBOX,
    list_thoughts(ListThoughtsRequest) -> ListThoughtsResponse = GET LIST_THOUGHTS,
    list_submodules(ListSubmodulesRequest) -> ListSubmodulesResponse = GET LIST_SUBMODULES,
    list_briefings(ListBriefingsRequest) -> ListBriefingsResponse = GET LIST_BRIEFINGS,
    list_approvals(ListApprovalsRequest) -> ListApprovalsResponse = GET LIST_APPROVALS,
    get_approval(GetApprovalRequest) -> GetApprovalResponse = GET GET_APPROVAL,
    list_actions(ListActionsRequest) -> ListActionsResponse = GET LIST_ACTIONS,
    get_action(GetActionRequest) -> GetActionResponse = GET GET_ACTION,
    list_processes(ListProcessesRequest) -> ListProcessesResponse = GET LIST_PROCESSES,
    get_process(GetProcessRequest) -> GetProcessResponse = GET GET_PROCESS,
    list_events(ListEventsRequest) -> ListEventsResponse = GET LIST_EVENTS,
    get_usage(GetUsageRequest) -> GetUsageResponse = GET GET_USAGE,
    get_status(GetStatusRequest) -> GetStatusResponse = GET GET_STATUS,
}

services! {
    generated::events_server::EventsServer<Endpoints>,
    generated::administration_server::AdministrationServer<Endpoints>,
    generated::commands_server::CommandsServer<Endpoints>,
    generated::queries_server::QueriesServer<Endpoints>,
}
