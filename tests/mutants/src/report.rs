//! The results of all mutants, as a table and as JSON.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};

use crate::{
    Outcome,
    candidates::{About, Candidate, short},
    running::Verdict,
};

/// A mutant that behaves as the original does, and why.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Equivalent {
    pub mutant: String,
    pub why: String,
}

/// Reads the list of those.
///
/// # Errors
/// Returns an error if the text is no such list, or if an entry gives no reason.
pub fn equivalents(text: &str) -> Outcome<BTreeMap<String, String>> {
    let all: Vec<Equivalent> = serde_saphyr::from_str(text)?;
    match all.iter().find(|it| it.why.trim().is_empty()) {
        Some(it) => Err(format!("{}: expected why it is equivalent", it.mutant).into()),
        None => Ok(all.into_iter().map(|it| (it.mutant, it.why)).collect()),
    }
}

/// The counts of one kind of mutant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Figures {
    /// Places that can be changed.
    pub candidates: usize,
    /// Those that the logs come to; of texts, those that models are shown.
    pub reached: usize,
    pub tried: usize,
    /// Of these, those that had the same value wherever the logs came to them.
    pub unchanged: usize,
    /// Those that had another one, of which nothing came: every decision, question and state is the same to the last byte.
    pub without_effect: usize,
    /// Those that the list says are equivalent.
    pub equivalent: usize,
    pub found: usize,
    pub missed: usize,
}

impl Figures {
    /// Those of which something came in these logs.
    pub fn effective(&self) -> usize {
        self.found + self.missed
    }

    /// Found of those, in per cent.
    pub fn percent(&self) -> f64 {
        self.found as f64 * 100.0 / self.effective().max(1) as f64
    }

    /// Found of all that were tried, in per cent.
    pub fn percent_of_tried(&self) -> f64 {
        self.found as f64 * 100.0 / self.tried.max(1) as f64
    }
}

/// A mutant that was not found.
#[derive(Clone, Debug, Serialize)]
pub struct Survivor {
    #[serde(flatten)]
    pub candidate: Candidate,
    pub verdict: Verdict,
    /// The reason why it is equivalent, if the list has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub equivalent: Option<String>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Report {
    pub seed: u64,
    pub logs: usize,
    pub messages: usize,
    pub decisions: usize,
    pub logic: Figures,
    pub prompts: Figures,
    /// By what those were that were found.
    pub outcomes: BTreeMap<String, usize>,
    pub survivors: Vec<Survivor>,
    /// Of the list, those that were found or are not there: it says something else of them.
    pub stale: Vec<String>,
}

impl Report {
    /// The figures of those that this is about.
    pub fn figures(&mut self, about: About) -> &mut Figures {
        match about {
            About::Logic => &mut self.logic,
            About::Prompt => &mut self.prompts,
        }
    }

    /// Adds what came of a mutant.
    pub fn add(&mut self, candidate: &Candidate, verdict: Verdict, equivalent: Option<&String>) {
        let figures = self.figures(candidate.about);
        figures.tried += 1;
        match (&verdict, equivalent) {
            (Verdict::Found(_), _) => figures.found += 1,
            (Verdict::Unchanged, _) => figures.unchanged += 1,
            (Verdict::WithoutEffect, _) => figures.without_effect += 1,
            (Verdict::Missed(_), Some(_)) => figures.equivalent += 1,
            (Verdict::Missed(_), None) => figures.missed += 1,
        }
        match verdict {
            Verdict::Found(outcome) => {
                *self.outcomes.entry(outcome).or_default() += 1;
                self.stale.extend(equivalent.map(|_| candidate.identity.clone()));
            }
            verdict => {
                let (candidate, equivalent) = (candidate.clone(), equivalent.cloned());
                self.survivors.push(Survivor { candidate, verdict, equivalent });
            }
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, logs, messages, decisions, .. } = self;
        writeln!(out, "{decisions} decisions in {messages} messages of {logs} logs; seed {seed}\n")?;
        writeln!(out, "{:<38}{:>9}{:>9}", "", "logic", "prompts")?;
        let mut row = |name: &str, figure: fn(&Figures) -> String| {
            writeln!(out, "{name:<38}{:>9}{:>9}", figure(&self.logic), figure(&self.prompts))
        };
        row("candidates", |it| it.candidates.to_string())?;
        row("reached by the logs", |it| it.reached.to_string())?;
        row("tried", |it| it.tried.to_string())?;
        row("  the same value everywhere", |it| it.unchanged.to_string())?;
        row("  nothing came of it in these logs", |it| it.without_effect.to_string())?;
        row("  equivalent, by the list", |it| it.equivalent.to_string())?;
        row("  something came of it", |it| it.effective().to_string())?;
        row("    found", |it| it.found.to_string())?;
        row("    missed", |it| it.missed.to_string())?;
        row("found of those with an effect, %", |it| format!("{:.1}", it.percent()))?;
        row("found of all that were tried, %", |it| format!("{:.1}", it.percent_of_tried()))?;
        let outcomes: Vec<String> = self.outcomes.iter().map(|(outcome, count)| format!("{count} {outcome}")).collect();
        writeln!(out, "\nfound as: {}", outcomes.join(", "))?;
        for survivor in &self.survivors {
            let Survivor { candidate: it, verdict, equivalent } = survivor;
            writeln!(out, "\n{}:{} {verdict:?}  {}", it.file, it.line, it.identity)?;
            writeln!(out, "  - {}\n  + {}", short(&it.original), short(&it.mutated))?;
            equivalent.iter().try_for_each(|why| writeln!(out, "  equivalent: {why}"))?;
        }
        self.stale.iter().try_for_each(|it| writeln!(out, "\nno longer equivalent: {it}"))
    }
}
