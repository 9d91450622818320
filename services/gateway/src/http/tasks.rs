//! `GET /v1/tasks`: tasks, the newest first. `GET /v1/tasks/{id}`: one, with when it fired and what it did then.

use axum::{
    Extension,
    extract::{Path, State, rejection::PathRejection},
};
use kairo_proto::{
    v1::{GetTaskResponse, ListTasksResponse},
    words::{TaskKind, TaskStatus},
};
use kairo_read_model::{TaskState, TasksQuery};

use super::{
    Gateway, query,
    read_consistency::{PositionedResponse, ReadRequest},
    sorted_json::SortedJson,
};
use crate::{
    auth::Caller,
    config::GatewayConfig,
    fields::{NAME, RequestFields, parse_name, query_value},
    problem::Problem,
};

/// Times a task fired that are shown, and chains of them: its newest.
const FIRINGS: u32 = 20;

pub async fn list_tasks(
    State(gateway): State<Gateway>,
    asked: ReadRequest,
) -> Result<PositionedResponse<SortedJson<ListTasksResponse>>, Problem> {
    let wanted = asked.parse_with(|query| parse_query(query, &gateway.config))?;
    let snapshot = asked.snapshot(&gateway).await?;
    if wanted.queue {
        let queue = snapshot.queued_tasks(wanted.agent.as_deref(), wanted.user.as_deref(), wanted.limit);
        let tasks = query::await_answer(&gateway, queue).await?;
        return Ok(PositionedResponse::from_snapshot(
            &snapshot,
            SortedJson(ListTasksResponse { tasks, ..Default::default() }),
        ));
    }
    let mut tasks = query::await_answer(&gateway, snapshot.list_tasks(&wanted)).await?;
    let next_before =
        query::sort_newest_first(&mut tasks, wanted.limit, |task| task.sequence, |task| task.task_id.clone());
    Ok(PositionedResponse::from_snapshot(
        &snapshot,
        SortedJson(ListTasksResponse { tasks, next_before, ..Default::default() }),
    ))
}

fn parse_query(url_query: Option<&str>, config: &GatewayConfig) -> Result<TasksQuery, Problem> {
    let mut fields = RequestFields::from_query(url_query);
    let others = ["status", "kind", "before"].into_iter().any(|other| fields.has(other));
    let agent = fields.optional("agent", NAME, query_value(parse_name)).map(|agent| agent.to_string());
    let user = fields.optional("user", NAME, query_value(parse_name)).map(|user| user.to_string());
    let expected = format!("{}, open (not over) or all", TaskStatus::WORDS.join(", "));
    let status = fields.optional("status", expected, query_value(parse_status)).flatten();
    let kind = fields.optional("kind", TaskKind::WORDS.join(" or "), query_value(TaskKind::known));
    let before = query::parse_before(&mut fields);
    let limit = query::parse_limit(&mut fields, config);
    let is_queue = |text: &str| (text == "true" && !others).then_some(true);
    let queue =
        fields.optional("queue", "true, without status, kind and before", query_value(is_queue)).unwrap_or_default();
    fields.complete(|| Some(TasksQuery { agent, user, status, kind, before, limit, queue }))
}

/// `None` within for tasks of any status.
#[allow(clippy::option_option, reason = "the outer one says whether the text can be read")]
fn parse_status(text: &str) -> Option<Option<TaskState>> {
    match text {
        "all" => Some(None),
        "open" => Some(Some(TaskState::Open)),
        _ => TaskStatus::known(text).map(|status| Some(TaskState::Only(status))),
    }
}

pub async fn get_task(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    path: Result<Path<String>, PathRejection>,
    asked: ReadRequest,
) -> Result<PositionedResponse<SortedJson<GetTaskResponse>>, Problem> {
    let id = query::path_id("task_id", path)?;
    asked.reject_other_fields()?;
    let snapshot = asked.snapshot(&gateway).await?;
    let task = query::await_answer(&gateway, snapshot.find_task(id)).await?;
    let task = task.filter(|task| caller.can_see(&task.agent, task.user.as_deref()));
    let unknown = || {
        let detail = format!("no task {id} is known; GET /v1/tasks lists those there are");
        Problem::not_found(detail).with_position(snapshot.position())
    };
    let task = task.ok_or_else(unknown)?;
    let rest = async { Ok((snapshot.task_firings(id, FIRINGS).await?, snapshot.chains_of_task(id, FIRINGS).await?)) };
    let (firings, chains) = query::await_answer(&gateway, rest).await?;
    Ok(PositionedResponse::from_snapshot(
        &snapshot,
        SortedJson(GetTaskResponse { task: Some(task), firings, chains, ..Default::default() }),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_are_asked_for_by_what_they_are() {
        let read = |query| parse_query(query, &GatewayConfig::default()).unwrap();
        assert_eq!(read(None).status, None);
        assert_eq!(read(Some("status=all")).status, None);
        assert_eq!(read(Some("status=open")).status, Some(TaskState::Open));
        let wanted = read(Some("status=paused&kind=hook&user=ann"));
        assert_eq!((wanted.status, wanted.kind), (Some(TaskState::Only(TaskStatus::Paused)), Some(TaskKind::Hook)));
        assert!(read(Some("queue=true&agent=a&user=ann&limit=5")).queue && !read(None).queue);
    }

    #[test]
    fn everything_wrong_is_named() {
        let query = "agent=A&user=*&status=done&kind=timer&before=x&limit=0&colour=red";
        let problem = parse_query(Some(query), &GatewayConfig::default()).unwrap_err();
        let fields: Vec<_> = problem.errors.iter().map(|error| error.field.as_str()).collect();
        assert_eq!(fields, ["agent", "user", "status", "kind", "before", "limit", "colour"]);
        for query in ["queue=false", "queue=true&status=open", "queue=true&before=7"] {
            let problem = parse_query(Some(query), &GatewayConfig::default()).unwrap_err();
            assert_eq!(problem.errors[0].field, "queue");
        }
    }
}
