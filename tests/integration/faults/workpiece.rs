//! A program that a test is in touch with: it says that it runs, leaves a trace, and ends when it is told to.

use std::{
    fs::{self, File},
    io::Write,
    path::{Path, PathBuf},
    process::Command,
};

use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    net::unix::pipe,
    time::timeout,
};

use crate::world::DEADLINE;

/// Run as `sh -c SCRIPT work FOLDER`. Its child outlives it unless somebody sees to it, and holds the pipe `life` open.
pub const SCRIPT: &str = r#"
exec 3>"$1/life"
echo "$$" >>"$1/effects"
sleep 1000 &
echo begun >&3
read -r word <"$1/gate"
kill $!
echo "$word"
"#;

/// The test's ends of the pipes of one run.
pub struct Workpiece {
    folder: TempDir,
    life: BufReader<pipe::Receiver>,
    gate: File,
}

impl Workpiece {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (life, gate) = (pipe_at(folder.path(), "life"), pipe_at(folder.path(), "gate"));
        let life = BufReader::new(pipe::OpenOptions::new().open_receiver(life).unwrap());
        // Open for reading too: what is written stays there until the program comes to read it.
        let gate = File::options().read(true).write(true).open(gate).unwrap();
        Self { folder, life, gate }
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Waits until the program runs.
    pub async fn begun(&mut self) {
        let mut line = String::new();
        timeout(DEADLINE, self.life.read_line(&mut line)).await.expect("it never began").unwrap();
        assert_eq!(line, "begun\n");
    }

    /// Lets the program end, now or when it gets there.
    pub fn release(&self) {
        (&self.gate).write_all(b"done\n").unwrap();
    }

    /// Waits until the program and all that it started are gone: nobody is left who could write.
    pub async fn gone(&mut self) {
        let mut rest = String::new();
        let end = timeout(DEADLINE, self.life.read_line(&mut rest)).await;
        assert_eq!(end.expect("something of it still runs").unwrap(), 0, "{rest}");
    }

    /// Returns the number of times that it ran.
    pub fn effects(&self) -> usize {
        fs::read_to_string(self.folder().join("effects")).unwrap_or_default().lines().count()
    }
}

fn pipe_at(folder: &Path, name: &str) -> PathBuf {
    let path = folder.join(name);
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    path
}
