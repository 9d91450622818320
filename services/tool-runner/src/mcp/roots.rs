//! Folders that a server may work in, as it is told them: they bind nobody, the server keeps to them by itself.

#![expect(deprecated, reason = "servers of the versions that know roots are there")]

use std::path::{Path, PathBuf};

use rmcp::model::{ListRootsResult, Root};
use url::Url;

/// Folders that may be configured for one server.
const MAX_ROOTS: usize = 64;

/// Every mistake in a configuration.
pub fn mistakes(roots: &[PathBuf]) -> Vec<String> {
    let is_named = |root: &Path| root.is_absolute() && Url::from_directory_path(root).is_ok();
    match roots.len() <= MAX_ROOTS && roots.iter().all(|root| is_named(root)) {
        true => Vec::new(),
        false => vec![format!("roots: must be at most {MAX_ROOTS} absolute paths of folders")],
    }
}

/// Builds the list of roots that a server receives.
pub fn list_result(folders: &[PathBuf]) -> ListRootsResult {
    let root = |folder: &PathBuf| {
        let address = Url::from_file_path(folder).ok()?;
        let name = folder.file_name().map(|name| name.to_string_lossy().into_owned());
        let root = Root::new(address.as_str());
        Some(match name {
            Some(name) => root.with_name(name),
            None => root,
        })
    };
    ListRootsResult::new(folders.iter().filter_map(root).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_become_addresses_with_names() {
        let roots = list_result(&["/srv/a b".into(), "/".into()]).roots;
        let told: Vec<_> = roots.iter().map(|root| (root.uri.as_str(), root.name.as_deref())).collect();
        assert_eq!(told, [("file:///srv/a%20b", Some("a b")), ("file:///", None)]);
    }

    #[test]
    fn only_absolute_paths_are_roots() {
        assert!(mistakes(&["/srv".into()]).is_empty());
        assert_eq!(mistakes(&["srv".into()]).len(), 1);
        assert_eq!(mistakes(&vec!["/srv".into(); MAX_ROOTS + 1]).len(), 1);
    }
}
