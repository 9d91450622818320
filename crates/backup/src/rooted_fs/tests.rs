use std::{
    fs,
    io::{Read as _, Write as _},
    os::unix::fs::symlink,
};

use super::*;

fn path(text: &str) -> RelativePath {
    RelativePath::parse(text).unwrap()
}

#[test]
fn a_path_leads_beneath_the_folder_or_is_none() {
    for valid in ["a", "0001/KAIRO_EVENTS-00000000000000000001.jsonl.gz", "a/b/c", "..a", "a..", "...", "a b", "ü"] {
        assert_eq!(path(valid).as_str(), valid);
    }
    let long = "a/".repeat(LONGEST);
    for wrong in [
        "",
        "/",
        "/etc/passwd",
        "..",
        "../victim",
        "../../victim",
        "a/../b",
        "a/..",
        "./a",
        ".",
        "a/./b",
        "a//b",
        "a/",
        "//a",
        "a\0b",
        "a\nb",
        "a/\u{9b}",
        &long,
    ] {
        assert!(RelativePath::parse(wrong).is_err(), "{wrong:?}");
        assert!(serde_json::from_value::<RelativePath>(wrong.into()).is_err(), "{wrong:?}");
    }
    assert!(path("a").with_suffix("/../b").is_err() && path("a").with_suffix(".part").is_ok());
}

/// A folder beside another one that nothing here may reach, and that one's file.
fn folders() -> (tempfile::TempDir, PathBuf, PathBuf) {
    let both = tempfile::tempdir().unwrap();
    let root = both.path().join("root");
    let victim = both.path().join("elsewhere/victim");
    fs::create_dir_all(root.join("0001")).unwrap();
    fs::create_dir_all(both.path().join("elsewhere")).unwrap();
    fs::write(&victim, "theirs").unwrap();
    (both, root, victim)
}

#[test]
fn no_link_is_followed_whatever_is_done_and_wherever_it_stands() {
    let (both, root, victim) = folders();
    symlink(&victim, root.join("0001/file")).unwrap();
    symlink(both.path().join("elsewhere"), root.join("0002")).unwrap();
    // One that leads back into the folder is a link all the same.
    symlink("0001", root.join("0003")).unwrap();
    for to in ["0001/file", "0002/victim", "0002/new", "0003/file"].map(path) {
        assert!(open_to_read(&root, &to).is_err(), "{to}");
        assert!(open_to_overwrite(&root, &to).is_err(), "{to}");
        assert!(open_lock(&root, &to).is_err(), "{to}");
    }
    for to in ["0002/victim", "0002/new", "0003/new"].map(path) {
        assert!(create(&root, &to).is_err(), "{to}");
        assert!(remove(&root, &to).is_err(), "{to}");
        assert!(create_folder(&root, &to).is_err(), "{to}");
        assert!(rename(&root, &path("0001/file"), &to).is_err(), "{to}");
    }
    assert!(create_folder(&root, &path("0002")).is_err() && sync(&root, Some(&path("0002"))).is_err());
    assert!(list_files(&root, &path("0002")).is_err());
    assert_eq!(list_files(&root, &path("0001")).unwrap(), [], "what a link leads to is no file of the folder");
    // A link gives way to what is made in its place, and what it leads to stays.
    create(&root, &path("0001/file")).unwrap().write_all(b"ours").unwrap();
    assert_eq!(fs::read_to_string(root.join("0001/file")).unwrap(), "ours");
    assert_eq!(fs::read_to_string(&victim).unwrap(), "theirs");
    assert_eq!(fs::read_dir(both.path().join("elsewhere")).unwrap().count(), 1);
}

#[test]
fn what_is_made_in_the_place_of_a_file_is_not_written_to_its_other_names() {
    let (_both, root, victim) = folders();
    fs::hard_link(&victim, root.join("0001/file")).unwrap();
    create(&root, &path("0001/file")).unwrap().write_all(b"ours").unwrap();
    assert_eq!(fs::read_to_string(&victim).unwrap(), "theirs");
}

#[test]
fn the_folder_itself_may_be_a_link_and_files_are_made_read_moved_and_removed() {
    let (both, root, _) = folders();
    let link = both.path().join("link");
    symlink(&root, &link).unwrap();
    create_folder(&link, &path("0002")).unwrap();
    create_folder(&link, &path("0002")).unwrap();
    create(&link, &path("0002/a.part")).unwrap().write_all(b"x").unwrap();
    rename(&link, &path("0002/a.part"), &path("0002/a")).unwrap();
    sync(&link, Some(&path("0002"))).unwrap();
    sync(&link, None).unwrap();
    let mut text = String::new();
    open_to_read(&link, &path("0002/a")).unwrap().read_to_string(&mut text).unwrap();
    assert_eq!((text.as_str(), list_files(&link, &path("0002")).unwrap()), ("x", vec![path("0002/a")]));
    remove(&link, &path("0002/a")).unwrap();
    remove(&link, &path("0002/a")).unwrap();
    assert_eq!(open_to_read(&link, &path("0002/a")).unwrap_err().kind(), io::ErrorKind::NotFound);
    assert!(open_to_read(&link, &path("0002")).is_err(), "a folder is no file");
}

#[test]
fn a_pipe_holds_nobody_up() {
    let (_both, root, _) = folders();
    rustix::fs::mkfifoat(rustix::fs::CWD, root.join("0001/pipe"), FILE_MODE).unwrap();
    assert!(open_to_read(&root, &path("0001/pipe")).is_err());
}
