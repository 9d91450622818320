//! The protos as they are read, with their options.

use std::path::PathBuf;

use anyhow::Context;
use prost_reflect::{DescriptorPool, DynamicMessage, ExtensionDescriptor, FileDescriptor, MessageDescriptor, Value};

/// The protos of the contract.
pub struct Contract {
    pub pool: DescriptorPool,
    /// The `google.protobuf.FileDescriptorSet` for other generators, which know nothing of options.
    pub descriptors: prost_types::FileDescriptorSet,
    /// The same with all options and without comments, in bytes.
    pub encoded: Vec<u8>,
}

/// The package.
pub const PACKAGE: &str = "kairo.v1";

impl Contract {
    pub fn read() -> anyhow::Result<Self> {
        let root = crate::root().join("proto");
        let folder = root.join("kairo/v1");
        let entries = std::fs::read_dir(&folder).with_context(|| folder.display().to_string())?;
        let mut protos: Vec<PathBuf> =
            entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
        protos.retain(|path| path.extension().is_some_and(|ending| ending == "proto"));
        protos.sort();
        let compiled = |comments: bool| {
            let mut compiler = protox::Compiler::new([&root])?;
            compiler.include_source_info(comments).include_imports(true).open_files(&protos)?;
            Ok::<_, protox::Error>(compiler)
        };
        let commented = compiled(true)?;
        let encoded = compiled(false)?.encode_file_descriptor_set();
        Ok(Self { pool: commented.descriptor_pool(), descriptors: commented.file_descriptor_set(), encoded })
    }

    /// The files of the package, in the order of their names.
    pub fn files(&self) -> impl Iterator<Item = FileDescriptor> {
        self.pool.files().filter(|file| file.package_name() == PACKAGE)
    }

    /// The messages of the package, in the order of the files.
    pub fn messages(&self) -> impl Iterator<Item = MessageDescriptor> {
        self.files().flat_map(|file| file.messages().collect::<Vec<_>>())
    }

    /// Returns true if the flag `what` is set in the options of a field.
    pub fn field_says(&self, message: &str, field: &str, what: &str) -> anyhow::Result<bool> {
        let message = self.pool.get_message_by_name(&format!("{PACKAGE}.{message}")).context("no such message")?;
        let field = message.get_field_by_name(field).context("no such field")?;
        let option = self.option("kairo.options.field", &field.options())?;
        Ok(option.is_some_and(|option| flag(&option, what)))
    }

    /// An option with fields, where it is set.
    pub fn option(&self, name: &str, options: &DynamicMessage) -> anyhow::Result<Option<DynamicMessage>> {
        Ok(self.value(name, options)?.as_ref().and_then(Value::as_message).cloned())
    }

    /// An option that is one text; empty where it is not set.
    pub fn option_text(&self, name: &str, options: &DynamicMessage) -> anyhow::Result<String> {
        Ok(self.value(name, options)?.as_ref().and_then(Value::as_str).unwrap_or_default().to_owned())
    }

    fn value(&self, name: &str, options: &DynamicMessage) -> anyhow::Result<Option<Value>> {
        let extension: ExtensionDescriptor =
            self.pool.get_extension_by_name(name).with_context(|| format!("no option {name}"))?;
        Ok(options.has_extension(&extension).then(|| options.get_extension(&extension).into_owned()))
    }
}

/// The text of a field of an option; empty where it is not set.
pub fn text(option: &DynamicMessage, field: &str) -> String {
    option.get_field_by_name(field).and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

/// Returns the comment in front of an element; empty where there is none.
pub fn comment(file: &FileDescriptor, path: &[i32]) -> String {
    let locations = file.file_descriptor_proto().source_code_info.iter().flat_map(|info| &info.location);
    let found = locations.into_iter().find(|location| location.path == path);
    let comment = found.map(|location| location.leading_comments()).unwrap_or_default();
    comment.lines().map(str::trim).collect::<Vec<_>>().join(" ").trim().to_owned()
}

/// Returns true if a boolean field of an option is set.
pub fn flag(option: &DynamicMessage, field: &str) -> bool {
    option.get_field_by_name(field).is_some_and(|value| value.as_bool() == Some(true))
}

/// The number of a field of an option; 0 where it is not set.
pub fn number(option: &DynamicMessage, field: &str) -> u32 {
    option.get_field_by_name(field).and_then(|value| value.as_u32()).unwrap_or_default()
}

/// The texts of a field of an option.
pub fn texts(option: &DynamicMessage, field: &str) -> Vec<String> {
    list(option, field).iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// The messages of a field of an option.
pub fn messages(option: &DynamicMessage, field: &str) -> Vec<DynamicMessage> {
    list(option, field).iter().filter_map(Value::as_message).cloned().collect()
}

/// The values of a field of an option.
pub fn list(option: &DynamicMessage, field: &str) -> Vec<Value> {
    option.get_field_by_name(field).and_then(|value| value.as_list().map(<[Value]>::to_vec)).unwrap_or_default()
}

/// Returns the word with a capital.
pub fn capital(word: &str) -> String {
    word.get(..1).unwrap_or_default().to_uppercase() + word.get(1..).unwrap_or_default()
}
