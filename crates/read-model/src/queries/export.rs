//! The data held on a user, section by section, with the origin of each piece.
//!
//! A page is found in two steps: the origins of the next pieces, in the order of the log ([`sources`]), and their
//! content ([`content`]), by the queries that show them elsewhere.

mod content;
mod sources;

use std::{fmt, num::ParseIntError, str::FromStr};

use kairo_proto::{v1::ExportedRow, words::ExportSection};

use crate::{MAX_ROWS, ReadError, ReadSnapshot};

/// Sections in the order in which they are told.
const SECTIONS: [ExportSection; 12] = [
    ExportSection::Threads,
    ExportSection::Messages,
    ExportSection::Tasks,
    ExportSection::Memories,
    ExportSection::InnerState,
    ExportSection::Approvals,
    ExportSection::Choices,
    ExportSection::Briefings,
    ExportSection::Plans,
    ExportSection::Actions,
    ExportSection::Processes,
    ExportSection::ModelCalls,
];

/// The end of a page: `<section>.<sequence>.<position>.<id>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportCursor {
    pub section: ExportSection,
    pub sequence: u64,
    pub position: u32,
    /// Tells apart what one event says.
    pub id: String,
}

/// A text that names no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a place in what is held of a user")]
pub struct InvalidExportCursor;

/// The user, and the page of their data to return.
#[derive(Clone, Debug)]
pub struct ExportQuery {
    pub user: String,
    /// Behind this place; none for the beginning.
    pub after: Option<ExportCursor>,
    /// At most so many, and never more than [`MAX_ROWS`].
    pub limit: u32,
    /// Up to here in the log the user was forgotten; 0 for one who never was.
    pub forgotten_through: u64,
}

/// A part of what is held of a user.
#[derive(Clone, Debug, PartialEq)]
pub struct ExportPage {
    pub rows: Vec<ExportedRow>,
    /// The place to go on from; none if there is nothing more.
    pub next: Option<ExportCursor>,
}

impl ReadSnapshot {
    /// Returns the data held on a user: all that names them, and all that happened in their threads. Data written for
    /// all belongs to nobody.
    pub async fn export_page(&self, wanted: &ExportQuery) -> Result<ExportPage, ReadError> {
        let limit = usize::try_from(wanted.limit.clamp(1, MAX_ROWS)).unwrap_or(1);
        let mut rows = Vec::new();
        for section in remaining_sections(wanted.after.as_ref()) {
            let after = wanted.after.as_ref().filter(|after| after.section == section);
            // One more than there is room for tells whether there are more.
            let left = limit - rows.len();
            let mut sources = self.export_sources(&section, wanted, after, left + 1).await?;
            let more = sources.len() > left;
            sources.truncate(left);
            let last = sources.last().map(|last| last.to_cursor(&section)).or_else(|| section_start(&section));
            rows.extend(self.export_rows(&section, wanted, sources).await?);
            if more {
                return Ok(ExportPage { rows, next: last });
            }
        }
        Ok(ExportPage { rows, next: None })
    }
}

/// The sections that are still to be told.
fn remaining_sections(after: Option<&ExportCursor>) -> impl Iterator<Item = ExportSection> {
    let first = SECTIONS.iter().position(|section| after.is_some_and(|after| after.section == *section));
    SECTIONS.into_iter().skip(first.unwrap_or(0))
}

/// The place before all of a section, which a page ends at that has no room for any of it.
fn section_start(section: &ExportSection) -> Option<ExportCursor> {
    Some(ExportCursor { section: section.clone(), sequence: 0, position: 0, id: String::new() })
}

impl fmt::Display for ExportCursor {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}.{}.{}.{}", self.section, self.sequence, self.position, self.id)
    }
}

impl FromStr for ExportCursor {
    type Err = InvalidExportCursor;

    fn from_str(text: &str) -> Result<Self, InvalidExportCursor> {
        let mut parts = text.splitn(4, '.');
        let mut part = || parts.next().ok_or(InvalidExportCursor);
        let section = ExportSection::known(part()?).ok_or(InvalidExportCursor)?;
        let place = Self { section, sequence: part()?.parse()?, position: part()?.parse()?, id: part()?.to_owned() };
        Ok(place)
    }
}

impl From<ParseIntError> for InvalidExportCursor {
    fn from(_: ParseIntError) -> Self {
        Self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_section_has_its_turn() {
        let told: Vec<&str> = SECTIONS.iter().map(ExportSection::known_word).collect();
        assert_eq!(told, ExportSection::WORDS);
    }

    #[test]
    fn a_place_is_read_as_it_is_written() {
        let place = |text: &str| text.parse::<ExportCursor>();
        for text in ["messages.17.0.0199", "threads.3.1.default/a.b", "tasks.0.0."] {
            assert_eq!(place(text).map(|place| place.to_string()), Ok(text.to_owned()));
        }
        for text in ["", "messages", "gossip.1.0.x", "messages.x.0.y", "messages.1.-1.y"] {
            assert_eq!(place(text), Err(InvalidExportCursor), "{text}");
        }
    }

    #[test]
    fn a_page_goes_on_in_the_section_where_the_one_before_ended() {
        let after = "model_calls.1.0.x".parse().ok();
        assert_eq!(remaining_sections(after.as_ref()).collect::<Vec<_>>(), [ExportSection::ModelCalls]);
        assert_eq!(remaining_sections(None).count(), SECTIONS.len());
    }
}
