//! `GET /v1/tools`: the tools that agents can be offered: those of the catalogue in the log, and those of the mind itself.

use std::collections::{BTreeMap, BTreeSet};

use axum::extract::{Path, RawQuery, State, rejection::PathRejection};
use kairo_core::{
    ids::Name,
    subjects::{CATALOGUE, Service},
    tool_groups::group,
};
use kairo_mind::{intrinsics, request::Tool};
use kairo_proto::{
    v1::{
        GetToolResponse, ListToolsResponse, ReplicaRow, ToolCatalogue, ToolGroupRow, ToolRow, ToolSpec, WithheldTool,
        WithheldToolRow,
    },
    words::{ConsentRule, ToolSource},
};

use super::{Gateway, sorted_json::SortedJson, status};
use crate::{
    fields::{RequestFields, bounded_text, one_of, query_value},
    problem::Problem,
};

/// Longest name of a group, in bytes.
const MAX_GROUP: usize = 64;

/// All of them, or those of a group or a source.
pub async fn list_tools(
    State(gateway): State<Gateway>,
    RawQuery(query): RawQuery,
) -> Result<SortedJson<ListToolsResponse>, Problem> {
    let (wanted, source) = parse_query(query.as_deref())?;
    let (catalogue, replicas) = tokio::join!(current_catalogue(&gateway), status::ping_replicas(&gateway));
    let catalogue = catalogue?;
    let replicas = replicas?;
    let withheld = withheld_rows(&catalogue.withheld, &replicas);
    let version = catalogue.version.clone();
    let is_wanted = |tool: &ToolRow| {
        wanted.as_ref().is_none_or(|wanted| *wanted == tool.group) && source.is_none_or(|source| source == tool.source)
    };
    let tools: Vec<ToolRow> = all_tools(catalogue).into_iter().filter(is_wanted).collect();
    Ok(SortedJson(ListToolsResponse { version, groups: group_rows(&tools), tools, withheld }))
}

/// One of them.
pub async fn get_tool(
    State(gateway): State<Gateway>,
    path: Result<Path<String>, PathRejection>,
    RawQuery(query): RawQuery,
) -> Result<SortedJson<GetToolResponse>, Problem> {
    let name = path.map(|Path(name)| name).unwrap_or_default();
    RequestFields::from_query(query.as_deref()).complete(|| Some(()))?;
    let catalogue = current_catalogue(&gateway).await?;
    let why_not =
        catalogue.withheld.iter().find(|withheld| withheld.name == name).map(|withheld| withheld.reason.clone());
    let tool = all_tools(catalogue).into_iter().find(|tool| tool.name == name);
    let unknown = || match why_not {
        Some(reason) => Problem::not_found(format!("the tool {name} is left out: {reason}")),
        None => Problem::not_found(format!("no tool {name} is known; GET /v1/tools lists those there are")),
    };
    Ok(SortedJson(GetToolResponse { tool: Some(tool.ok_or_else(unknown)?) }))
}

fn parse_query(query: Option<&str>) -> Result<(Option<String>, Option<&'static str>), Problem> {
    let mut fields = RequestFields::from_query(query);
    let wanted =
        fields.optional("group", "the name of a group, of 1 to 64 bytes", query_value(bounded_text(MAX_GROUP)));
    let sources = format!("one of {}", ToolSource::WORDS.join(", "));
    let source = fields.optional("source", sources, query_value(one_of(ToolSource::WORDS)));
    fields.complete(|| Some((wanted, source)))
}

/// The names of all tools, those that are left out included; none before a catalogue is published.
pub async fn known_names(gateway: &Gateway) -> Result<Option<BTreeSet<String>>, Problem> {
    let catalogue = current_catalogue(gateway).await?;
    if catalogue.tools.is_empty() {
        return Ok(None);
    }
    let withheld: Vec<String> = catalogue.withheld.iter().map(|tool| tool.name.clone()).collect();
    Ok(Some(all_tools(catalogue).into_iter().map(|tool| tool.name).chain(withheld).collect()))
}

/// The JSON Schema of a tool's arguments, as text; none if there is no such tool.
pub async fn schema_of(gateway: &Gateway, name: &str) -> Result<Option<String>, Problem> {
    let tools = all_tools(current_catalogue(gateway).await?);
    Ok(tools.into_iter().find(|tool| tool.name == name).map(|tool| tool.schema))
}

/// The newest catalogue; an empty one where none was published.
pub async fn current_catalogue(gateway: &Gateway) -> Result<ToolCatalogue, Problem> {
    let subject = Name::parse(Service::ToolRunner.name()).map(|owner| CATALOGUE.of_owner(&owner)).unwrap_or_default();
    let last = gateway.bus.last_message(&subject).await?;
    let body = last.and_then(|last| Some(last.read(gateway.bus.limits.max_body_bytes).ok()?.body));
    Ok(body.and_then(|body| ToolCatalogue::try_from(body).ok()).unwrap_or_default())
}

/// Every tool, by name.
fn all_tools(catalogue: ToolCatalogue) -> Vec<ToolRow> {
    let own = intrinsics::all().map(|intrinsic| intrinsic_row(&intrinsic.tool));
    let finding = intrinsic_row(&intrinsics::tool_search::intrinsic().tool);
    let mut tools: Vec<ToolRow> = catalogue.tools.into_iter().map(catalogue_row).chain(own).chain([finding]).collect();
    tools.sort_by(|one, other| one.name.cmp(&other.name));
    tools
}

fn catalogue_row(tool: ToolSpec) -> ToolRow {
    let consent = match (tool.needs_approval, tool.needs_approval_with.is_empty()) {
        (true, _) => ConsentRule::Always,
        (false, false) => ConsentRule::ByArguments,
        (false, true) => ConsentRule::Never,
    };
    ToolRow {
        group: group(&tool.name).to_owned(),
        name: tool.name,
        source: if tool.source.is_empty() { ToolSource::BuiltIn.text() } else { tool.source },
        server: tool.server,
        description: tool.description,
        schema: tool.schema,
        consent: consent.text(),
        consent_with: tool.needs_approval_with,
        idempotent: tool.idempotent,
        acts_outside: tool.acts_outside,
        timeout_ms: tool.timeout_ms,
        executor: tool.executor,
    }
}

/// A tool of the mind. What it does is in the decision, and so happens once.
fn intrinsic_row(tool: &Tool) -> ToolRow {
    let Tool { name, description, schema, needs_approval, needs_approval_with, acts_outside } = tool;
    catalogue_row(ToolSpec {
        name: name.to_string(),
        description: description.to_string(),
        schema: schema.to_string(),
        idempotent: true,
        executor: Service::AgentRuntime.name().to_owned(),
        needs_approval: *needs_approval,
        needs_approval_with: needs_approval_with.clone(),
        acts_outside: *acts_outside,
        ..ToolSpec::default()
    })
}

fn group_rows(tools: &[ToolRow]) -> Vec<ToolGroupRow> {
    let mut groups: BTreeMap<&str, u32> = BTreeMap::new();
    for tool in tools {
        *groups.entry(&tool.group).or_default() += 1;
    }
    groups.into_iter().map(|(name, tools)| ToolGroupRow { name: name.to_owned(), tools }).collect()
}

/// The tools that are left out: those that the catalogue names, and those that servers list and that cannot even be read.
fn withheld_rows(published: &[WithheldTool], replicas: &[ReplicaRow]) -> Vec<WithheldToolRow> {
    let published = published.iter().map(|tool| (tool.name.clone(), tool.reason.clone()));
    let servers = replicas.iter().flat_map(|replica| &replica.tool_servers);
    let unreadable = servers.flat_map(|server| {
        server.left_out.iter().map(|tool| (format!("{}.{}", server.name, tool.name), tool.reason.clone()))
    });
    // The catalogue has the last word on what both name.
    let all: BTreeMap<String, String> = unreadable.chain(published).collect();
    all.into_iter().map(|(name, reason)| WithheldToolRow { name, reason }).collect()
}

#[cfg(test)]
mod tests {
    use kairo_proto::v1::{ToolArgument, ToolServerRow};

    use super::*;

    #[test]
    fn every_tool_has_its_group_and_says_when_a_human_is_asked() {
        let spec = |name: &str| ToolSpec { name: name.into(), source: "mcp".into(), ..Default::default() };
        let with = vec![ToolArgument { name: "send".into(), value: "now".into() }];
        let tools = all_tools(ToolCatalogue {
            tools: vec![
                ToolSpec { needs_approval: true, ..spec("github.delete") },
                ToolSpec { needs_approval_with: with, ..spec("github.send") },
                ToolSpec { source: String::new(), ..spec("tools.now") },
            ],
            ..Default::default()
        });
        let told = |name: &str| {
            let tool = tools.iter().find(|tool| tool.name == name).unwrap();
            [&tool.source, &tool.group, &tool.consent, &tool.executor].map(|text| text.as_str())
        };
        assert_eq!(told("github.delete"), ["mcp", "github", "always", ""]);
        assert_eq!(told("github.send"), ["mcp", "github", "by_arguments", ""]);
        assert_eq!(told("tools.now"), ["built_in", "time", "never", ""]);
        assert_eq!(told("memory.append"), ["built_in", "memory", "never", "agent-runtime"]);
        assert!(tools.is_sorted_by(|one, other| one.name < other.name));
        let groups = group_rows(&tools);
        assert!(groups.contains(&ToolGroupRow { name: "github".into(), tools: 2 }), "{groups:?}");
    }

    #[test]
    fn what_is_left_out_is_told_once() {
        let row = |name: &str, reason: &str| WithheldToolRow { name: name.into(), reason: reason.into() };
        let left_out = vec![row("a", "no schema"), row("b", "as the server says")];
        let server = ToolServerRow { name: "s".into(), left_out, ..Default::default() };
        let replica = ReplicaRow { tool_servers: vec![server], ..Default::default() };
        let published = [WithheldTool { name: "s.b".into(), reason: "changed".into() }];
        let told = withheld_rows(&published, &[replica.clone(), replica]);
        assert_eq!(told, [row("s.a", "no schema"), row("s.b", "changed")]);
    }

    #[test]
    fn a_wrong_query_is_refused() {
        assert_eq!(parse_query(Some("group=mail&source=mcp")).unwrap(), (Some("mail".to_owned()), Some("mcp")));
        assert_eq!(parse_query(None).unwrap(), (None, None));
        let long = format!("group={}", "g".repeat(MAX_GROUP + 1));
        for wrong in ["source=elsewhere", &long, "name=x"] {
            assert!(parse_query(Some(wrong)).is_err(), "{wrong}");
        }
    }
}
