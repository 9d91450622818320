//! Generates the closed list of messages that have a type of their own, and the groups in which they are matched.

use std::fmt::Write;

use anyhow::Context;
use prost_reflect::{EnumValueDescriptor, MessageDescriptor};

use crate::{
    Generated,
    contract::{Contract, capital, comment, number, text},
    messages::derives_json,
};

/// A message that has a type of its own.
struct Event {
    message: String,
    type_name: String,
    group: i32,
    /// The name within its group; empty if it is a group of its own.
    name: String,
    /// The name of the variant, if decisions hold the event.
    decided: Option<String>,
    /// The version of readers that first knows it; 0 if all do.
    reader: u32,
}

struct Group {
    name: String,
    doc: String,
    events: Vec<Event>,
}

pub fn file(contract: &Contract) -> anyhow::Result<Generated> {
    let groups = groups(contract)?;
    let mut out = "// @generated from the options of the protos.\n\n".to_owned();
    let all = || groups.iter().flat_map(|group| &group.events);
    writeln!(out, "bodies! {{")?;
    all().try_for_each(|event| writeln!(out, "    {} = {:?},", event.message, event.type_name))?;
    writeln!(out, "}}\n\ndecided! {{")?;
    for event in all() {
        if let Some(variant) = &event.decided {
            writeln!(out, "    {variant}({}),", event.message)?;
        }
    }
    writeln!(out, "}}\n\ngroups! {{")?;
    for group in groups.iter().filter(|group| !group.stands_alone()) {
        writeln!(out, "    /// {}\n    {} {{", group.doc, group.name)?;
        group.events.iter().try_for_each(|event| writeln!(out, "        {}({}),", event.name, event.message))?;
        writeln!(out, "    }}")?;
    }
    writeln!(out, "}}\n")?;
    readers(&mut out, contract, &groups)?;
    about(&mut out, &groups)?;
    logged(&mut out, contract)?;
    Ok(("proto/src/generated/types.rs".to_owned(), out.into_bytes()))
}

/// The groups, in the order of their numbers.
fn groups(contract: &Contract) -> anyhow::Result<Vec<Group>> {
    let declared = contract.pool.get_enum_by_name("kairo.options.Group").context("no groups")?;
    let decided = contract.pool.get_message_by_name("kairo.v1.DecidedEvent").context("no decided events")?;
    let mut events: Vec<Event> = Vec::new();
    for message in contract.messages() {
        events.extend(event(contract, &message, &decided)?);
    }
    let group = |value: EnumValueDescriptor| {
        let events: Vec<Event> = events.extract_if(.., |event| event.group == value.number()).collect();
        let name = capital(&value.name().trim_start_matches("GROUP_").to_lowercase());
        Group { name, doc: comment(&value.parent_enum().parent_file(), value.path()), events }
    };
    let groups: Vec<Group> = declared.values().map(group).filter(|group| !group.events.is_empty()).collect();
    Ok(groups)
}

fn event(
    contract: &Contract,
    message: &MessageDescriptor,
    decided: &MessageDescriptor,
) -> anyhow::Result<Option<Event>> {
    let Some(option) = contract.option("kairo.options.event", &message.options())? else { return Ok(None) };
    let variant = decided.fields().find(|field| field.kind().as_message() == Some(message));
    Ok(Some(Event {
        message: message.name().to_owned(),
        type_name: text(&option, "type"),
        group: option.get_field_by_name("group").and_then(|value| value.as_enum_number()).unwrap_or_default(),
        name: text(&option, "name"),
        decided: variant.map(|field| camel(field.name())),
        reader: number(&option, "reader"),
    }))
}

impl Group {
    fn stands_alone(&self) -> bool {
        self.events.iter().any(|event| event.name.is_empty())
    }

    fn is_decided(&self) -> bool {
        self.events.iter().any(|event| event.decided.is_some())
    }

    /// Returns the pattern that matches an event in the group and binds its message to `it`.
    fn pattern(&self, event: &Event) -> String {
        match event.name.as_str() {
            "" => format!("{}(it)", self.name),
            name => format!("{}({}::{name}(it))", self.name, self.name),
        }
    }

    /// Returns the type of the group's content.
    fn holds(&self) -> String {
        match self.events.as_slice() {
            [only] if only.name.is_empty() => format!("&'m v1::{}", only.message),
            _ => format!("{}<'m>", self.name),
        }
    }
}

/// Writes the table of types that not all builds know, and the newest version of readers.
fn readers(out: &mut String, contract: &Contract, groups: &[Group]) -> anyhow::Result<()> {
    let mut newest = 1;
    writeln!(out, "/// Types that not all builds know, and the version of readers that does.")?;
    writeln!(out, "pub const READERS: &[(&str, u32)] = &[")?;
    for event in groups.iter().flat_map(|group| &group.events).filter(|event| event.reader > 0) {
        newest = newest.max(event.reader);
        writeln!(out, "    ({:?}, {}),", event.type_name, event.reader)?;
    }
    for field in contract.messages().flat_map(|message| message.fields().collect::<Vec<_>>()) {
        let option = contract.option("kairo.options.field", &field.options())?;
        newest = newest.max(option.map(|option| number(&option, "reader")).unwrap_or_default());
    }
    Ok(writeln!(
        out,
        "];\n/// The newest of these, and of those that fields ask for.\npub const READER: u32 = {newest};\n"
    )?)
}

/// The groups together, and which group a message is in.
fn about(out: &mut String, groups: &[Group]) -> std::fmt::Result {
    let (decided, others): (Vec<&Group>, Vec<&Group>) = groups.iter().partition(|group| group.is_decided());
    for (name, doc, groups) in
        [("About", "What a message is about.", &others), ("Decided", "What an event of a decision is about.", &decided)]
    {
        writeln!(out, "/// {doc}\n#[derive(Clone, Copy, Debug, PartialEq)]\npub enum {name}<'m> {{")?;
        groups
            .iter()
            .try_for_each(|group| writeln!(out, "    /// {}\n    {}({}),", group.doc, group.name, group.holds()))?;
        if name == "About" {
            writeln!(out, "    /// An event that a decision holds.\n    Decided(Decided<'m>),")?;
        }
        writeln!(out, "}}\n")?;
    }
    writeln!(
        out,
        "impl Body {{\n    /// What it is about.\n    pub fn about(&self) -> About<'_> {{\n        match self {{"
    )?;
    for group in groups {
        for event in &group.events {
            let pattern = group.pattern(event);
            let about = match event.decided {
                Some(_) => format!("About::Decided(Decided::{pattern})"),
                None => format!("About::{pattern}"),
            };
            writeln!(out, "            Body::{}(it) => {about},", event.message)?;
        }
    }
    writeln!(out, "        }}\n    }}\n}}\n")?;
    writeln!(
        out,
        "impl Event {{\n    /// What it is about.\n    pub fn about(&self) -> Decided<'_> {{\n        match self {{"
    )?;
    for group in decided {
        for event in &group.events {
            let variant = event.decided.as_deref().unwrap_or_default();
            writeln!(out, "            Event::{variant}(it) => Decided::{},", group.pattern(event))?;
        }
    }
    writeln!(out, "        }}\n    }}\n}}\n")
}

/// The messages whose JSON is proto3's mapping: all that do not derive their own.
fn logged(out: &mut String, contract: &Contract) -> std::fmt::Result {
    writeln!(out, "mapped! {{")?;
    for message in contract.messages() {
        let file = message.parent_file();
        if !derives_json(file.name()) && file.name() != "kairo/v1/values.proto" {
            writeln!(out, "    {},", message.name())?;
        }
    }
    writeln!(out, "}}")
}

fn camel(name: &str) -> String {
    name.split('_').map(capital).collect()
}
