//! The messages in Rust, their descriptors in bytes, and the servers of the services.

use std::path::Path;

use prost_types::{FileDescriptorProto, field_descriptor_proto::Type};

use crate::{
    Generated,
    contract::{Contract, PACKAGE},
};

/// The protos of clients' requests and answers.
const ASKED_AND_SHOWN: [&str; 5] = [
    "kairo/v1/administration.proto",
    "kairo/v1/commands.proto",
    "kairo/v1/events.proto",
    "kairo/v1/queries.proto",
    "kairo/v1/rows.proto",
];
/// The message among these that is never JSON.
const STREAMED: &str = "StreamResponse";

pub fn files(contract: &Contract) -> anyhow::Result<Vec<Generated>> {
    let folder = tempfile::tempdir()?;
    let mut messages = prost_build::Config::new();
    messages.enable_type_names();
    // The same message is the same bytes, and the same JSON.
    messages.btree_map(["."]);
    contract.descriptors.file.iter().try_for_each(|file| json(contract, &mut messages, file))?;
    messages.out_dir(folder.path()).compile_fds(contract.descriptors.clone())?;
    let messages = written(folder.path())?;
    // The messages are those of the contract's crate.
    let services = tonic_prost_build::configure().build_client(false).build_transport(false);
    let services = services.extern_path(format!(".{PACKAGE}"), "::kairo_proto::v1").out_dir(folder.path());
    services.compile_fds(contract.descriptors.clone())?;
    Ok(vec![
        ("proto/src/generated/kairo.v1.rs".to_owned(), messages),
        ("proto/src/generated/kairo.v1.bin".to_owned(), contract.encoded.clone()),
        ("services/gateway/src/grpc/generated/kairo.v1.services.rs".to_owned(), written(folder.path())?),
    ])
}

fn written(folder: &Path) -> std::io::Result<Vec<u8>> {
    std::fs::read(folder.join(format!("{PACKAGE}.rs")))
}

/// Returns true if the messages of a file derive their JSON instead of using proto3's mapping.
pub fn derives_json(file: &str) -> bool {
    ASKED_AND_SHOWN.contains(&file)
}

/// Derives the JSON of clients' requests, with the fields that are given, and of answers, with all fields.
fn json(contract: &Contract, messages: &mut prost_build::Config, file: &FileDescriptorProto) -> anyhow::Result<()> {
    if !derives_json(file.name()) {
        return Ok(());
    }
    for message in file.message_type.iter().filter(|message| message.name() != STREAMED) {
        let path = format!(".{PACKAGE}.{}", message.name());
        messages.message_attribute(&path, "#[derive(serde::Serialize, serde::Deserialize)]\n#[serde(default)]");
        let asked = message.name().ends_with("Request");
        for field in &message.field {
            let absent = contract.field_says(message.name(), field.name(), "absent")?;
            let unset = (asked || absent).then_some(r#"skip_serializing_if = "crate::json::is_unset""#);
            let form = match (field.type_name(), field.r#type()) {
                (".google.protobuf.Timestamp", _) => Some(r#"with = "crate::json::time""#),
                (_, Type::Bytes) => Some(r#"with = "crate::json::base64""#),
                _ => None,
            };
            // The gateway writes it, behind all that the tag of an answer is of.
            let position = message.name().ends_with("Response") && field.name() == "position";
            let position = position.then_some("skip_serializing");
            let attributes: Vec<&str> = form.into_iter().chain(unset).chain(position).collect();
            if !attributes.is_empty() {
                let attribute = format!("#[serde({})]", attributes.join(", "));
                messages.field_attribute(format!("{path}.{}", field.name()), attribute);
            }
        }
    }
    Ok(())
}
