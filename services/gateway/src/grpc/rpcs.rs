//! The rpcs that are asked and answered once, each with the endpoint that answers it.

use axum::http::Method;
use kairo_proto::v1::*;
use tonic::{Request, Response, Status};

use super::{
    endpoints::Endpoints,
    generated::{commands_server::Commands, queries_server::Queries},
};

/// The service, its rpcs and their endpoints; what stands in braces is the field that fills the place.
macro_rules! rpcs {
    ($service:ident, $endpoints:ident: $($rpc:ident($asked:ty) -> $answer:ty = $method:ident $route:literal,)+) => {
        #[tonic::async_trait]
        impl $service for Endpoints {
            $(async fn $rpc(&self, request: Request<$asked>) -> Result<Response<$answer>, Status> {
                self.answer(Method::$method, $route, request).await
            })+
        }

        #[cfg(test)]
        pub const $endpoints: &[(&str, &str, &str)] = &[$((stringify!($rpc), stringify!($method), $route)),+];
    };
}

rpcs! { Commands, COMMANDS:
    send_message(SendMessageRequest) -> SendMessageResponse = POST "/v1/messages",
    choose(ChooseRequest) -> ChooseResponse = POST "/v1/choices",
    approve(ApproveRequest) -> ApproveResponse = POST "/v1/approvals",
    order(OrderRequest) -> OrderResponse = POST "/v1/commands",
    define_agent(DefineAgentRequest) -> DefineAgentResponse = POST "/v1/agents",
}

rpcs! { Queries, QUERIES:
    list_agents(ListAgentsRequest) -> ListAgentsResponse = GET "/v1/agents",
    get_agent(GetAgentRequest) -> GetAgentResponse = GET "/v1/agents/{agent}",
    list_threads(ListThreadsRequest) -> ListThreadsResponse = GET "/v1/threads",
    get_thread(GetThreadRequest) -> GetThreadResponse = GET "/v1/threads/{thread_id}",
    list_tasks(ListTasksRequest) -> ListTasksResponse = GET "/v1/tasks",
    get_task(GetTaskRequest) -> GetTaskResponse = GET "/v1/tasks/{task_id}",
    get_chain(GetChainRequest) -> GetChainResponse = GET "/v1/chains/{chain_id}",
    list_conversations(ListConversationsRequest) -> ListConversationsResponse = GET "/v1/conversations",
    get_conversation(GetConversationRequest) -> GetConversationResponse = GET "/v1/conversations/{agent}",
    list_memories(ListMemoriesRequest) -> ListMemoriesResponse = GET "/v1/memories",
    get_memory(GetMemoryRequest) -> GetMemoryResponse = GET "/v1/memories/{agent}/{memory_id}",
    search(SearchRequest) -> SearchResponse = GET "/v1/search",
    get_inbox(GetInboxRequest) -> GetInboxResponse = GET "/v1/inbox",
    list_approvals(ListApprovalsRequest) -> ListApprovalsResponse = GET "/v1/approvals",
    get_approval(GetApprovalRequest) -> GetApprovalResponse = GET "/v1/approvals/{action_id}",
    list_actions(ListActionsRequest) -> ListActionsResponse = GET "/v1/actions",
    get_action(GetActionRequest) -> GetActionResponse = GET "/v1/actions/{action_id}",
    list_processes(ListProcessesRequest) -> ListProcessesResponse = GET "/v1/processes",
    get_process(GetProcessRequest) -> GetProcessResponse = GET "/v1/processes/{process_id}",
    list_events(ListEventsRequest) -> ListEventsResponse = GET "/v1/events",
    get_usage(GetUsageRequest) -> GetUsageResponse = GET "/v1/usage",
    get_status(GetStatusRequest) -> GetStatusResponse = GET "/v1/status",
}
