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

/// Returns the text of a range with the switches of `places`, all of which are in it.
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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::candidates;

    fn wrapped_text(text: &str) -> (Vec<Candidate>, String) {
        let source = Source { path: "a.rs".to_owned(), text: text.to_owned() };
        let candidates = candidates::all(std::slice::from_ref(&source)).unwrap();
        let wrapped = wrapped(&source, &candidates);
        (candidates, wrapped)
    }

    #[test]
    fn every_file_of_the_mind_still_is_one_and_every_candidate_stands_where_it_says() {
        let sources = source::all(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")).unwrap();
        let candidates = candidates::all(&sources).unwrap();
        assert!(candidates.len() > 1_000, "{}", candidates.len());
        let mut identities: Vec<&str> = candidates.iter().map(|candidate| candidate.identity.as_str()).collect();
        identities.sort_unstable();
        assert!(identities.windows(2).all(|two| two[0] != two[1]), "each has a name of its own");
        for candidate in &candidates {
            let source = sources.iter().find(|source| source.path == candidate.file).unwrap();
            let there = source::at(&source.text, candidate.range.clone());
            match candidate.kind {
                // As it is read, without what Rust takes to write it.
                "sentence" | "word" => {
                    let literal: syn::LitStr = syn::parse_str(there).unwrap();
                    assert!(literal.value().contains(&candidate.original), "{}", candidate.identity);
                }
                _ => assert_eq!(there, candidate.original, "{}", candidate.identity),
            }
        }
        for source in &sources {
            let wrapped = wrapped(source, &candidates);
            let read = syn::parse_file(&wrapped).map(drop);
            assert!(read.is_ok(), "{}: {read:?}\n{wrapped}", source.path);
            let switches = candidates.iter().flat_map(|it| &it.sites).filter(|(file, _)| *file == source.path).count();
            assert!(wrapped.matches("::kairo_mutants_switch::").count() >= switches, "{}", source.path);
        }
    }

    #[test]
    fn a_switch_within_another_is_only_in_what_stands_there_unmutated() {
        let (candidates, wrapped) = wrapped_text("fn f(a: u8, b: u8) -> bool { a == b && a < 3 }");
        let kinds: Vec<&str> = candidates.iter().map(|candidate| candidate.kind).collect();
        assert_eq!(kinds, ["and or", "equality", "order", "number"]);
        let between = "::kairo_mutants_switch::between";
        assert_eq!(
            wrapped,
            format!(
                "fn f(a: u8, b: u8) -> bool {{ (if ::kairo_mutants_switch::perhaps(1) {{ match (a == b, a < 3) {{ (l, r) => \
                 {between}(l && r, l || r) }} }} else {{ (if ::kairo_mutants_switch::on(2) {{ a != b }} else {{ a == b }}) && \
                 (if ::kairo_mutants_switch::perhaps(3) {{ match (&(a), &(3)) {{ (l, r) => {between}(*l < *r, *l <= *r) }} }} \
                 else {{ a < (if ::kairo_mutants_switch::on(4) {{ 4 }} else {{ 3 }}) }}) }}) }}"
            )
        );
    }

    #[test]
    fn constants_patterns_tests_macros_and_bindings_stay() {
        let (candidates, wrapped) = wrapped_text(
            "const A: bool = 1 == 2;\nstatic B: [u8; 3] = [0; 3];\nconst fn c() -> bool { !true }\n\
             fn d(x: Option<u8>) -> u8 { match x { Some(1 | 2) => 0, _ => -1 } }\n\
             fn e(x: Option<u8>) { if let Some(y) = x && f() { assert!(y == 1); } }\n\
             #[cfg(test)]\nmod tests { fn g() -> bool { true } }\n",
        );
        assert_eq!(candidates.len(), 1, "{candidates:?}");
        assert!(wrapped.contains("=> (if ::kairo_mutants_switch::on(1) { 1 } else { 0 })"), "{wrapped}");
    }

    #[test]
    fn texts_of_constants_are_others_where_they_are_used() {
        let (candidates, wrapped) = wrapped_text(
            "const TITLE: &str = \"What is in progress:\";\n\
             fn f(x: u8) -> String { format!(\"{TITLE}\\n{x}\") }\n\
             fn g() -> Value { json!({ \"what it is\": \"some words for you\" }) }\n\
             fn h() -> String { format!(\"Of {}.\", TITLE) }\n",
        );
        let kinds: Vec<&str> = candidates.iter().map(|candidate| candidate.kind).collect();
        assert_eq!(kinds, ["word", "word"], "{candidates:?}");
        let switch = "if ::kairo_mutants_switch::on(1) { \"otherwise is in progress:\" } else";
        assert!(wrapped.contains(&format!("\"{{TITLE}}\\n{{x}}\", TITLE = ({switch}")), "{wrapped}");
        assert!(wrapped.contains("\"what it is\": (if ::kairo_mutants_switch::on(2)"), "{wrapped}");
        assert!(wrapped.contains(&format!("\"Of {{}}.\", ({switch}")), "{wrapped}");
    }
}
