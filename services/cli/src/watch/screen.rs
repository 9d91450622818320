//! A picture on a terminal: what is in flight stands at the bottom, with bars; what happened scrolls above.

use std::{collections::HashMap, io, time::Duration};

use console::truncate_str;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use jiff::Timestamp;
use uuid::Uuid;

use super::{
    doing::{Doing, doing},
    picture::Picture,
};
use crate::chain::printable;

/// Lines shown of each process's output.
const LINES: usize = 3;
/// Bars shown; what else is in flight is counted.
const BARS: usize = 12;
/// A bar is that many steps long.
const STEPS: u64 = 1_000;
/// How often times on the screen move.
const TICK: Duration = Duration::from_millis(500);
/// Columns of what a bar is about.
const TITLE: usize = 44;

const MEASURED: &str = "{prefix:44} {bar:20} {percent:>3}% {elapsed:>4}  {msg}";
const UNMEASURED: &str = "{prefix:44} {spinner} {elapsed:>4}  {msg}";

pub struct Screen {
    all: MultiProgress,
    shown: HashMap<Uuid, ProgressBar>,
    /// The answer that is being written, and how much more there is.
    foot: ProgressBar,
    width: usize,
}

impl Screen {
    pub fn new(width: usize) -> Self {
        let all = MultiProgress::with_draw_target(ProgressDrawTarget::stdout());
        let foot = all.add(ProgressBar::no_length());
        foot.set_style(style("{msg}"));
        Self { all, shown: HashMap::new(), foot, width }
    }

    /// Writes lines above the bars.
    pub fn line(&self, text: &str) -> io::Result<()> {
        self.all.println(text)
    }

    /// Makes the bars show what is in flight.
    pub fn show(&mut self, picture: &Picture, now: Timestamp) {
        let doing = doing(picture, LINES);
        self.shown.retain(|id, bar| {
            let stays = doing.iter().take(BARS).any(|doing| doing.id == *id);
            if !stays {
                bar.finish_and_clear();
                self.all.remove(bar);
            }
            stays
        });
        for doing in doing.iter().take(BARS) {
            let bar = self.shown.entry(doing.id).or_insert_with(|| begin(&self.all, &self.foot, doing, now));
            update(bar, doing, self.width);
        }
        let more = doing.len().saturating_sub(BARS);
        let more = if more == 0 { String::new() } else { format!("and {more} more in flight; see kairo actions") };
        let writing = printable(&picture.writing).replace(['\n', '\t'], " ");
        let skipped = writing.chars().count().saturating_sub(self.width.saturating_sub(4));
        let writing: String = writing.chars().skip(skipped).collect();
        let foot = [more, writing].into_iter().filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n");
        self.foot.set_message(foot);
    }
}

fn begin(all: &MultiProgress, foot: &ProgressBar, doing: &Doing, now: Timestamp) -> ProgressBar {
    let age = Duration::try_from(now.duration_since(doing.since)).unwrap_or_default();
    let bar = all.insert_before(foot, ProgressBar::new(STEPS).with_elapsed(age));
    bar.set_style(style(UNMEASURED));
    bar.enable_steady_tick(TICK);
    bar
}

fn update(bar: &ProgressBar, doing: &Doing, width: usize) {
    if let Some(fraction) = doing.fraction {
        bar.set_style(style(MEASURED));
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and STEPS")]
        bar.set_position((fraction.clamp(0.0, 1.0) * STEPS as f64) as u64);
    }
    bar.set_prefix(truncate_str(&doing.title, TITLE, "…").into_owned());
    let room = width.saturating_sub(TITLE + 32).max(8);
    let mut message = truncate_str(&doing.note.replace('\n', " "), room, "…").into_owned();
    for line in &doing.lines {
        message.push_str("\n    ");
        message.push_str(&truncate_str(line, width.saturating_sub(6).max(8), "…"));
    }
    bar.set_message(message);
}

/// The templates are constants that a test reads.
fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{super::picture::tests::event, *};

    #[test]
    fn templates_can_be_read() {
        for template in [MEASURED, UNMEASURED, "{msg}"] {
            assert!(ProgressStyle::with_template(template).is_ok(), "{template}");
        }
    }

    #[test]
    fn there_is_a_bar_for_each_that_is_in_flight_up_to_a_number() {
        let mut screen = Screen::new(100);
        screen.all.set_draw_target(ProgressDrawTarget::hidden());
        let id = |number: u32| Uuid::from_u128(u128::from(number) << 96);
        let mut picture = Picture::new("bob");
        for number in 1..=14 {
            let spawned = json!({"process_id": id(number), "program": "make"});
            picture.take(&event(number.into(), 0, "kairo.process.spawned.v1", spawned));
        }
        let progress = json!({"process_id": id(1), "fraction": 0.5, "message": "half", "tail": "cc a.c\n"});
        picture.take(&event(20, 0, "kairo.process.progress.v1", progress));
        screen.show(&picture, Timestamp::from_second(61).unwrap());
        assert_eq!(screen.shown.len(), BARS);
        assert!(screen.foot.message().starts_with("and 2 more"), "{}", screen.foot.message());
        let bar = &screen.shown[&id(1)];
        assert_eq!((bar.position(), bar.prefix().as_str()), (500, "make (00000001) "));
        assert_eq!(bar.message(), "half\n    | cc a.c");

        picture.take(&event(21, 0, "kairo.process.exited.v1", json!({"process_id": id(1), "outcome": "exited"})));
        screen.show(&picture, Timestamp::from_second(62).unwrap());
        assert!(!screen.shown.contains_key(&id(1)) && screen.shown.contains_key(&id(13)));
    }
}
