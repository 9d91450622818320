//! Generates the descriptions of the endpoints on the gateway's home page: path, purpose and fields.

use std::fmt::Write;

use prost_reflect::{DynamicMessage, FieldDescriptor};

use crate::{
    Generated,
    contract::{Contract, comment, flag, text},
    openapi::FRESHNESS,
    rpcs::{Rpc, RpcBody},
};

pub fn file(contract: &Contract) -> anyhow::Result<Generated> {
    let mut rpcs = crate::rpcs::all(contract)?;
    rpcs.sort_by(|one, other| (&one.path, &one.verb).cmp(&(&other.path, &other.verb)));
    let mut out = String::new();
    for rpc in rpcs {
        let words = comment(&rpc.method.parent_file(), rpc.method.path());
        let summary = words.split_once(". ").map_or(words.trim_end_matches('.'), |(summary, _)| summary);
        writeln!(out, "{} {}\n    {summary}", rpc.verb, rpc.path)?;
        let fields = fields(contract, &rpc)?;
        if !fields.is_empty() {
            writeln!(out, "    {fields}")?;
        }
    }
    Ok(("services/gateway/src/http/generated/endpoints.txt".to_owned(), out.into_bytes()))
}

/// The fields of a body, of which those with a question mark may be left out, and of a query.
fn fields(contract: &Contract, rpc: &Rpc) -> anyhow::Result<String> {
    let is_told = |field: &FieldDescriptor| {
        !FRESHNESS.contains(&field.name()) && !rpc.path.contains(&format!("{{{}}}", field.name()))
    };
    let mut body = Vec::new();
    let mut query = Vec::new();
    for field in rpc.method.input().fields().filter(is_told) {
        let option = contract.option("kairo.options.field", &field.options())?;
        let name = field.name();
        match &rpc.body {
            RpcBody::Field(whole) if whole == name => body.push(format!("fields of {}", changed_fields(option))),
            RpcBody::Field(_) | RpcBody::Nothing => query.push(format!("{name}=")),
            RpcBody::Rest if option.is_some_and(|option| flag(&option, "required")) => body.push(name.to_owned()),
            RpcBody::Rest => body.push(format!("{name}?")),
        }
    }
    let body = Some(format!("{{{}}}", body.join(", "))).filter(|_| !body.is_empty());
    let query = Some(format!("?{}", query.join("&"))).filter(|_| !query.is_empty());
    Ok(body.into_iter().chain(query).collect::<Vec<_>>().join(" "))
}

/// The message whose fields a body changes.
fn changed_fields(option: Option<DynamicMessage>) -> String {
    option.map(|option| text(&option, "changes_of")).unwrap_or_default()
}
