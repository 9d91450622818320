//! The committed code in `src/generated` is what the protos say. `KAIRO_REGENERATE=1 cargo test -p kairo-proto`
//! rewrites it instead of complaining.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::path::{Path, PathBuf};

use prost::Message;

/// The files, and the folder each is committed in.
const GENERATED: [(&str, &str); 4] = [
    ("kairo.v1.rs", "src/generated"),
    ("kairo.v1.serde.rs", "src/generated"),
    ("kairo.v1.bin", "src/generated"),
    // The gateway alone serves.
    ("kairo.v1.services.rs", "../services/gateway/src/grpc/generated"),
];

fn generate(out: &Path) {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let mut protos: Vec<PathBuf> = std::fs::read_dir(root.join("kairo/v1"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "proto"))
        .collect();
    protos.sort();
    let mut descriptors = protox::compile(&protos, [&root]).unwrap();
    services(out, descriptors.clone());
    let mut messages = prost_build::Config::new();
    // Of which there is a JSON form.
    messages.compile_well_known_types().extern_path(".google.protobuf", "::pbjson_types");
    messages.out_dir(out).compile_fds(descriptors.clone()).unwrap();
    let mut json = pbjson_build::Builder::new();
    json.preserve_proto_field_names();
    json.ignore_unknown_fields();
    // Written by hand, in src/values.rs.
    json.exclude([".kairo.v1.Json", ".kairo.v1.Place"]);
    for file in descriptors.file.clone() {
        json.register_file_descriptor(file);
    }
    json.out_dir(out).build(&[".kairo.v1"]).unwrap();
    for file in &mut descriptors.file {
        file.source_code_info = None;
    }
    std::fs::write(out.join("kairo.v1.bin"), descriptors.encode_to_vec()).unwrap();
}

/// The servers of the services, for which the messages are those of this crate.
fn services(out: &Path, descriptors: prost_types::FileDescriptorSet) {
    let folder = tempfile::tempdir().unwrap();
    let services = tonic_prost_build::configure().build_client(false).build_transport(false);
    let services = services.extern_path(".kairo.v1", "::kairo_proto::v1").out_dir(folder.path());
    services.compile_fds(descriptors).unwrap();
    std::fs::copy(folder.path().join("kairo.v1.rs"), out.join("kairo.v1.services.rs")).unwrap();
}

#[test]
fn generated_code_is_what_the_protos_say() {
    let fresh = tempfile::tempdir().unwrap();
    generate(fresh.path());
    for (name, folder) in GENERATED {
        let committed = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(folder).join(name);
        let new = std::fs::read(fresh.path().join(name)).unwrap();
        if std::env::var_os("KAIRO_REGENERATE").is_some() {
            std::fs::write(&committed, &new).unwrap();
            continue;
        }
        let old = std::fs::read(&committed).unwrap_or_default();
        assert!(new == old, "{name} is out of date: run KAIRO_REGENERATE=1 cargo test -p kairo-proto");
    }
}
