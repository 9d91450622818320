//! Schedules: what is to be published at a time.

use jiff::Timestamp;
use kairo_core::{
    bus::port::{Headers, OutgoingMessage},
    subjects::TIMERS_STREAM,
};
use uuid::Uuid;

use crate::{
    chance::Chance,
    server::{Server, Stream},
};

/// Headers by which timers are set.
const SCHEDULE: &str = "Nats-Schedule";
const TARGET: &str = "Nats-Schedule-Target";

impl Server {
    /// Publishes what is due, some of it again later, as a server does that was restarted in between.
    pub fn fire_timers(&mut self, now: Timestamp, lost: bool, again: u64, chance: &mut dyn Chance) {
        let due: Vec<(u64, OutgoingMessage)> = match self.streams.get(TIMERS_STREAM) {
            Some(timers) => timers
                .all_entries()
                .iter()
                .filter_map(|stored| {
                    scheduled_time(&stored.headers).filter(|at| stored.gone.is_none() && *at <= now)?;
                    let target = stored.headers.get(TARGET)?.as_str().to_owned();
                    let kept = |name: &str| !name.starts_with("Nats-Schedule");
                    let mut headers = Headers::new();
                    for (name, values) in stored.headers.iter().filter(|(name, _)| kept(name.as_ref())) {
                        values.iter().for_each(|value| headers.append(name.clone(), value.clone()));
                    }
                    Some((stored.sequence, OutgoingMessage::new(target, headers, stored.payload.clone())))
                })
                .collect(),
            None => Vec::new(),
        };
        for (sequence, message) in due {
            if !chance.permille(again)
                && let Some(timers) = self.streams.get_mut(TIMERS_STREAM)
            {
                timers.remove(sequence);
            }
            if !lost {
                self.write(message, now);
            }
        }
    }

    /// The timers that are set, by task and occurrence.
    pub fn timers(&self) -> Vec<((Uuid, u64), Timestamp)> {
        let stored = self.streams.get(TIMERS_STREAM).into_iter().flat_map(Stream::all_entries);
        let set = stored.filter(|stored| stored.gone.is_none()).filter_map(|stored| {
            let mut tokens = stored.subject.rsplit('.');
            let occurrence = tokens.next()?.parse().ok()?;
            let task = tokens.next()?.parse().ok()?;
            Some(((task, occurrence), scheduled_time(&stored.headers)?))
        });
        set.collect()
    }
}

fn scheduled_time(headers: &Headers) -> Option<Timestamp> {
    headers.get(SCHEDULE)?.as_str().strip_prefix("@at ")?.parse().ok()
}
