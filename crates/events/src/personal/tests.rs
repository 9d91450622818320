use kairo_proto::v1::{
    AgentDecision, AgentMessage, AgentThought, Completion, DecidedEvent, ImportedMessage, MemoryAppended, SealedSecret,
    ToolInvocation, ToolInvoke, UserMessage, decided_event::Event,
};
use proptest::prelude::*;

use super::*;

const ID: Uuid = Uuid::from_u128(7);

fn key(byte: u8) -> DataKey {
    DataKey { generation: byte.into(), key: [byte; 32] }
}

fn keys(users: &[(&str, u8)]) -> BTreeMap<String, DataKey> {
    users.iter().map(|(user, byte)| ((*user).to_owned(), key(*byte))).collect()
}

/// Opens a message with the keys of these users.
fn read(body: &Body, sealed: &[u8], users: &[(&str, u8)]) -> OpenedMessage {
    let keys = keys(users);
    let known = |user: &str, generation: u32| match keys.get(user).filter(|key| key.generation == generation) {
        Some(key) => DataKeyState::Key(key.key),
        None => DataKeyState::Destroyed,
    };
    open_body(body.type_name(), sealed, ID, known).unwrap()
}

fn thought(text: &str) -> DecidedEvent {
    let event = Some(Event::Thought(AgentThought { text: text.into(), ..Default::default() }));
    DecidedEvent { event_id: "e".into(), thread_id: "t".into(), event, ..Default::default() }
}

/// A decision on what is ann's and bob's.
fn decision() -> (Body, ContentOwners) {
    let memory = MemoryAppended {
        memory_id: "m".into(),
        content: "[secret pin]".into(),
        keywords: vec!["one".into(), String::new(), "two".into()],
        secrets: vec![SealedSecret { name: "pin".into(), sealed: vec![1, 2, 3] }],
        user: "bob".into(),
        ..Default::default()
    };
    let memory = DecidedEvent { event: Some(Event::MemoryAppended(memory)), ..Default::default() };
    let events = vec![thought("of ann"), memory, thought("of nobody")];
    let completions = vec![Completion { text: "of both".into(), ..Default::default() }];
    let whose = [Some("ann"), Some("bob"), None, Some("agent:cook")].map(|user| user.map(str::to_owned));
    (
        AgentDecision { cursor: 9, events, completions, ..Default::default() }.into(),
        ContentOwners::PerPart(whose.to_vec()),
    )
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

#[test]
fn each_user_s_part_is_read_with_their_key_and_empty_without_it() {
    let (body, whose) = decision();
    let all = [("ann", 1), ("bob", 2), ("agent:cook", 3)];
    let sealed = seal_body(&body, ID, &whose, &keys(&all)).unwrap().unwrap();
    for text in ["of ann", "[secret pin]", "two", "of both"] {
        assert!(!contains(&sealed, text), "{text}");
    }
    assert!(contains(&sealed, "of nobody"));
    assert_eq!(read(&body, &sealed, &all), OpenedMessage { body: body.clone(), forgotten: BTreeSet::new() });

    let OpenedMessage { body: rest, forgotten } = read(&body, &sealed, &[("ann", 1), ("agent:cook", 3)]);
    let Body::AgentDecision(mut expected) = body.clone() else { unreachable!() };
    let Some(Event::MemoryAppended(memory)) = &mut expected.events[1].event else { unreachable!() };
    (memory.content, memory.keywords) = (String::new(), vec![String::new(); 3]);
    memory.secrets[0].sealed.clear();
    assert_eq!((rest, forgotten), (expected.into(), ["bob".to_owned()].into()));

    // Without any key it is what is read by whoever knows of none.
    let blank = read(&body, &sealed, &[]).body;
    assert_eq!(Body::decode(body.type_name(), ContentType::Sealed, &sealed), Ok(blank));
    assert_eq!(sealed_owners(&sealed).unwrap().len(), 3);
}

#[test]
fn what_is_nobody_s_or_has_no_key_stays_as_it_is() {
    let (body, whose) = decision();
    assert_eq!(seal_body(&body, ID, &whose, &BTreeMap::new()), Ok(None));
    assert_eq!(seal_body(&body, ID, &ContentOwners::Nobody, &keys(&[("ann", 1)])), Ok(None));
    let empty = Body::from(UserMessage { user: "ann".into(), ..Default::default() });
    assert_eq!(seal_body(&empty, ID, &ContentOwners::from_body(&empty), &keys(&[("ann", 1)])), Ok(None));
}

#[test]
fn a_message_says_whose_it_is() {
    let message = Body::from(AgentMessage { user: "ann".into(), text: "hi".into(), ..Default::default() });
    assert_eq!(ContentOwners::from_body(&message), ContentOwners::One("ann".into()));
    let action = |user: Option<&str>| ToolInvocation { user: user.map(str::to_owned), ..Default::default() };
    let invoke =
        ToolInvoke { actions: vec![action(Some("ann")), action(None), action(Some(""))], ..Default::default() };
    assert_eq!(ContentOwners::from_body(&invoke.into()), ContentOwners::PerPart(vec![Some("ann".into()), None, None]));
    for (whose, text) in [
        (ContentOwners::Nobody, ""),
        (ContentOwners::One("ann".into()), "ann"),
        (ContentOwners::PerPart(vec![Some("ann".into()), None, Some("agent:cook".into())]), "ann,,agent:cook"),
    ] {
        assert_eq!((whose.to_header().as_str(), ContentOwners::from_header(text)), (text, whose));
    }
}

#[test]
fn what_was_changed_or_stands_elsewhere_is_not_opened() {
    let body = Body::from(UserMessage { user: "ann".into(), text: "hello".into(), ..Default::default() });
    let sealed = seal_body(&body, ID, &ContentOwners::from_body(&body), &keys(&[("ann", 1)])).unwrap().unwrap();
    let with = |payload: &[u8], id: Uuid| open_body(body.type_name(), payload, id, |_, _| DataKeyState::Key([1; 32]));
    assert!(with(&sealed, ID).is_ok());
    assert!(matches!(with(&sealed, Uuid::from_u128(8)), Err(NotOpened::Content { user, .. }) if user == "ann"));
    for at in 0..sealed.len() {
        let mut changed = sealed.clone();
        changed[at] ^= 1;
        // Whatever becomes of it, it is not taken for what ann said.
        if let Ok(opened) = with(&changed, ID) {
            assert_ne!(opened.body, body, "byte {at}");
        }
    }
    assert!(matches!(with(b"\xff", ID), Err(NotOpened::Body(_))));
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![Just(String::new()), "[a-z ü\"]{1,20}"]
}

proptest! {
    #[test]
    fn with_all_keys_everything_is_as_it_was(
        texts in prop::collection::vec((text(), 0..3_usize), 0..6),
        answers in prop::collection::vec(text(), 0..3),
    ) {
        let users = ["ann", "bob"];
        let owners = texts.iter().map(|(_, of)| users.get(*of).map(|user| (*user).to_owned()));
        let whose = ContentOwners::PerPart(owners.chain(answers.iter().map(|_| Some("ann".to_owned()))).collect());
        let events = texts.iter().map(|(text, _)| thought(text)).collect();
        let completions = answers.iter().map(|text| Completion { text: text.clone(), ..Default::default() }).collect();
        let body = Body::from(AgentDecision { events, completions, ..Default::default() });
        let known = [("ann", 1), ("bob", 2)];
        if let Some(sealed) = seal_body(&body, ID, &whose, &keys(&known)).unwrap() {
            prop_assert_eq!(&read(&body, &sealed, &known).body, &body);
            prop_assert_eq!(Some(sealed), seal_body(&body, ID, &whose, &keys(&known)).unwrap());
        }
    }
}

#[test]
fn each_value_of_a_list_is_one() {
    let messages = ["a", "b"].map(|text| ImportedMessage { text: text.into(), ..Default::default() });
    let body: Body =
        kairo_proto::v1::AgentImported { user: "ann".into(), messages: messages.to_vec(), ..Default::default() }.into();
    let sealed = seal_body(&body, ID, &ContentOwners::from_body(&body), &keys(&[("ann", 1)])).unwrap().unwrap();
    assert_eq!(read(&body, &sealed, &[("ann", 1)]).body, body);
}

/// Texts of events that are nobody's own: ids and names, times, words of a vocabulary, and what an agent is made from.
#[rustfmt::skip]
const OPEN: &[&str] = &[
    "after", "agent", "agents", "asked_by", "at", "basis", "catalogue_version", "cost", "cost_in_total", "cost_per_day", "cron", "date",
    "day", "day_ends_at", "description", "due_at", "event", "executor", "expires_at", "failure", "finish_reason", "fork_of", "from", "help", "holder",
    "interval", "kind", "label", "lead", "lineage",
    "media_type", "mission", "model", "module", "modules", "name", "next_at", "owner", "path", "program", "prompt", "request_digest",
    "rrule", "runner", "signature", "since", "source_event_ids", "supervisor", "team", "tier", "time", "time_zone", "tool", "tool_choice", "tools", "trigger", "type",
    "updated_at", "user", "value",
];
/// Those that are so in these messages alone.
const OPEN_IN: &[(&str, &str)] = &[
    ("Perception", "arguments"),
    ("GivenUpCall", "reason"),
    ("TeamChanged", "reason"),
    ("ToolQuestion", "server"),
    ("AgentDefined", "version"),
];

#[test]
fn every_text_of_an_event_is_personal_or_known_to_be_nobodys() {
    let protos = [
        include_str!("../../../../proto/kairo/v1/agent.proto"),
        include_str!("../../../../proto/kairo/v1/process.proto"),
        include_str!("../../../../proto/kairo/v1/submodules.proto"),
        include_str!("../../../../proto/kairo/v1/task.proto"),
        include_str!("../../../../proto/kairo/v1/tool.proto"),
        include_str!("../../../../proto/kairo/v1/user.proto"),
    ];
    let mut message = "";
    let mut texts = 0;
    let mut unknown = Vec::new();
    for line in protos.iter().flat_map(|proto| proto.lines()) {
        message = line.strip_prefix("message ").and_then(|line| line.split(' ').next()).unwrap_or(message);
        let mut words = line.split_whitespace().skip_while(|word| ["optional", "repeated"].contains(word));
        let (Some("string"), Some(name)) = (words.next(), words.next()) else { continue };
        texts += 1;
        let is_told = line.contains("personal: true") || line.contains("vocabulary: ");
        let is_open = name.ends_with("_id") || OPEN.contains(&name) || OPEN_IN.contains(&(message, name));
        if !is_told && !is_open {
            unknown.push(format!("{message}.{name}"));
        }
    }
    assert!(texts > 200, "{texts}");
    assert_eq!(unknown, Vec::<String>::new(), "say `personal: true` of them, or that they are nobody's");
}

/// Other orders hold ids and words of a vocabulary only.
#[test]
fn the_task_of_a_program_is_its_users() {
    use kairo_proto::v1::{AgentCommand, QueuedTask, UserCommand};

    let owner = |body: Body| ContentOwners::from_body(&body);
    let task = || Some(QueuedTask { text: "my diagnosis".into(), ..Default::default() });
    let user = || "ann".to_owned();
    assert_eq!(
        owner(UserCommand { user: user(), task: task(), ..Default::default() }.into()),
        ContentOwners::of_user("ann")
    );
    assert_eq!(
        owner(AgentCommand { user: user(), task: task(), ..Default::default() }.into()),
        ContentOwners::of_user("ann")
    );
    assert_eq!(owner(UserCommand { user: user(), ..Default::default() }.into()), ContentOwners::Nobody);
}
