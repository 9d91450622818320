//! A revision of the git repository that the command is run in, built once and kept.

use std::{
    ffi::OsStr,
    io,
    path::{Path, PathBuf},
    process::{Output, Stdio},
    time::Duration,
};

use kairo_local::DirLock;
use tokio::{process::Command, time::timeout};

use crate::{Error, dev::step, event_lines::printable};

/// The longest time checking out and building may take.
const DEADLINE: Duration = Duration::from_secs(3_600);
/// The number of last characters shown of the output of a program that fails.
const SHOWN: usize = 2_000;

/// Returns the program itself if `named` is one, else the one built of the revision that it names.
///
/// # Errors
/// Returns an error if it is neither, or cannot be built.
pub async fn resolve_binary(named: &Path) -> Result<PathBuf, Error> {
    if named.is_file() {
        return Ok(named.to_owned());
    }
    let neither = || {
        Error::Usage(format!(
            "--with: expected a file, or a revision of the git repository that the command is run in, found {}",
            named.display()
        ))
    };
    let revision = named.to_str().ok_or_else(neither)?;
    let commit = format!("{revision}^{{commit}}");
    let found =
        run_program(git_command(&["rev-parse", "--verify", "--quiet", "--end-of-options", &commit]), "git").await?;
    let commit = trimmed_stdout(&found).filter(|_| found.status.success()).ok_or_else(neither)?;
    let at = run_program(git_command(&["rev-parse", "--path-format=absolute", "--git-common-dir"]), "git").await?;
    let repository = trimmed_stdout(&at).filter(|_| at.status.success()).ok_or_else(neither)?;
    let kept = BuildCache::new()?;
    let program = kept.program_path(&commit);
    if program.is_file() {
        return Ok(program);
    }
    let _lock = DirLock::try_acquire(&kept.0)?;
    step(&format!("building {revision}"), kept.build_revision(Path::new(&repository), &commit), |()| commit.clone())
        .await?;
    Ok(program)
}

/// The folder of what was built. It may be removed at any time.
struct BuildCache(PathBuf);

impl BuildCache {
    fn new() -> Result<Self, Error> {
        let folder = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let cache = folder("XDG_CACHE_HOME").or_else(|| Some(folder("HOME")?.join(".cache")));
        let none =
            || Error::Advice("--with: a revision is built in XDG_CACHE_HOME or HOME: set one of them".to_owned());
        Ok(Self(cache.ok_or_else(none)?.join("kairo/builds")))
    }

    fn program_path(&self, commit: &str) -> PathBuf {
        self.0.join(commit).join("kairo")
    }

    /// One checkout and one folder of build results serve all revisions, so that the next one builds little.
    async fn build_revision(&self, repository: &Path, commit: &str) -> Result<(), Error> {
        let source = self.0.join("source");
        let program = self.program_path(commit);
        let folder = self.0.join(commit);
        for folder in [&source, &folder] {
            std::fs::create_dir_all(folder).map_err(Error::file("create", folder))?;
        }
        // With an index of its own: that of the repository and its checkouts stay as they are.
        let mut checkout = git_command(&["read-tree", "--reset", "-u", commit]);
        checkout.env("GIT_DIR", repository).env("GIT_WORK_TREE", &source).env("GIT_INDEX_FILE", self.0.join("index"));
        run_checked(checkout, "git").await?;
        let target = self.0.join("target");
        let mut build = Command::new("cargo");
        build.args(["build", "--quiet", "--release", "--locked", "--package", "kairo-cli", "--bin", "kairo"]);
        build.current_dir(&source).env("CARGO_TARGET_DIR", &target).env("KAIRO_COMMIT", commit);
        run_checked(build, "cargo").await?;
        // Whole or not at all, whatever happens meanwhile.
        let part = folder.join("kairo.part");
        std::fs::copy(target.join("release/kairo"), &part).map_err(Error::file("write", &part))?;
        std::fs::rename(&part, &program).map_err(Error::file("write", &program))
    }
}

fn git_command(arguments: &[&str]) -> Command {
    let mut command = Command::new("git");
    command.args(arguments.iter().map(OsStr::new));
    command
}

/// # Errors
/// Also where it fails.
async fn run_checked(command: Command, name: &str) -> Result<(), Error> {
    let output = run_program(command, name).await?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let from = said.char_indices().rev().nth(SHOWN - 1).map_or(0, |(at, _)| at);
    let said: Vec<String> = said.get(from..).unwrap_or_default().trim().lines().map(printable).collect();
    Err(Error::Advice(format!("--with: {name} failed ({}):\n{}", output.status, said.join("\n"))))
}

async fn run_program(mut command: Command, name: &str) -> Result<Output, Error> {
    command.stdin(Stdio::null()).kill_on_drop(true);
    let output = timeout(DEADLINE, command.output()).await;
    let late = |_| Error::Advice(format!("--with: {name} did not end within {} seconds", DEADLINE.as_secs()));
    output.map_err(late)?.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Error::Advice(format!("--with: building a revision takes {name}: install it")),
        _ => Error::file("run", name)(error),
    })
}

fn trimmed_stdout(output: &Output) -> Option<String> {
    let text = std::str::from_utf8(&output.stdout).ok()?.trim();
    (!text.is_empty()).then(|| text.to_owned())
}
