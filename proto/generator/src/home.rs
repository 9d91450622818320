//! Generates the descriptions of the endpoints on the gateway's home page: path, purpose and fields.

use std::fmt::Write;

use prost_reflect::FieldDescriptor;

use crate::{
    Generated,
    contract::{Contract, comment, flag},
    openapi::FRESHNESS,
    rpcs::Rpc,
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

/// The fields of a body, of which those with a question mark may be left out, or of a query.
fn fields(contract: &Contract, rpc: &Rpc) -> anyhow::Result<String> {
    let is_told = |field: &FieldDescriptor| {
        !FRESHNESS.contains(&field.name()) && !rpc.path.contains(&format!("{{{}}}", field.name()))
    };
    let mut told = Vec::new();
    for field in rpc.method.input().fields().filter(is_told) {
        let option = contract.option("kairo.options.field", &field.options())?;
        let required = option.is_some_and(|option| flag(&option, "required"));
        told.push(match (rpc.has_body, required) {
            (false, _) => format!("{}=", field.name()),
            (true, true) => field.name().to_owned(),
            (true, false) => format!("{}?", field.name()),
        });
    }
    Ok(match (told.is_empty(), rpc.has_body) {
        (true, _) => String::new(),
        (false, true) => format!("{{{}}}", told.join(", ")),
        (false, false) => format!("?{}", told.join("&")),
    })
}
