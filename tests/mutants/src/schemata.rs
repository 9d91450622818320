//! The folder in which all mutants are built at once: copies of the crates that replaying takes, those of the mind wrapped.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use toml::{Table, Value};

use crate::{
    Outcome,
    candidates::Candidate,
    source::{self, Source},
    wrapping,
};

/// The crates that a replay needs; the last is the runner.
const CRATES: [&str; 6] =
    ["proto", "crates/events", "crates/mind", "crates/replay", "tests/mutants/switch", "tests/mutants/runner"];
/// The crate that asks switches.
const WRAPPED: &str = "crates/mind";

/// Writes the files of the folder that have changed, and builds it; returns the path of the runner.
///
/// # Errors
/// Returns an error if it cannot be written or does not compile.
pub fn build(root: &Path, folder: &Path, sources: &[Source], candidates: &[Candidate]) -> Outcome<PathBuf> {
    fs::create_dir_all(folder)?;
    let folder = &folder.canonicalize()?;
    for name in CRATES {
        copy(&root.join(name), &folder.join(name))?;
        write(&folder.join(name).join("Cargo.toml"), &manifest(root, name)?)?;
    }
    for source in sources {
        write(&folder.join(&source.path), &wrapping::wrapped(source, candidates))?;
    }
    write(&folder.join("Cargo.toml"), &workspace(root)?)?;
    let lock = folder.join("Cargo.lock");
    if !lock.exists() {
        fs::copy(root.join("Cargo.lock"), lock)?;
    }
    let target = folder.join("target");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["build", "--release", "--quiet", "--package", "kairo-mutants-runner", "--target-dir"]).arg(&target);
    let status = command.current_dir(folder).status()?;
    match status.success() {
        true => Ok(target.join("release/kairo-mutants-runner")),
        false => Err(format!("the mutants in {} are not compiled", folder.display()).into()),
    }
}

fn read(path: &Path) -> Outcome<String> {
    Ok(fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?)
}

/// Writes a file unless it is unchanged, so that it is not compiled again.
fn write(path: &Path, text: &str) -> Outcome<()> {
    if !fs::read(path).is_ok_and(|there| there == text.as_bytes()) {
        fs::create_dir_all(path.parent().unwrap_or(path))?;
        fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(())
}

/// Copies a crate, but for manifests, which are written anew, files of the mind, which are wrapped, and tests.
fn copy(from: &Path, to: &Path) -> Outcome<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from).map_err(|error| format!("{}: {error}", from.display()))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_owned();
        let is_copied = !["Cargo.toml", "target", "tests", "generator"].iter().any(|left_out| name == *left_out);
        let is_wrapped = path.to_string_lossy().contains(source::MIND) && path.is_file();
        let (to, is_copied) = (to.join(&name), is_copied && !(is_wrapped && to.join(&name).exists()));
        if path.is_dir() && is_copied {
            copy(&path, &to)?;
        } else if is_copied && !fs::read(&to).is_ok_and(|there| fs::read(&path).is_ok_and(|here| here == there)) {
            fs::copy(&path, &to)?;
        }
    }
    Ok(())
}

/// The manifest of a crate, without what only its tests take.
fn manifest(root: &Path, name: &str) -> Outcome<String> {
    let mut manifest: Table = read(&root.join(name).join("Cargo.toml"))?.parse()?;
    manifest.remove("dev-dependencies");
    if name == WRAPPED
        && let Some(Value::Table(dependencies)) = manifest.get_mut("dependencies")
    {
        let inherited = Table::from_iter([("workspace".to_owned(), Value::Boolean(true))]);
        dependencies.insert("kairo-mutants-switch".to_owned(), Value::Table(inherited));
    }
    Ok(manifest.to_string())
}

/// The manifest of all of them. Nobody reads the code, so no lint minds it; an overflow is a mutant that was found.
fn workspace(root: &Path) -> Outcome<String> {
    let mut manifest: Table = read(&root.join("Cargo.toml"))?.parse()?;
    let own: Table = toml::from_str(
        "lints.rust.warnings = \"allow\"\n\
         profile.release.debug = false\n\
         profile.release.overflow-checks = true\n\
         profile.release.incremental = true\n",
    )?;
    manifest.remove("profile");
    manifest.insert("profile".to_owned(), own.get("profile").cloned().unwrap_or(Value::Table(Table::new())));
    if let Some(Value::Table(workspace)) = manifest.get_mut("workspace") {
        let members = CRATES.map(|name| Value::String(name.to_owned()));
        workspace.insert("members".to_owned(), Value::Array(members.to_vec()));
        workspace.insert("lints".to_owned(), own.get("lints").cloned().unwrap_or(Value::Table(Table::new())));
    }
    Ok(manifest.to_string())
}
