//! Generates the code that visits the personal fields of the log, in the order of the protos.

use std::{collections::BTreeSet, fmt::Write};

use prost_reflect::{FieldDescriptor, Kind, MessageDescriptor, OneofDescriptor};

use crate::{
    Generated,
    contract::{Contract, capital, flag},
    messages::derives_json,
};

pub fn file(contract: &Contract) -> anyhow::Result<Generated> {
    let logged: Vec<MessageDescriptor> =
        contract.messages().filter(|it| !derives_json(it.parent_file().name())).collect();
    let personal = holding(contract, &logged)?;
    let mut out = "// @generated from the options of fields.\n\n".to_owned();
    for message in logged.iter().filter(|it| personal.contains(it.name())) {
        writeln!(out, "impl Personal for v1::{} {{", message.name())?;
        writeln!(out, "    fn personal(&mut self, visit: &mut dyn FnMut(Value<'_>)) {{")?;
        for field in message.fields().filter(|field| field.containing_oneof().is_none_or(|it| it.is_synthetic())) {
            if let Some(code) = of(contract, &field, &personal)? {
                writeln!(out, "        {code}")?;
            }
        }
        for oneof in message.oneofs().filter(|oneof| !oneof.is_synthetic()) {
            chosen(&mut out, message, &oneof, &personal)?;
        }
        writeln!(out, "    }}\n}}\n")?;
    }
    writeln!(out, "impl Personal for Body {{")?;
    writeln!(out, "    fn personal(&mut self, visit: &mut dyn FnMut(Value<'_>)) {{\n        match self {{")?;
    for message in &logged {
        if contract.option("kairo.options.event", &message.options())?.is_some() {
            let name = message.name();
            match personal.contains(name) {
                true => writeln!(out, "            Body::{name}(it) => it.personal(visit),")?,
                false => writeln!(out, "            Body::{name}(_) => {{}}")?,
            }
        }
    }
    writeln!(out, "        }}\n    }}\n}}")?;
    Ok(("proto/src/generated/personal.rs".to_owned(), out.into_bytes()))
}

/// Returns the messages with personal fields, of their own or in messages they hold.
fn holding(contract: &Contract, logged: &[MessageDescriptor]) -> anyhow::Result<BTreeSet<String>> {
    let mut holding = BTreeSet::new();
    loop {
        let before = holding.len();
        for message in logged {
            for field in message.fields() {
                let below = field.kind().as_message().is_some_and(|it| holding.contains(it.name()));
                if below || is_personal(contract, &field)? {
                    holding.insert(message.name().to_owned());
                }
            }
        }
        if holding.len() == before {
            return Ok(holding);
        }
    }
}

pub fn is_personal(contract: &Contract, field: &FieldDescriptor) -> anyhow::Result<bool> {
    Ok(contract.option("kairo.options.field", &field.options())?.is_some_and(|option| flag(&option, "personal")))
}

/// Returns the code that visits a field; `None` if the field holds nothing personal.
fn of(contract: &Contract, field: &FieldDescriptor, holding: &BTreeSet<String>) -> anyhow::Result<Option<String>> {
    let name = field.name();
    let many = field.is_list();
    if is_personal(contract, field)? {
        let value = if field.kind() == Kind::Bytes { "Bytes" } else { "Text" };
        return Ok(Some(match many {
            true => format!("self.{name}.iter_mut().for_each(|it| visit(Value::{value}(it)));"),
            false => format!("visit(Value::{value}(&mut self.{name}));"),
        }));
    }
    let holds = field.kind().as_message().is_some_and(|it| holding.contains(it.name()));
    Ok(holds.then(|| format!("self.{name}.iter_mut().for_each(|it| it.personal(visit));")))
}

/// Writes the code that visits the variant of a oneof that is set.
fn chosen(
    out: &mut String,
    message: &MessageDescriptor,
    oneof: &OneofDescriptor,
    holding: &BTreeSet<String>,
) -> std::fmt::Result {
    let module: String = snake(message.name());
    let variants = oneof.fields().filter(|it| it.kind().as_message().is_some_and(|it| holding.contains(it.name())));
    writeln!(out, "        match &mut self.{} {{", oneof.name())?;
    for field in variants {
        let variant: String = field.name().split('_').map(capital).collect();
        let of = capital(oneof.name());
        writeln!(out, "            Some(v1::{module}::{of}::{variant}(it)) => it.personal(visit),")?;
    }
    writeln!(out, "            _ => {{}}\n        }}")
}

fn snake(name: &str) -> String {
    let mut snake = String::new();
    for sign in name.chars() {
        if sign.is_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.extend(sign.to_lowercase());
    }
    snake
}
