//! An archive, read as the beginning of the gateway's log.

use std::{collections::BTreeSet, path::Path};

use kairo_backup::{manifest::Manifest, verification};
use kairo_core::{envelope::CONTENT_TYPE, ids::Name, subjects};
use kairo_proto::{
    ContentType,
    v1::{GetLogResponse, LogMessage},
};

use super::{ReadFlow, damage_error, fetch_log_page};
use crate::{Error, client::Client};

/// Checks that the gateway's log continues the archive and returns the archive's last sequence; messages after it come
/// from the gateway.
///
/// # Errors
/// Returns an error if the archive cannot be read, is of another log, or messages between the two are in neither.
pub async fn check_continuation(path: &Path, client: &Client) -> Result<u64, Error> {
    let manifest = verification::read_manifest(path).map_err(damage_error)?;
    let through = manifest.log_end();
    let page = fetch_log_page(client, through.saturating_sub(1)).await?;
    let last = match page.messages.first().filter(|first| first.sequence == through) {
        Some(_) => read_last_message(path, &manifest)?,
        None => None,
    };
    match find_mismatch(&manifest, &page, last.as_ref()) {
        Some(why) => Err(Error::Advice(format!("--archive {}: {why}", path.display()))),
        None => Ok(through),
    }
}

fn read_last_message(path: &Path, manifest: &Manifest) -> Result<Option<LogMessage>, Error> {
    let last = verification::last_log_message(path, manifest).map_err(damage_error)?;
    Ok(last.map(|line| line.to_log_message()))
}

/// Returns the reason why the gateway's log does not continue the archive, judged by its messages from the archive's
/// last one on; `last` is that message as the archive has it.
fn find_mismatch(manifest: &Manifest, page: &GetLogResponse, last: Option<&LogMessage>) -> Option<String> {
    let begins = manifest.begins_behind();
    let through = manifest.log_end();
    let first = page.messages.first();
    match first.map(|first| first.sequence) {
        _ if page.log != manifest.log.to_string() => {
            Some(format!("it is of the log {}, and the gateway has {}", manifest.log, page.log))
        }
        _ if begins > 0 => Some(format!("it begins behind message {begins}: what stood before is not in it")),
        _ if page.end < through => Some(format!(
            "it ends at message {through}, and the gateway's log at {}: that has lost something",
            page.end
        )),
        Some(sequence) if sequence > through + 1 => {
            let from = through + 1;
            let to = sequence - 1;
            Some(format!("messages {from} to {to} are neither in it nor in the gateway's log"))
        }
        Some(sequence) if sequence == through && is_different_message(first, last) => {
            Some(format!("message {through} is another one in the gateway's log: hold both to a checkpoint"))
        }
        _ => None,
    }
}

fn is_different_message(one: Option<&LogMessage>, other: Option<&LogMessage>) -> bool {
    let content = |message: &LogMessage| (message.data.clone(), message.headers.clone());
    matches!((one, other), (Some(one), Some(other)) if content(one) != content(other))
}

/// Takes messages as long as nothing of these agents is sealed: it would be taken for what is forgotten.
pub fn reject_sealed(
    agents: &[Name],
    mut take: impl FnMut(&LogMessage) -> ReadFlow,
) -> impl FnMut(&LogMessage) -> ReadFlow {
    let subjects: BTreeSet<String> = agents.iter().flat_map(subjects::replay_subjects).collect();
    move |message| match is_sealed(message) && subjects.contains(&message.subject) {
        true => Err(Error::Advice(format!(
            "message {} is sealed in the archive: what users say is opened by the gateway alone, so name no archive as long as \
             the log has it",
            message.sequence
        ))),
        false => take(message),
    }
}

fn is_sealed(message: &LogMessage) -> bool {
    message.headers.get(CONTENT_TYPE).is_some_and(|kind| kind == ContentType::SEALED)
}

/// Reads an archive until `take` has seen enough; whether it has.
///
/// # Errors
/// Returns an error if it cannot be read, and any error of `take`.
pub fn read_archive(path: &Path, mut take: impl FnMut(&LogMessage) -> ReadFlow) -> Result<bool, Error> {
    for message in verification::read_log_messages(path).map_err(damage_error)? {
        if take(&message.map_err(damage_error)?)?.is_break() {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use serde_json::json;

    use super::*;

    fn manifest(first: u64, through: u64) -> Manifest {
        let log = json!({ "config": {}, "first_sequence": first, "last_sequence": through, "files": [] });
        let part = json!({
            "number": 1, "taken": "1970-01-01T00:00:00Z", "after": 0, "through": through, "streams": { "KAIRO_EVENTS": log },
        });
        let log = "00000000-0000-0000-0000-000000000007";
        let text = json!({ "kairo": "archive", "format": 1, "version": "", "log": log, "parts": [part] });
        Manifest::parse(&text.to_string()).unwrap()
    }

    fn message(sequence: u64, body: &[u8]) -> LogMessage {
        LogMessage { sequence, data: body.to_vec(), ..LogMessage::default() }
    }

    fn page(end: u64, messages: Vec<LogMessage>) -> GetLogResponse {
        let log = "00000000-0000-0000-0000-000000000007".to_owned();
        GetLogResponse { messages, log, end, ..GetLogResponse::default() }
    }

    #[test]
    fn a_log_goes_on_where_the_archive_ends() {
        let archive = manifest(1, 5);
        let last = message(5, b"a");
        assert_eq!(find_mismatch(&archive, &page(9, vec![message(5, b"a"), message(6, b"b")]), Some(&last)), None);
        assert_eq!(find_mismatch(&archive, &page(9, vec![message(6, b"b")]), None), None, "what is archived is gone");
        assert_eq!(find_mismatch(&archive, &page(5, Vec::new()), None), None, "nothing came since");
    }

    #[test]
    fn what_is_sealed_of_an_agent_is_not_taken_for_forgotten() {
        let sealed = |subject: &str| LogMessage {
            subject: subject.to_owned(),
            headers: [(CONTENT_TYPE.to_owned(), ContentType::SEALED.to_owned())].into(),
            ..message(7, b"x")
        };
        let ann = [Name::parse("ann").unwrap()];
        let mut take = reject_sealed(&ann, |_| Ok(ControlFlow::Continue(())));
        assert!(take(&sealed("kairo.agent.bob.message")).is_ok());
        assert!(take(&LogMessage { headers: Default::default(), ..sealed("kairo.agent.ann.message") }).is_ok());
        let refused = take(&sealed("kairo.agent.ann.message")).unwrap_err().to_string();
        assert!(refused.contains("message 7 is sealed in the archive"), "{refused}");
    }

    #[test]
    fn what_does_not_go_on_there_is_told() {
        let archive = manifest(1, 5);
        let last = message(5, b"a");
        let told =
            |archive: &Manifest, page: &GetLogResponse| find_mismatch(archive, page, Some(&last)).unwrap_or_default();
        assert!(told(&archive, &page(9, vec![message(8, b"b")])).contains("messages 6 to 7 are neither"));
        assert!(told(&archive, &page(9, vec![message(5, b"b")])).contains("message 5 is another one"));
        assert!(told(&archive, &page(4, vec![message(4, b"b")])).contains("lost something"));
        assert!(told(&manifest(3, 5), &page(9, vec![message(5, b"a")])).contains("begins behind message 2"));
        let other = GetLogResponse { log: "another".into(), ..page(9, Vec::new()) };
        assert!(told(&archive, &other).contains("of the log 00000000"));
    }
}
