//! A file with a switch at each of its candidates.

use std::{fmt::Write, ops::Range};

use crate::{
    candidates::{Candidate, Form, Site},
    source::{self, Source},
};

/// The mutants of one place.
struct Place<'c> {
    range: Range<usize>,
    form: Form,
    name: &'c str,
    mutants: Vec<(usize, &'c Site)>,
}

/// The text of a file in which each of these candidates can be switched on, by its number, counted from 1.
pub fn wrapped(source: &Source, candidates: &[Candidate]) -> String {
    let numbered = (1..).zip(candidates);
    let sites = numbered.flat_map(|(id, candidate)| candidate.sites.iter().map(move |(file, site)| (id, file, site)));
    let mut places: Vec<Place<'_>> = Vec::new();
    for (id, _, site) in sites.filter(|(_, file, _)| **file == source.path) {
        let is_there = |place: &&mut Place<'_>| {
            (&place.range, place.form, place.name) == (&site.range, site.form, site.name.as_str())
        };
        match places.iter_mut().find(is_there) {
            Some(place) => place.mutants.push((id, site)),
            None => places.push(Place {
                range: site.range.clone(),
                form: site.form,
                name: &site.name,
                mutants: vec![(id, site)],
            }),
        }
    }
    // What is around others comes before them.
    places.sort_by_key(|place| (place.range.start, std::cmp::Reverse(place.range.end), place.form == Form::Expression));
    within(&source.text, 0..source.text.len(), &places)
}

/// What stands there, with the switches of these places, all of which are in it.
fn within(text: &str, range: Range<usize>, mut places: &[Place<'_>]) -> String {
    let (mut out, mut at) = (String::new(), range.start);
    while let Some((place, rest)) = places.split_first() {
        let inner = rest.iter().take_while(|inner| inner.range.start < place.range.end).count();
        let (inner, behind) = rest.split_at_checked(inner).unwrap_or((rest, &[]));
        out.push_str(source::at(text, at..place.range.start));
        out.push_str(&switched(place, &within(text, place.range.clone(), inner)));
        at = place.range.end;
        places = behind;
    }
    out.push_str(source::at(text, at..range.end));
    out
}

fn switched(place: &Place<'_>, original: &str) -> String {
    let mut switches = String::new();
    for (id, site) in &place.mutants {
        let asks = if site.is_always_other { "on" } else { "perhaps" };
        // Writing into a text never fails.
        _ = write!(switches, "if ::kairo_mutants_switch::{asks}({id}) {{ {} }} else ", site.mutated);
    }
    match place.form {
        Form::Expression => format!("({switches}{{ {original} }})"),
        Form::Statement => format!("{switches}{{ {original} }}"),
        Form::Argument => format!(", {} = ({switches}{{ {} }})", place.name, place.name),
    }
}
