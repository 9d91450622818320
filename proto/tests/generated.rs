//! The committed code in `src/generated` is what the protos say. `KAIRO_REGENERATE=1 cargo test -p kairo-proto`
//! rewrites it instead of complaining.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::path::{Path, PathBuf};

const GENERATED: [&str; 2] = ["kairo.v1.rs", "kairo.v1.serde.rs"];

fn generate(out: &Path) {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let mut protos: Vec<PathBuf> = std::fs::read_dir(root.join("kairo/v1"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "proto"))
        .collect();
    protos.sort();
    let descriptors = protox::compile(&protos, [&root]).unwrap();
    prost_build::Config::new().out_dir(out).compile_fds(descriptors.clone()).unwrap();
    let mut json = pbjson_build::Builder::new();
    json.preserve_proto_field_names();
    json.ignore_unknown_fields();
    for file in descriptors.file {
        json.register_file_descriptor(file);
    }
    json.out_dir(out).build(&[".kairo.v1"]).unwrap();
}

#[test]
fn generated_code_is_what_the_protos_say() {
    let fresh = tempfile::tempdir().unwrap();
    generate(fresh.path());
    let committed = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/generated");
    for name in GENERATED {
        let new = std::fs::read_to_string(fresh.path().join(name)).unwrap();
        if std::env::var_os("KAIRO_REGENERATE").is_some() {
            std::fs::write(committed.join(name), &new).unwrap();
            continue;
        }
        let old = std::fs::read_to_string(committed.join(name)).unwrap_or_default();
        assert!(new == old, "{name} is out of date: run KAIRO_REGENERATE=1 cargo test -p kairo-proto");
    }
}
