//! A picture on a terminal: what is in flight stands at the bottom, with bars; what happened scrolls above.

use std::{collections::HashMap, io, time::Duration};

use console::{measure_text_width, truncate_str};
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use jiff::{Timestamp, tz::TimeZone};
use uuid::Uuid;

use super::{
    happening::Happening,
    in_flight::{InFlightItem, in_flight_items},
    picture::Picture,
};
use crate::event_lines::in_one_line;

/// Lines shown of each process's output.
const LINES: usize = 3;
/// Bars shown; what else is in flight is counted.
const BARS: usize = 12;
/// A bar is that many steps long.
const STEPS: u64 = 1_000;
/// Interval at which the times on the screen advance.
const TICK: Duration = Duration::from_millis(500);
/// Columns that a line needs beside its title, its bar and its message.
const REST: usize = 14;

/// Column widths of a line, for a screen of some width.
#[derive(Clone, Copy)]
struct Layout {
    width: usize,
    /// Columns of what a line is about.
    title: usize,
    bar: usize,
}

impl Layout {
    fn new(width: usize) -> Self {
        Self { width, title: (width * 3 / 8).clamp(16, 44), bar: (width / 6).clamp(8, 20) }
    }

    fn bar_template(self) -> String {
        format!("{{prefix:{}}} {{bar:{}}} {{percent:>3}}% {{elapsed:>4}}  {{msg}}", self.title, self.bar)
    }

    fn spinner_template(self) -> String {
        format!("{{prefix:{}}} {{spinner}} {{elapsed:>4}}  {{msg}}", self.title)
    }

    /// Columns left for what it says.
    fn message_width(self) -> usize {
        self.width.saturating_sub(self.title + self.bar + REST).max(8)
    }
}

pub struct Screen {
    all: MultiProgress,
    shown: HashMap<Uuid, ProgressBar>,
    /// The answer that is being written, and how much more there is.
    foot: ProgressBar,
    layout: Layout,
}

impl Screen {
    pub fn new(width: usize) -> Self {
        let all = MultiProgress::with_draw_target(ProgressDrawTarget::stdout());
        let foot = all.add(ProgressBar::no_length());
        foot.set_style(style("{msg}"));
        Self { all, shown: HashMap::new(), foot, layout: Layout::new(width) }
    }

    /// Writes what happened above the bars.
    pub fn print_happening(&self, happening: &Happening) -> io::Result<()> {
        self.all.println(happening.format_lines(&TimeZone::system(), self.layout.width))
    }

    /// Makes the bars show what is in flight.
    pub fn show(&mut self, picture: &Picture, now: Timestamp) {
        let doing = in_flight_items(picture, LINES);
        self.shown.retain(|id, bar| {
            let stays = doing.iter().take(BARS).any(|doing| doing.id == *id);
            if !stays {
                bar.finish_and_clear();
                self.all.remove(bar);
            }
            stays
        });
        for doing in doing.iter().take(BARS) {
            let bar = self.shown.entry(doing.id).or_insert_with(|| add_bar(&self.all, &self.foot, doing, now));
            update(bar, doing, self.layout);
        }
        let more = doing.len().saturating_sub(BARS);
        let more = if more == 0 { String::new() } else { format!("and {more} more in flight; see kairo actions") };
        let writing = in_one_line(&picture.writing);
        let foot = [more, fitting_end(&writing, self.layout.width.saturating_sub(4)).to_owned()]
            .into_iter()
            .filter(|line| !line.is_empty())
            .collect::<Vec<_>>()
            .join("\n");
        self.foot.set_message(foot);
    }
}

fn add_bar(all: &MultiProgress, foot: &ProgressBar, doing: &InFlightItem, now: Timestamp) -> ProgressBar {
    let age = Duration::try_from(now.duration_since(doing.since)).unwrap_or_default();
    let bar = all.insert_before(foot, ProgressBar::new(STEPS).with_elapsed(age));
    bar.enable_steady_tick(TICK);
    bar
}

fn update(bar: &ProgressBar, doing: &InFlightItem, layout: Layout) {
    match doing.fraction {
        Some(fraction) => {
            bar.set_style(style(&layout.bar_template()));
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and STEPS")]
            bar.set_position((fraction.clamp(0.0, 1.0) * STEPS as f64) as u64);
        }
        // It may have known before.
        None => bar.set_style(style(&layout.spinner_template())),
    }
    bar.set_prefix(truncate_str(&doing.title, layout.title, "…").into_owned());
    let mut message = truncate_str(&doing.note.replace('\n', " "), layout.message_width(), "…").into_owned();
    for line in &doing.lines {
        message.push_str("\n    ");
        message.push_str(&truncate_str(line, layout.width.saturating_sub(6).max(8), "…"));
    }
    bar.set_message(message);
}

/// As much of the end of a text as fits into so many columns.
fn fitting_end(text: &str, columns: usize) -> &str {
    let ends = text.char_indices().rev().filter_map(|(start, _)| text.get(start..));
    ends.take_while(|end| measure_text_width(end) <= columns).last().unwrap_or_default()
}

/// A test reads the templates.
fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

#[cfg(test)]
mod tests {
    use kairo_proto::v1;
    use serde_json::json;

    use super::{super::picture::tests::event, *};

    #[test]
    fn templates_can_be_read() {
        let layouts = [0, 80, 300].map(Layout::new);
        let templates = layouts.iter().flat_map(|layout| [layout.bar_template(), layout.spinner_template()]);
        for template in templates.chain(["{msg}".to_owned()]) {
            assert!(ProgressStyle::with_template(&template).is_ok(), "{template}");
        }
        assert!(Layout::new(80).message_width() >= 20);
    }

    #[test]
    fn of_an_answer_the_end_is_shown_as_far_as_it_fits() {
        assert_eq!((fitting_end("one two", 3), fitting_end("一二三", 5), fitting_end("", 5)), ("two", "二三", ""));
    }

    #[test]
    fn there_is_a_bar_for_each_that_is_in_flight_up_to_a_number() {
        let mut screen = Screen::new(100);
        screen.all.set_draw_target(ProgressDrawTarget::hidden());
        let id = |number: u32| Uuid::from_u128(u128::from(number) << 96);
        let mut picture = Picture::new("bob");
        for number in 1..=14 {
            let spawned = json!({"process_id": id(number), "program": "make"});
            picture.apply_event(&event(number.into(), 0, v1::ProcessSpawned::TYPE, spawned));
        }
        let progress = json!({"process_id": id(1), "fraction": 0.5, "message": "half", "tail": "cc a.c\n"});
        picture.apply_event(&event(20, 0, v1::ProcessProgress::TYPE, progress));
        screen.show(&picture, Timestamp::from_second(61).unwrap());
        assert_eq!(screen.shown.len(), BARS);
        assert!(screen.foot.message().starts_with("and 2 more"), "{}", screen.foot.message());
        let bar = &screen.shown[&id(1)];
        assert_eq!((bar.position(), bar.prefix().as_str()), (500, "make (00000001) "));
        assert_eq!(bar.message(), "half\n    | cc a.c");

        // That it no longer knows is shown, too.
        picture.apply_event(&event(
            21,
            0,
            v1::ProcessProgress::TYPE,
            json!({"process_id": id(1), "message": "the rest"}),
        ));
        screen.show(&picture, Timestamp::from_second(61).unwrap());
        assert_eq!(screen.shown[&id(1)].message(), "the rest");
        picture.apply_event(&event(22, 0, v1::ProcessExited::TYPE, json!({"process_id": id(1), "outcome": "exited"})));
        screen.show(&picture, Timestamp::from_second(62).unwrap());
        assert!(!screen.shown.contains_key(&id(1)) && screen.shown.contains_key(&id(13)));
    }
}
