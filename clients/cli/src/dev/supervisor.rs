//! Starting again what ends though nobody asked it to.

use std::{
    collections::{BTreeMap, BTreeSet},
    convert::Infallible,
    time::Instant,
};

use super::{
    machine::{Machine, MachinePart},
    progress::say,
    restarts::{RestartDecision, Restarts},
};

/// The restarts of the parts of the machine, and the parts that are given up.
#[derive(Default)]
pub(super) struct Supervisor {
    restarts: BTreeMap<MachinePart, Restarts>,
    given_up: BTreeSet<MachinePart>,
}

impl Supervisor {
    /// Watches for as long as it is asked to. May be dropped at any time: what ended meanwhile is found at the next
    /// call.
    pub(super) async fn watch(&mut self, machine: &mut Machine) -> Infallible {
        loop {
            let ended = machine.ended_parts().into_iter().find(|(part, _)| !self.given_up.contains(part));
            let Some((part, exit)) = ended else {
                machine.wait_for_exit().await;
                continue;
            };
            let name = part.name();
            match self.restarts.entry(part).or_default().decide_restart(Instant::now()) {
                RestartDecision::GiveUp => {
                    self.given_up.insert(part);
                    say(format!("{name} ended ({exit}) and keeps ending: it is left so, its log may say why"));
                }
                RestartDecision::After(pause) => {
                    say(format!("{name} ended ({exit}): starting it again"));
                    tokio::time::sleep(pause).await;
                    match machine.restart(part).await {
                        Ok(()) => say(format!("{name} is back")),
                        Err(error) => say(format!("{name} did not come back: {error}")),
                    }
                }
            }
        }
    }
}
