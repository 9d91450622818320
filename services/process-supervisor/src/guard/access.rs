//! Restricts the files a program may open and the TCP ports it may use, as far as the kernel enforces it (Landlock).

use std::path::Path;

use landlock::{
    Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, NetPort, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetError, Scope, path_beneath_rules,
};

use crate::confinement::{FILES, PORTS, SCOPES};
use crate::protocol::{Access, Spec};

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
        .handle_access(AccessNet::from_all(PORTS))?
        .scope(Scope::from_all(SCOPES))?
        .create()?
        .add_rules(path_beneath_rules(read, AccessFs::from_read(FILES)))?
        .add_rules(path_beneath_rules(write, AccessFs::from_all(FILES)))?
        .add_rules(ports(&access.connect, AccessNet::ConnectTcp))?
        .add_rules(ports(&access.listen, AccessNet::BindTcp))?
        .restrict_self()?;
    Ok(())
}

fn ports(ports: &[u16], what: impl Into<BitFlags<AccessNet>>) -> impl Iterator<Item = Result<NetPort, RulesetError>> {
    let what = what.into();
    ports.iter().map(move |port| Ok(NetPort::new(*port, what)))
}
