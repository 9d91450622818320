//! Which files a program may open, as far as the kernel enforces it (Landlock).

use std::path::Path;

use landlock::{
    ABI, Access as _, AccessFs, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetError, Scope,
    path_beneath_rules,
};

use crate::protocol::{Access, Spec};

/// The first that also keeps a program from truncating what it may not write.
const FILES: ABI = ABI::V3;
/// The first that keeps a program from signalling others, such as its guard.
const SCOPES: ABI = ABI::V6;

/// Written to by every other script.
const NOWHERE: &str = "/dev/null";

/// Restricts this process, and all that come from it, for good.
///
/// # Errors
/// When the kernel cannot enforce what is required.
pub(super) fn restrict(access: &Access, spec: &Spec) -> Result<(), RulesetError> {
    let files = match access.required {
        true => CompatLevel::HardRequirement,
        false => CompatLevel::BestEffort,
    };
    let read = access.read.iter().map(AsRef::as_ref).chain([spec.program.as_path()]);
    let write = access.write.iter().map(AsRef::as_ref).chain([spec.cwd.as_path(), Path::new(NOWHERE)]);
    Ruleset::default()
        .set_compatibility(files)
        .handle_access(AccessFs::from_all(FILES))?
        .set_compatibility(CompatLevel::BestEffort)
        .scope(Scope::from_all(SCOPES))?
        .create()?
        .add_rules(path_beneath_rules(read, AccessFs::from_read(FILES)))?
        .add_rules(path_beneath_rules(write, AccessFs::from_all(FILES)))?
        .restrict_self()?;
    Ok(())
}
