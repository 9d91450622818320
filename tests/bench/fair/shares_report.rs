//! The share of others in one kind of thing, alone and beside a flood.

use std::fmt;

use serde::Serialize;

use crate::{
    load::{Waits, percentile},
    report::milliseconds,
};

#[derive(Debug, Serialize)]
pub struct Share {
    name: &'static str,
    alone: Figures,
    beside: Figures,
    /// The error of one of their requests, or the reason of its refusal.
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<String>,
}

#[derive(Debug, Serialize)]
struct Figures {
    requests: usize,
    /// With 429 or 503, or not answered at all.
    refused: u64,
    p50_ms: f64,
    p99_ms: f64,
}

impl Share {
    pub fn new(name: &'static str, alone: &Waits, beside: &Waits) -> Self {
        let failure = beside.failure.clone().or_else(|| alone.failure.clone());
        Self { name, alone: Figures::of(alone), beside: Figures::of(beside), failure }
    }
}

impl Figures {
    fn of(waits: &Waits) -> Self {
        let at = |share| milliseconds(percentile(&waits.replies, share));
        let refused = waits.unanswered;
        Self { requests: waits.replies.len() + refused as usize, refused, p50_ms: at(0.5), p99_ms: at(0.99) }
    }
}

/// Above the rows of a table.
pub struct Head;

impl fmt::Display for Head {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\nothers below their shares, alone and beside a flood; aim: none refused\n")?;
        write!(f, "{:32}{:>9}{:>9}{:>9}{:>9}", "", "requests", "refused", "p50 ms", "p99 ms")?;
        writeln!(f, "{:>10}{:>9}{:>9}{:>9}", "requests", "refused", "p50 ms", "p99 ms")
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, alone, beside, failure } = self;
        let Figures { requests, refused, p50_ms, p99_ms } = alone;
        write!(f, "{name:32}{requests:>9}{refused:>9}{p50_ms:>9.1}{p99_ms:>9.1}")?;
        let Figures { requests, refused, p50_ms, p99_ms } = beside;
        writeln!(f, "{requests:>10}{refused:>9}{p50_ms:>9.1}{p99_ms:>9.1}")?;
        match failure {
            Some(failure) => writeln!(f, "  {}", failure.chars().take(160).collect::<String>()),
            None => Ok(()),
        }
    }
}
