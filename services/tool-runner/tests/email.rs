//! `email.send`, kept in Sent and handed to a real SMTP server.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use kairo_core::config::Secret;
use kairo_local::{ThirdPartyServer, Tools};
use kairo_tool_runner::config::{MailConfig, ToolsConfig, WorkspaceConfig};
use kairo_tool_runner::tool::{CallContext, ProgressReporter, ToolError, ToolErrorKind};
use kairo_tool_runner::toolbox::Toolbox;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

const ACTION: &str = "0199d2a4-0000-7000-8000-000000000001";

/// A toolbox, and the folder of the agent `ann`.
struct Office {
    toolbox: Toolbox,
    root: TempDir,
}

impl Office {
    async fn open(mail: MailConfig) -> Self {
        let root = tempfile::tempdir().unwrap();
        let workspace = WorkspaceConfig { root: Some(root.path().to_owned()), ..WorkspaceConfig::default() };
        let config = ToolsConfig { workspace, mail, ..ToolsConfig::default() };
        let office = Self { toolbox: Toolbox::start(&config, Vec::new()).await.unwrap(), root };
        office.call("team.members", json!({})).await.unwrap();
        let card = |name: &str, email: &str| format!("BEGIN:VCARD\nVERSION:4.0\nFN:{name}\nEMAIL:{email}\nEND:VCARD\n");
        let people = [("Sarah Lee", "sarah@example.org"), ("John Smith", "john@example.org"), ("John Doe", "jd@x.org")];
        let cards: String = people.iter().map(|(name, email)| card(name, email)).collect();
        fs::write(office.path("contacts/all.vcf"), cards).unwrap();
        office
    }

    fn path(&self, path: &str) -> PathBuf {
        self.root.path().join("ann").join(path)
    }

    async fn call_as(&self, action: &str, tool: &str, args: Value) -> Result<Value, ToolError> {
        let context = CallContext {
            user: None,
            action_id: action.to_owned(),
            now: "2026-03-25T09:00:00Z".parse::<Timestamp>().unwrap(),
            begun: Timestamp::now(),
            agent: "ann".to_owned(),
            cancel: CancellationToken::new(),
            progress: ProgressReporter::discard(),
            exchange: Default::default(),
            target: None,
            target_after: 0,
            thread_id: String::new(),
            decision_sequence: 0,
        };
        self.toolbox.call(tool, args, context).await
    }

    async fn call(&self, tool: &str, args: Value) -> Result<Value, ToolError> {
        self.call_as(ACTION, tool, args).await
    }

    async fn refused(&self, args: Value) -> String {
        let error = self.call("email.send", args.clone()).await.expect_err(&args.to_string());
        assert_eq!(error.kind, ToolErrorKind::InvalidArguments, "{error}");
        error.message
    }

    fn kept(&self) -> usize {
        fs::read_dir(self.path("mail/Sent/cur")).map_or(0, Iterator::count)
    }
}

fn is_offered(office: &Office, idempotent: bool) {
    let catalogue = office.toolbox.catalogue();
    let spec = catalogue.get("email.send").unwrap();
    assert_eq!((spec.needs_approval, spec.idempotent), (true, idempotent));
}

#[tokio::test]
async fn without_a_server_a_mail_is_kept_in_sent_once() {
    let office = Office::open(MailConfig::default()).await;
    is_offered(&office, true);
    fs::create_dir_all(office.path("documents")).unwrap();
    fs::write(office.path("documents/a report.md"), "# Report\n").unwrap();
    let args = json!({
        "to": "Sarah; Bob <bob@example.org>", "cc": ["sarah@example.org", "c@example.org"], "bcc": "d@example.org",
        "subject": "Budget — Q1", "body": "Dear Sarah,\n\nall is well.\n", "attachments": ["documents/a report.md"],
    });
    let first = office.call("email.send", args.clone()).await.unwrap();
    assert_eq!((&first["sent"], &first["from"]), (&json!(false), &json!("ann@localhost")));
    assert_eq!(first["delivered"], "kept in Sent; no SMTP server is configured");
    assert_eq!(first["to"], json!(["Sarah Lee <sarah@example.org>", "Bob <bob@example.org>"]));
    assert_eq!((&first["cc"], &first["bcc"]), (&json!(["c@example.org"]), &json!(["d@example.org"])));
    assert_eq!(first["message_id"], "0199d2a4000070008000000000000001@localhost");
    let again = office.call("email.send", args.clone()).await.unwrap();
    assert_eq!((again, office.kept()), (first.clone(), 1));
    office.call_as("0199d2a4-0000-7000-8000-000000000002", "email.send", args).await.unwrap();
    assert_eq!(office.kept(), 2);

    let read = office.call("email.read", json!({"id": first["id"], "folder": "sent"})).await.unwrap();
    assert_eq!((&read["subject"], &read["attachments"]), (&json!("Budget — Q1"), &json!(["a report.md"])));
    assert_eq!(read["text"], "Dear Sarah,\n\nall is well.");
    let found = office.call("email.search", json!({"folder": "sent", "to": "bob"})).await.unwrap();
    assert_eq!((&found["total"], &found["messages"][0]["unread"]), (&json!(2), &json!(false)));
    assert_eq!(office.call("email.search", json!({})).await.unwrap()["total"], 0);
}

#[tokio::test]
async fn a_reply_goes_on_with_the_conversation() {
    let office =
        Office::open(MailConfig { from: "Kairo <{agent}@example.org>".to_owned(), ..Default::default() }).await;
    fs::create_dir_all(office.path("mail/new")).unwrap();
    let mail = "From: sarah@example.org\r\nSubject: Budget\r\nMessage-ID: <two@example.org>\r\n\
                References: <one@example.org>\r\n\r\nWell?\r\n";
    fs::write(office.path("mail/new/1.a"), mail).unwrap();
    let args = json!({"to": "Sarah", "subject": "Re: Budget", "body": "Yes.", "in_reply_to": "1.a"});
    let sent = office.call("email.send", args).await.unwrap();
    assert_eq!(sent["from"], "Kairo <ann@example.org>");
    let text = fs::read_to_string(office.path(sent["path"].as_str().unwrap())).unwrap();
    assert!(text.contains("In-Reply-To: <two@example.org>\r\n"), "{text}");
    assert!(text.contains("References: <one@example.org> <two@example.org>\r\n"), "{text}");
    let unknown = json!({"to": "Sarah", "subject": "s", "body": "b", "in_reply_to": "9.z"});
    assert!(office.refused(unknown).await.contains("/in_reply_to"));
}

#[tokio::test]
async fn what_cannot_be_sent_is_refused_with_the_field() {
    let limits = MailConfig { max_recipients: 3, max_body_bytes: 100, max_attachments_bytes: 10, ..Default::default() };
    let office = Office::open(limits).await;
    fs::create_dir_all(office.path("documents")).unwrap();
    fs::write(office.path("documents/long.md"), "x".repeat(11)).unwrap();
    fs::write(office.root.path().join("secret"), "x").unwrap();
    std::os::unix::fs::symlink("/etc/passwd", office.path("documents/link")).unwrap();
    let mail = |field: &str, value: Value| {
        let mut mail = json!({"to": "a@example.org", "subject": "s", "body": "b"});
        mail[field] = value;
        mail
    };
    for (field, value, problem) in [
        ("to", json!("John"), "John Doe <jd@x.org>"),
        ("to", json!("Zoe"), "no contact is called"),
        ("to", json!([]), "nobody is named"),
        ("to", json!("not an address@"), "no address"),
        ("to", json!("a@example.org\r\nBcc: b@example.org"), "control characters"),
        ("cc", json!(["b@example.org", "c@example.org", "d@example.org"]), "4 recipients of at most 3"),
        ("subject", json!("s\r\nBcc: b@example.org"), "control characters"),
        ("subject", json!(""), "/subject"),
        ("body", json!("x".repeat(101)), "101 bytes of at most 100"),
        ("attachments", json!(["documents/long.md"]), "more than 10 bytes"),
        ("attachments", json!(["documents/none.md"]), "there is no file"),
        ("in_reply_to", json!("<a@b>\r\nX: y"), "/in_reply_to"),
    ] {
        let message = office.refused(mail(field, value.clone())).await;
        assert!(message.contains(problem), "{value}: {message}");
    }
    for path in ["../secret", "/etc/passwd", "documents/../../secret", "documents/link", "documents", ".", "a//b"] {
        let error = office.call("email.send", mail("attachments", json!([path]))).await.unwrap_err();
        assert!([ToolErrorKind::Failed, ToolErrorKind::InvalidArguments].contains(&error.kind), "{path}: {error}");
    }
    assert_eq!(office.kept(), 0);
}

/// aiosmtpd on a port of its own; it puts accepted mail into a Maildir.
struct Server(ThirdPartyServer);

impl Server {
    async fn start(max_bytes: usize) -> Self {
        let tools = Tools::of_this_checkout().expect("run ./scripts/test");
        let arguments = |port, folder: &Path| {
            let size = max_bytes.to_string();
            let place = format!("127.0.0.1:{port}");
            let taken = folder.join("taken");
            let options = ["-n", "-d", "-s", &size, "-l", &place, "-c", "aiosmtpd.handlers.Mailbox"];
            options.iter().map(OsString::from).chain([taken.into()]).collect()
        };
        let started =
            ThirdPartyServer::start(tools.smtp_server().unwrap(), |line| line.contains("listening on"), arguments);
        Self(started.await.unwrap())
    }

    fn config(&self) -> MailConfig {
        let url = Secret::new(format!("smtp://127.0.0.1:{}", self.0.port));
        MailConfig { smtp_url: Some(url), ..MailConfig::default() }
    }

    fn taken(&self) -> Vec<String> {
        let files = fs::read_dir(self.0.folder.path().join("taken/new")).into_iter().flatten();
        files.map(|file| fs::read_to_string(file.unwrap().path()).unwrap()).collect()
    }
}

#[tokio::test]
async fn a_real_server_takes_the_mail_and_a_copy_is_kept() {
    let server = Server::start(100_000).await;
    let office = Office::open(server.config()).await;
    is_offered(&office, false);
    let body = "Grüße\n.\n..\nFrom here\n";
    let args = json!({"to": "Sarah", "bcc": "hidden@example.org", "subject": "Grüße", "body": body});
    let sent = office.call("email.send", args.clone()).await.unwrap();
    assert_eq!(sent["sent"], true);
    let [taken] = server.taken().try_into().unwrap();
    assert!(taken.contains("Message-ID: <0199d2a4000070008000000000000001@localhost>"), "{taken}");
    assert!(taken.contains("hidden@example.org") && !taken.contains("Bcc:"), "only the envelope names them: {taken}");
    assert_eq!(office.kept(), 1);
    let read = office.call("email.read", json!({"id": sent["id"], "folder": "sent"})).await.unwrap();
    assert_eq!(read["text"], body.trim());
    // What is in Sent has gone out.
    assert_eq!(office.call("email.send", args).await.unwrap(), sent);
    assert_eq!(server.taken().len(), 1);

    let long = json!({"to": "Sarah", "subject": "long", "body": "x".repeat(200_000)});
    let refused = office.call_as("other", "email.send", long.clone()).await.unwrap_err();
    assert_eq!(refused.kind, ToolErrorKind::Failed, "{refused}");
    assert!(refused.message.contains("not sent") && refused.message.contains("552"), "{refused}");
    server.0.process.kill9().await.unwrap();
    let unreachable = office.call_as("other", "email.send", long).await.unwrap_err();
    assert_eq!(unreachable.kind, ToolErrorKind::Failed, "{unreachable}");
    assert_eq!((office.kept(), server.taken().len()), (1, 1));
}
