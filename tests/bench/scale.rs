//! The limits of scaling: decisions a second with more and more replicas ([`load`]), beside the most that their limit
//! of model calls allows; very many idle agents ([`crate::wake`]); and users beside a flooded agent ([`crate::fair`]).

mod load;
mod report;

use crate::{
    Outcome,
    arguments::{Fair, Part, Scale, Wake},
    fair, wake,
};
pub use report::Report;

/// Agents beside the flooded one.
const NEIGHBOURS: u64 = 8;

pub async fn measure(wanted: &Scale) -> Outcome<Report> {
    let mut report = Report::of_this_machine()?;
    if wanted.only.contains(&Part::Load) {
        report.load = load::measure(wanted).await?;
    }
    if wanted.only.contains(&Part::Idle) {
        let Scale { idle, wakes, orphans, json, .. } = *wanted;
        report.idle = Some(wake::measure(&Wake { agents: idle, wakes, orphans, json }).await?);
    }
    if wanted.only.contains(&Part::Neighbours) {
        let Scale { flood, seconds, json, .. } = *wanted;
        let beside = Fair { flood, agents: NEIGHBOURS, seconds, share_seconds: 0, replicas: 1, json };
        report.neighbours = Some(fair::measure(&beside).await?);
    }
    Ok(report)
}
