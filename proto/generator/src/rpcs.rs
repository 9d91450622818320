//! Generates the rpcs, with their endpoints of the HTTP interface and the access to each.

use std::fmt::Write;

use anyhow::{Context, bail};
use prost_reflect::{DynamicMessage, MethodDescriptor, ReflectMessage};

use crate::{
    Generated,
    contract::{Contract, text, texts},
};

const GENERATED: &str = "// @generated from the services of the protos.\n";

/// An rpc, and its endpoint.
pub struct Rpc {
    pub method: MethodDescriptor,
    /// `GET`, and the path.
    pub verb: String,
    pub path: String,
    pub body: RpcBody,
    access: DynamicMessage,
}

/// The fields of a request that are the body of its endpoint; the others are in the path or in the query.
#[derive(Debug, PartialEq, Eq)]
pub enum RpcBody {
    Nothing,
    /// All that are not in the path.
    Rest,
    /// This one.
    Field(String),
}

/// The rpcs that are asked and answered once, by service; and of all, the endpoints.
pub fn files(contract: &Contract) -> anyhow::Result<Vec<Generated>> {
    let mut rpcs = GENERATED.to_owned();
    let mut paths = format!("{GENERATED}\n");
    let mut access = String::new();
    let mut fields = String::new();
    let mut routes = String::new();
    let mut servers = String::new();
    for declared in all(contract)?.chunk_by(|one, next| one.service() == next.service()) {
        let service = declared.first().map(Rpc::service).unwrap_or_default();
        writeln!(servers, "    generated::{}_server::{service}Server<Endpoints>,", service.to_lowercase())?;
        for rpc in declared {
            writeln!(paths, "pub const {}: &str = {:?};", rpc.name().to_uppercase(), rpc.path)?;
            writeln!(access, "    {},", rpc.row()?)?;
            writeln!(fields, "    pub {}: MethodRouter<Gateway>,", rpc.name())?;
            writeln!(routes, "            .route({}, self.{})", rpc.name().to_uppercase(), rpc.name())?;
        }
        if declared.iter().any(|rpc| rpc.method.is_server_streaming()) {
            continue;
        }
        writeln!(rpcs, "\nrpcs! {{ generated::{}_server::{service}:", service.to_lowercase())?;
        for rpc in declared {
            let name = rpc.name();
            let input = rpc.method.input();
            let output = rpc.method.output();
            let input = input.name();
            let output = output.name();
            let body = match &rpc.body {
                RpcBody::Field(field) => format!(" {field:?}"),
                RpcBody::Nothing | RpcBody::Rest => String::new(),
            };
            writeln!(rpcs, "    {name}({input}) -> {output} = {} {}{body},", rpc.verb, name.to_uppercase())?;
        }
        writeln!(rpcs, "}}")?;
    }
    writeln!(rpcs, "\nservices! {{\n{servers}}}")?;
    writeln!(paths, "\n/// The callers who may use each of them.\npub const ACCESS: &[Access] = &[\n{access}];\n")?;
    writeln!(paths, "/// The handlers of all paths, by rpc.\npub struct Handlers {{\n{fields}}}\n")?;
    writeln!(
        paths,
        "impl Handlers {{\n    pub fn router(self) -> Router<Gateway> {{\n        Router::new()\n{routes}    }}\n}}"
    )?;
    Ok(vec![
        ("services/gateway/src/grpc/generated/rpcs.rs".to_owned(), rpcs.into_bytes()),
        ("services/gateway/src/http/generated/endpoints.rs".to_owned(), paths.into_bytes()),
    ])
}

/// Every rpc.
pub fn all(contract: &Contract) -> anyhow::Result<Vec<Rpc>> {
    let services = contract.files().flat_map(|file| file.services().collect::<Vec<_>>());
    services.flat_map(|service| service.methods().collect::<Vec<_>>()).map(|method| rpc(contract, method)).collect()
}

fn rpc(contract: &Contract, method: MethodDescriptor) -> anyhow::Result<Rpc> {
    let set = |option: &str| {
        contract
            .option(option, &method.options())?
            .with_context(|| format!("{} has no option {option}", method.full_name()))
    };
    let http = set("google.api.http")?;
    let pattern =
        http.descriptor().oneofs().next().and_then(|oneof| oneof.fields().find(|field| http.has_field(field)));
    let Some(pattern) = pattern else { bail!("{} has no path", method.full_name()) };
    let path = text(&http, pattern.name());
    let body = match text(&http, "body").as_str() {
        "" => RpcBody::Nothing,
        "*" => RpcBody::Rest,
        field => RpcBody::Field(field.to_owned()),
    };
    Ok(Rpc { verb: pattern.name().to_uppercase(), path, body, access: set("kairo.options.access")?, method })
}

impl Rpc {
    fn service(&self) -> String {
        self.method.parent_service().name().to_owned()
    }

    /// Returns the name of the method in Rust.
    fn name(&self) -> String {
        let mut name = String::new();
        for letter in self.method.name().chars() {
            if letter.is_uppercase() && !name.is_empty() {
                name.push('_');
            }
            name.extend(letter.to_lowercase());
        }
        name
    }

    /// Returns its row in the table of access.
    fn row(&self) -> anyhow::Result<String> {
        let needs = match texts(&self.access, "scopes").join(" ").as_str() {
            "" => "KEY",
            "read" => "READ",
            "write" => "WRITE",
            "admin" => "ADMIN",
            "read write" => "BOTH",
            others => bail!("{}: {others:?} are no scopes", self.method.full_name()),
        };
        let limited = |field: &str| match text(&self.access, field).as_str() {
            "free" => Ok("Free"),
            "named" => Ok("Named"),
            "asked" => Ok("Asked"),
            "closed" => Ok("Closed"),
            other => bail!("{}: {other:?} is none of free, named, asked and closed", self.method.full_name()),
        };
        let agents = limited("agents")?;
        let user = limited("user")?;
        Ok(format!("row({:?}, {}, {needs}, {agents}, {user})", self.verb, self.name().to_uppercase()))
    }
}
