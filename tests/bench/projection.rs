//! The speed at which the read model is built from the log, beside the floor: reading the same messages and inserting
//! their bytes into one table.
//!
//! A short run of everything is recorded ([`record`]), and multiplied with other agents, users and ids until the log is
//! as long as wanted ([`kairo_tests::multiply`], [`fill`]). On that log, in one run: the [`floor`]; projector, from nothing to the
//! end; another generation built beside the live one while nobody asks anything, and once more while queries are
//! answered at a fixed rate ([`rebuild`], [`queries`]).

mod fill;
mod floor;
mod queries;
mod rebuild;
pub mod record;
mod report;

use kairo_local::Service;

use crate::{
    Outcome,
    arguments::{Flushing, Projection},
    machine::Machine,
    rounds::progress,
};
use queries::Asking;
use rebuild::Registry;
pub use record::{connect, connect_as};
pub use report::Report;

/// Builds the log, and measures.
pub async fn measure(wanted: &Projection) -> Outcome<Report> {
    progress("recording a run of every service");
    let recorded = record::run().await?;
    let mut machine = Machine::servers(Flushing::Default).await?;
    progress(&format!("writing {} messages, made from {} recorded ones", wanted.messages, recorded.len()));
    let mix = fill::fill(&machine.nats.operator(), &recorded, wanted.messages).await?;
    progress("the floor: reading the log and inserting its bytes");
    let floor = floor::run(&machine.nats.operator(), &machine.database).await?;
    progress(&format!("{:.0} messages/s", floor.messages as f64 / floor.seconds));
    progress("projector, from nothing");
    machine.stack.start(Service::Gateway).await?;
    let gateway = machine.stack.url(Service::Gateway).unwrap_or_default().to_owned();
    let registry = Registry::of(&gateway)?;
    let (started, first) = tokio::join!(machine.stack.start(Service::Projector), registry.first(wanted.messages));
    let (_, first) = (started?, first?);
    progress(&first.to_string());
    progress("another generation beside it");
    let alone = registry.rebuild().await?;
    progress(&alone.to_string());
    let asking = Asking::of(&gateway, mix.copies, wanted.queries_per_s)?;
    asking.warm_up().await?;
    progress("queries at rest");
    let at_rest = asking.for_a_while().await?;
    progress("queries while another generation is built");
    let (beside, during) = asking.during(registry.rebuild()).await?;
    progress(&beside.to_string());
    machine.stop().await?;
    Ok(Report::new(wanted, mix, &floor, [first, alone, beside], [&at_rest, &during]))
}
