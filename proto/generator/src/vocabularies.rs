//! The words of fields that are texts, as enums, and the fields that hold them.

use std::fmt::Write;

use anyhow::Context;
use prost_reflect::{Cardinality, EnumDescriptor, FieldDescriptor};

use crate::{
    Generated,
    contract::{Contract, capital, comment, text, texts},
};

const PACKAGE: &str = "kairo.vocabularies";

pub fn file(contract: &Contract) -> anyhow::Result<Generated> {
    let mut out = "// @generated from vocabularies.proto, and the options of fields.\n\nvocabularies! {\n".to_owned();
    for vocabulary in contract.pool.all_enums().filter(|it| it.parent_file().package_name() == PACKAGE) {
        let words: Vec<(String, String)> = words(&vocabulary).collect();
        writeln!(out, "    /// {}", comment(&vocabulary.parent_file(), vocabulary.path()))?;
        writeln!(out, "    {} {{", vocabulary.name())?;
        for (word, said) in words {
            if !said.is_empty() {
                writeln!(out, "        /// {said}")?;
            }
            let variant: String = word.split('_').map(capital).collect();
            // The one word that Rust has no other way to write.
            let variant = if variant == "Self" { "Itself" } else { variant.as_str() };
            writeln!(out, "        {variant} = {word:?},")?;
        }
        writeln!(out, "    }}")?;
    }
    writeln!(out, "}}\n\nfields! {{")?;
    for message in contract.messages() {
        let fields = message.fields().map(|field| Ok(of(contract, &field)?.map(|vocabulary| (field, vocabulary))));
        let fields: Vec<_> = fields.collect::<anyhow::Result<Vec<_>>>()?.into_iter().flatten().collect();
        for (field, vocabulary) in fields {
            let optional = if field.cardinality() == Cardinality::Optional && field.supports_presence() {
                "optional "
            } else {
                ""
            };
            let name = if field.name() == "type" { "r#type" } else { field.name() };
            let message = message.name();
            let method = format!("{}_word", field.name());
            writeln!(out, "    {optional}{message}.{name} as {method}: {},", vocabulary.name())?;
        }
    }
    writeln!(out, "}}")?;
    Ok(("proto/src/generated/vocabularies.rs".to_owned(), out.into_bytes()))
}

/// The vocabulary of a field that holds one word of it, and has no further ones.
fn of(contract: &Contract, field: &FieldDescriptor) -> anyhow::Result<Option<EnumDescriptor>> {
    let Some(option) = contract.option("kairo.options.field", &field.options())? else { return Ok(None) };
    let name = text(&option, "vocabulary");
    if name.is_empty() || field.is_list() || !texts(&option, "values").is_empty() {
        return Ok(None);
    }
    named(contract, &name).map(Some)
}

/// Returns the words of a vocabulary, each with its comment.
pub fn words_of(contract: &Contract, vocabulary: &str) -> anyhow::Result<Vec<(String, String)>> {
    Ok(words(&named(contract, vocabulary)?).collect())
}

fn named(contract: &Contract, vocabulary: &str) -> anyhow::Result<EnumDescriptor> {
    let found = contract.pool.get_enum_by_name(&format!("{PACKAGE}.{vocabulary}"));
    found.with_context(|| format!("no vocabulary {vocabulary}"))
}

/// Returns each word with its comment.
fn words(vocabulary: &EnumDescriptor) -> impl Iterator<Item = (String, String)> {
    let prefix = vocabulary.values().next().map(|first| first.name().trim_end_matches("UNSPECIFIED").to_owned());
    let prefix = prefix.unwrap_or_default();
    let values = vocabulary.values().filter(|value| value.number() != 0).collect::<Vec<_>>();
    values.into_iter().map(move |value| {
        let word = value.name().strip_prefix(&prefix).unwrap_or(value.name()).to_lowercase();
        (word, comment(&value.parent_enum().parent_file(), value.path()))
    })
}
