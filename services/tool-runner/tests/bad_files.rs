//! Files that are broken, or were made to do harm: what can be read is, the rest is named, and nothing takes for ever.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use jiff::Timestamp;
use kairo_tool_runner::config::{ToolsConfig, WorkspaceConfig};
use kairo_tool_runner::tool::{CallContext, ProgressReporter, ToolErrorKind};
use kairo_tool_runner::toolbox::Toolbox;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// As large as a file is read.
const LARGE: usize = 2 * 1024 * 1024;

struct Office {
    toolbox: Toolbox,
    root: TempDir,
}

impl Office {
    async fn open() -> Self {
        let root = tempfile::tempdir().unwrap();
        let workspace = WorkspaceConfig { root: Some(root.path().to_owned()), ..WorkspaceConfig::default() };
        let config = ToolsConfig { workspace, ..ToolsConfig::default() };
        Self { toolbox: Toolbox::start(&config, Vec::new()).await.unwrap(), root }
    }

    fn put(&self, path: &str, content: impl AsRef<[u8]>) {
        let folder = self.root.path().join("ann");
        fs::create_dir_all(folder.join(path).parent().unwrap()).unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
        fs::write(folder.join(path), content).unwrap();
    }

    /// An error is one too when it says that the call ran into a time limit.
    async fn call(&self, tool: &str, args: Value) -> Value {
        let context = CallContext {
            user: None,
            action_id: "action".to_owned(),
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
        self.toolbox.call(tool, args, context).await.unwrap()
    }
}

fn strings<'v>(list: &'v Value, key: &str) -> Vec<&'v str> {
    list.as_array().unwrap().iter().map(|item| item[key].as_str().unwrap()).collect()
}

fn repeated(line: impl Fn(usize) -> String, bytes: usize) -> String {
    let mut text = String::new();
    for number in 0.. {
        text.push_str(&line(number));
        if text.len() >= bytes {
            break;
        }
    }
    text
}

#[tokio::test]
async fn mails_that_were_made_to_be_slow() {
    let office = Office::open().await;
    let multipart = |number: usize| format!("Content-Type: multipart/mixed; boundary=b{number}\r\n\r\n--b{number}\r\n");
    let mut nested: String = (0..1_000).map(multipart).collect();
    nested.push_str("\r\nThe innermost.\r\n");
    let missing = |number: usize| format!("--b\r\nContent-Type: multipart/mixed; boundary=c{number}\r\n\r\n");
    let head = "Content-Type: multipart/mixed; boundary=b\r\n\r\n";
    for (name, rest) in [
        ("nested", nested),
        ("nested without end", repeated(multipart, LARGE)),
        ("boundaries that are missing", format!("{head}{}", repeated(missing, LARGE))),
        ("mails within mails", repeated(|_| "Content-Type: message/rfc822\r\n\r\n".to_owned(), LARGE)),
        ("headers without end", repeated(|number| format!("X-{number}: x\r\n"), LARGE)),
        ("a header without end", format!("X: {}", "x".repeat(LARGE))),
        ("recipients without end", format!("To: {}\r\n\r\n", "a@b.c, ".repeat(LARGE / 7))),
        ("encoded words", format!("To: {}\r\n\r\n", "=?utf-8?Q?".repeat(LARGE / 10))),
        ("markup", format!("Content-Type: text/html\r\n\r\n{}", "<div>".repeat(LARGE / 5))),
        ("eight bits", String::new()),
    ] {
        let mut mail = format!("From: Mallory <m@example.org>\r\nSubject: {name}\r\n{rest}").into_bytes();
        if rest.is_empty() {
            mail.extend(b"Content-Transfer-Encoding: base64\r\n\r\n\xff\xfe\x80!!!\x00");
        }
        office.put(&format!("mail/new/{name}"), mail);
    }
    office.put("mail/new/good", "From: Sarah <s@example.org>\r\nSubject: Budget\r\n\r\nThe figures.\r\n");
    office.put("mail/new/garbage", [0xff, 0xfe, 0x00, 0x80].repeat(1_000));

    let found = office.call("email.search", json!({"query": "figures"})).await;
    assert_eq!(strings(&found["messages"], "subject"), ["Budget"]);
    assert_eq!((&found["unreadable"], &found["skipped"]), (&json!(1), &json!(["garbage"])));
    assert_eq!(found["incomplete"], true, "the mails that are not looked at whole");
    let all = office.call("email.search", json!({"from": "mallory"})).await;
    assert_eq!(all["total"], 10);
    let nested = office.call("email.read", json!({"id": "nested"})).await;
    assert_eq!((&nested["subject"], &nested["truncated"]), (&json!("nested"), &json!(false)));
    let cut = office.call("email.read", json!({"id": "mails within mails"})).await;
    assert_eq!(cut["truncated"], true);
}

#[tokio::test]
async fn calendars_that_were_made_to_be_slow() {
    let office = Office::open().await;
    let calendar = |events: &str| format!("BEGIN:VCALENDAR\r\nVERSION:2.0\r\n{events}END:VCALENDAR\r\n");
    let event = |title: &str, lines: &str| {
        format!("BEGIN:VEVENT\r\nUID:{title}\r\nSUMMARY:{title}\r\n{lines}\r\nEND:VEVENT\r\n")
    };
    let daily = "DTSTART:20000101T000000Z\r\nRRULE:FREQ=";
    for (name, content) in [
        ("seconds", calendar(&event("Every second", &format!("{daily}SECONDLY")))),
        ("never", calendar(&event("Never", &format!("{daily}SECONDLY;BYMONTH=2;BYMONTHDAY=30")))),
        ("yearly", calendar(&event("30 February", &format!("{daily}YEARLY;BYMONTH=2;BYMONTHDAY=30")))),
        ("many times", calendar(&event("Many", &format!("{daily}YEARLY;BYSECOND={}", "1,".repeat(100_000) + "1")))),
        ("no date", calendar(&event("No such day", "DTSTART:20260230T250000Z"))),
        ("far", calendar(&event("Far", "DTSTART:99990101T000000Z\r\nDURATION:P99999999999W"))),
        ("backwards", calendar(&event("Backwards", "DTSTART:20260325T120000Z\r\nDTEND:20260325T110000Z"))),
        ("zone", calendar(&event("Zone", "DTSTART;TZID=Mars/Olympus:20260325T120000"))),
        ("open", "BEGIN:VCALENDAR\r\n".repeat(LARGE / 17)),
        ("deep", format!("BEGIN:VCALENDAR\r\n{}", "BEGIN:VEVENT\r\n".repeat(LARGE / 14))),
        ("folded", format!("BEGIN:VCALENDAR\r\nX:{}", "\r\n x".repeat(LARGE / 4))),
        (
            "rules",
            calendar(
                &(0..2_000).map(|n| event(&format!("r{n}"), &format!("{daily}SECONDLY;COUNT=9"))).collect::<String>(),
            ),
        ),
        (
            "exceptions",
            calendar(&event("Except", &format!("{daily}DAILY\r\n{}", "EXDATE:20260325T000000Z\r\n".repeat(20_000)))),
        ),
    ] {
        office.put(&format!("calendar/{name}.ics"), content);
    }
    office.put("calendar/garbage.ics", [0xff, 0x00, 0x80].repeat(1_000));
    office.put("calendar/good.ics", calendar(&event("Review", "DTSTART:20260325T140000Z\r\nDTEND:20260325T150000Z")));

    let day = office.call("calendar.check", json!({"date": "2026-03-25", "query": "review"})).await;
    assert_eq!(strings(&day["events"], "title"), ["Review"]);
    let skipped: Vec<&str> = day["skipped"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    for name in ["garbage.ics", "no date.ics", "deep.ics", "many times.ics"] {
        assert!(skipped.contains(&name), "{name} in {skipped:?}");
    }
    assert_eq!(day["incomplete"], true, "not every second is looked at");
    let free = json!({"from": "2026-03-25", "until": "2026-03-26", "hours": "09:00-17:00"});
    assert!(office.call("calendar.availability", free).await["free"].is_array());
}

#[tokio::test]
async fn contacts_that_were_made_to_be_slow() {
    let office = Office::open().await;
    let card = |name: &str, lines: &str| format!("BEGIN:VCARD\nVERSION:4.0\nUID:{name}\nFN:{name}\n{lines}END:VCARD\n");
    let person = |number: usize| card(&format!("p{number}"), &format!("EMAIL:p{number}@example.org\n"));
    office.put("contacts/people.vcf", (0..10_000).map(person).collect::<String>());
    // Two groups that are members of each other, and one of itself.
    let group = |name: &str, members: &str| card(name, &format!("KIND:group\n{members}MEMBER:p1\n"));
    let cycle = group("ring one", "MEMBER:ring two\n")
        + &group("ring two", "MEMBER:ring one\n")
        + &group("self", "MEMBER:self\n");
    office.put("contacts/groups.vcf", cycle);
    let mut everybody = String::new();
    (0..10_000).for_each(|number| writeln!(everybody, "MEMBER:p{number}").unwrap());
    office.put("contacts/everybody.vcf", group("everybody", &everybody));
    office.put("contacts/open.vcf", "BEGIN:VCARD\nVERSION:4.0\n".repeat(LARGE / 24));
    office.put("contacts/parameters.vcf", format!("BEGIN:VCARD\nFN;{}:x\nEND:VCARD\n", "A=b;".repeat(LARGE / 4)));
    office.put("contacts/garbage.vcf", [0xff, 0x00, 0x80].repeat(1_000));
    office.put("contacts/good.vcf", card("Sarah Lee", "EMAIL:sarah@example.org\n"));

    let found = office.call("team.members", json!({"query": "sarah"})).await;
    assert_eq!(strings(&found["members"], "email"), ["sarah@example.org"]);
    let skipped: Vec<&str> = found["skipped"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    assert!(skipped.contains(&"garbage.vcf") && skipped.contains(&"open.vcf"), "{skipped:?}");
    for (team, total) in [("ring", 1), ("self", 1), ("everybody", 10_000)] {
        assert_eq!(office.call("team.members", json!({"team": team})).await["total"], total, "{team}");
    }
}

#[tokio::test]
async fn content_that_was_made_to_be_slow() {
    let office = Office::open().await;
    let mut deep = json!("innermost");
    for _ in 0..100 {
        deep = json!([deep]);
    }
    for (number, content) in [
        json!("[".repeat(400_000)),
        json!("- ".repeat(200_000)),
        json!("*a ".repeat(100_000)),
        json!("<!--".repeat(100_000)),
        deep,
        json!({"slides": vec![json!({"title": "a", "x": [1]}); 10_000]}),
    ]
    .into_iter()
    .enumerate()
    {
        for kind in ["document", "page", "presentation"] {
            let made = office
                .call("document.create", json!({"title": format!("{number} {kind}"), "type": kind, "content": content}))
                .await;
            assert!(made["bytes"].as_u64().unwrap() > 0);
        }
    }
    // Five hundred thousand quotes in quotes would fill megabytes.
    let context = json!({"title": "t", "type": "page", "content": ">".repeat(400_000)});
    let refused = {
        let context_of = CallContext {
            user: None,
            action_id: "action".to_owned(),
            now: Timestamp::UNIX_EPOCH,
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
        office.toolbox.call("document.create", context, context_of).await.unwrap_err()
    };
    assert_eq!(refused.kind, ToolErrorKind::InvalidArguments, "{refused}");
    assert!(refused.message.contains("/content"), "{refused}");
}
