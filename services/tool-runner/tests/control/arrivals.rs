//! Mail that comes in: one event each.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::Mutex;

use kairo_core::record::Record;
use kairo_proto::v1::EmailReceived;
use tempfile::TempDir;

use super::kairo::Kairo;

/// The workspaces of the replicas.
struct Mailboxes(TempDir);

impl Mailboxes {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn env(&self) -> [(&'static str, String); 1] {
        [("KAIRO_TOOL_RUNNER__WORKSPACE__ROOT", self.0.path().display().to_string())]
    }

    fn folder(&self, agent: &str, folder: &str) -> PathBuf {
        let path = self.0.path().join(agent).join("mail").join(folder);
        fs::create_dir_all(&path).unwrap();
        fs::set_permissions(self.0.path().join(agent), Permissions::from_mode(0o700)).unwrap();
        path
    }

    /// As a mail server delivers.
    fn deliver(&self, agent: &str, name: &str, mail: &[u8]) {
        let draft = self.folder(agent, "tmp").join(name);
        fs::write(&draft, mail).unwrap();
        fs::rename(draft, self.folder(agent, "new").join(name)).unwrap();
    }
}

fn mail(subject: &str) -> Vec<u8> {
    let head = "From: Sarah <sarah@example.org>\r\nTo: ann@example.org\r\nDate: Wed, 25 Mar 2026 08:00:00 +0000\r\n";
    format!("{head}Subject: {subject}\r\n\r\nAbout {subject}.\r\n").into_bytes()
}

fn received(record: &Record) -> Option<EmailReceived> {
    EmailReceived::of(&record.body).cloned()
}

/// Waits until each of these mails has an event.
async fn announced(kairo: &Kairo, agent: &str, ids: &[&str]) -> BTreeMap<String, EmailReceived> {
    let found = Mutex::new(BTreeMap::new());
    kairo
        .wait(&format!("kairo.email.{agent}.received"), |record| {
            let mail = received(record)?;
            let mut found = found.lock().unwrap();
            found.insert(mail.email_id.clone(), mail);
            ids.iter().all(|id| found.contains_key(*id)).then_some(())
        })
        .await;
    found.into_inner().unwrap()
}

/// The mails that have an event, in order of their ids.
async fn all(kairo: &Kairo, agent: &str) -> Vec<String> {
    let subject = format!("kairo.email.{agent}.received");
    let mut ids: Vec<String> = Vec::new();
    for record in kairo.log().await.iter().filter(|record| record.subject == subject) {
        ids.push(received(record).unwrap().email_id);
    }
    ids.sort();
    ids
}

#[tokio::test]
async fn however_a_mail_comes_it_has_one_event() {
    let mailboxes = Mailboxes::new();
    mailboxes.deliver("ann", "1.before", &mail("before"));
    fs::write(mailboxes.folder("ann", "cur").join("2.read:2,S"), mail("read")).unwrap();
    let mut kairo = Kairo::start(2, &mailboxes.env()).await;
    announced(&kairo, "ann", &["1.before"]).await;

    mailboxes.deliver("ann", "3.moved", &mail("moved"));
    fs::write(mailboxes.folder("ann", "new").join("4.written:2,"), mail("written")).unwrap();
    fs::write(mailboxes.folder("ann", "tmp").join("5"), mail("linked")).unwrap();
    fs::hard_link(mailboxes.folder("ann", "tmp").join("5"), mailboxes.folder("ann", "new").join("5.linked")).unwrap();
    fs::write(mailboxes.folder("ann", "tmp").join(".6.hidden"), mail("hidden")).unwrap();
    fs::rename(mailboxes.folder("ann", "tmp").join(".6.hidden"), mailboxes.folder("ann", "new").join(".6.hidden"))
        .unwrap();
    fs::create_dir(mailboxes.folder("ann", "new").join("7.folder")).unwrap();
    mailboxes.deliver("ann", "8.garbage", b"\xff\xfe\x00 no mail");
    mailboxes.deliver("ann", "9.huge", &[mail("huge"), vec![b'x'; 3 << 20]].concat());
    let mails = announced(&kairo, "ann", &["3.moved", "4.written", "5.linked", "8.garbage", "9.huge"]).await;
    let moved = &mails["3.moved"];
    assert_eq!((moved.sender.as_str(), moved.subject.as_str()), ("Sarah <sarah@example.org>", "moved"));
    assert_eq!((moved.body.as_str(), moved.date.as_str()), ("About moved.", "2026-03-25T08:00:00Z"));
    assert_eq!((mails["8.garbage"].subject.as_str(), mails["8.garbage"].body.as_str()), ("", ""));
    assert_eq!(mails["9.huge"].body.len(), 16 * 1024);

    // An agent that had no mailbox.
    mailboxes.deliver("bob", "1.first", &mail("first"));
    announced(&kairo, "bob", &["1.first"]).await;

    // A replica that comes later finds everything announced already.
    kairo.another().await;
    mailboxes.deliver("ann", "z.last", &mail("last"));
    announced(&kairo, "ann", &["z.last"]).await;
    let expected = ["1.before", "3.moved", "4.written", "5.linked", "8.garbage", "9.huge", "z.last"];
    assert_eq!(all(&kairo, "ann").await, expected);
    kairo.stop().await;
}

#[tokio::test]
async fn no_mail_is_lost_or_told_twice_when_replicas_are_killed() {
    const MAILS: usize = 120;
    let mailboxes = Mailboxes::new();
    let mut kairo = Kairo::start(2, &mailboxes.env()).await;
    let names: Vec<String> = (0..MAILS).map(|number| format!("{number:03}.mail")).collect();
    for (number, name) in names.iter().enumerate() {
        mailboxes.deliver("ann", name, &mail(name));
        if number == MAILS / 3 {
            announced(&kairo, "ann", &["000.mail"]).await;
            kairo.kill9(0).await;
        }
        if number == MAILS / 2 {
            kairo.kill9(1).await;
        }
    }
    kairo.another().await;
    let ids: Vec<&str> = names.iter().map(String::as_str).collect();
    announced(&kairo, "ann", &ids).await;
    kairo.another().await;
    mailboxes.deliver("ann", "z.last", &mail("last"));
    announced(&kairo, "ann", &["z.last"]).await;
    assert_eq!(all(&kairo, "ann").await, [ids.as_slice(), &["z.last"]].concat());
}
