//! Reads random files with established libraries, for the tests that compare their results with those of this crate.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use serde_json::Value;

/// Cases of one kind that a test run compares.
const CASES: usize = 300;

/// The cases of one kind, from one process of Python.
pub struct Cases {
    process: Child,
    lines: BufReader<ChildStdout>,
    kind: String,
    left: usize,
}

impl Cases {
    /// None, with a word, where the libraries are not installed. `KAIRO_DIFFERENTIAL_CASES` asks for more than a test run
    /// has, `KAIRO_DIFFERENTIAL_SEED` for others.
    pub fn of(kind: &str) -> Option<Self> {
        let Some(python) = std::env::var_os("KAIRO_CALENDAR_PYTHON") else {
            eprintln!("skipped: the libraries to compare with are not installed; scripts/setup --tests says why");
            return None;
        };
        let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<usize>().ok());
        let left = number("KAIRO_DIFFERENTIAL_CASES").unwrap_or(CASES);
        let seed = number("KAIRO_DIFFERENTIAL_SEED").unwrap_or(1);
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/differential/reference.py");
        let mut command = Command::new(python);
        command.arg(script).args([kind, &seed.to_string(), &left.to_string()]).env("PYTHONDONTWRITEBYTECODE", "1");
        let mut process = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("Python does not start");
        let lines = BufReader::new(process.stdout.take().expect("its output is a pipe"));
        Some(Self { process, lines, kind: kind.to_owned(), left })
    }

    /// Compares all cases with what `judge` says of each: nothing where both agree.
    ///
    /// # Panics
    /// When they do not agree in all, with the first few of the others.
    pub fn compare(mut self, judge: impl Fn(&Value) -> Option<String>) {
        let mut compared = 0;
        let mut differences = Vec::new();
        while compared < self.left {
            let mut line = String::new();
            self.lines.read_line(&mut line).expect("its output is text");
            assert!(!line.is_empty(), "only {compared} cases came");
            let case: Value = serde_json::from_str(&line).expect("a case is JSON");
            compared += 1;
            differences.extend(judge(&case));
        }
        assert!(self.process.wait().expect("it ends").success());
        let few: Vec<&str> = differences.iter().take(3).map(String::as_str).collect();
        assert!(
            differences.is_empty(),
            "{} of {compared} {} differ:\n{}",
            differences.len(),
            self.kind,
            few.join("\n----\n")
        );
    }
}
