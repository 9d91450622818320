// @generated from the services of the protos.

rpcs! { Commands:
    send_message(SendMessageRequest) -> SendMessageResponse = POST SEND_MESSAGE,
    choose(ChooseRequest) -> ChooseResponse = POST CHOOSE,
    approve(ApproveRequest) -> ApproveResponse = POST APPROVE,
    order(OrderRequest) -> OrderResponse = POST ORDER,
    define_agent(DefineAgentRequest) -> DefineAgentResponse = POST DEFINE_AGENT,
}

rpcs! { Queries:
    list_agents(ListAgentsRequest) -> ListAgentsResponse = GET LIST_AGENTS,
    get_agent(GetAgentRequest) -> GetAgentResponse = GET GET_AGENT,
    list_threads(ListThreadsRequest) -> ListThreadsResponse = GET LIST_THREADS,
    get_thread(GetThreadRequest) -> GetThreadResponse = GET GET_THREAD,
    list_tasks(ListTasksRequest) -> ListTasksResponse = GET LIST_TASKS,
    get_task(GetTaskRequest) -> GetTaskResponse = GET GET_TASK,
    get_chain(GetChainRequest) -> GetChainResponse = GET GET_CHAIN,
    list_conversations(ListConversationsRequest) -> ListConversationsResponse = GET LIST_CONVERSATIONS,
    get_conversation(GetConversationRequest) -> GetConversationResponse = GET GET_CONVERSATION,
    list_memories(ListMemoriesRequest) -> ListMemoriesResponse = GET LIST_MEMORIES,
    get_memory(GetMemoryRequest) -> GetMemoryResponse = GET GET_MEMORY,
    search(SearchRequest) -> SearchResponse = GET SEARCH,
    get_inbox(GetInboxRequest) -> GetInboxResponse = GET GET_INBOX,
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
