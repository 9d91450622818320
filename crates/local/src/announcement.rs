//! The announcement by which a service says that it is ready: one line on its standard output.
//!
//! `ready health=http://127.0.0.1:4001 url=http://127.0.0.1:7420` from a service (`url` only where
//! it serves something), `listening on http://127.0.0.1:4002` from the model simulator. Reading
//! the addresses from the line lets every service choose its own free port.

const READY: &str = "ready ";
const LISTENING: &str = "listening on ";

/// The addresses in the line, without a trailing slash.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Announcement {
    /// Base of `/healthz` and `/readyz`.
    pub(crate) health: Option<String>,
    /// The URL that clients connect to.
    pub(crate) url: Option<String>,
}

/// Returns true if the line is meant as an announcement, well formed or not.
pub(crate) fn is_announcement(line: &str) -> bool {
    [READY, LISTENING].iter().any(|start| line.trim_start().starts_with(start))
}

/// `None` if the line announces nothing. Words that are not known are passed over: a newer service
/// may say more.
pub(crate) fn parse(line: &str) -> Option<Announcement> {
    let line = line.trim();
    if let Some(url) = line.strip_prefix(LISTENING) {
        return Some(Announcement { health: None, url: Some(address(url)?) });
    }
    let mut announcement = Announcement::default();
    for word in line.strip_prefix(READY)?.split_whitespace() {
        match word.split_once('=') {
            Some(("health", value)) => announcement.health = Some(address(value)?),
            Some(("url", value)) => announcement.url = Some(address(value)?),
            _ => {}
        }
    }
    (announcement != Announcement::default()).then_some(announcement)
}

fn address(text: &str) -> Option<String> {
    let authority = text.strip_prefix("http://")?.trim_end_matches('/');
    (!authority.is_empty()).then(|| format!("http://{authority}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_announces_its_addresses() {
        assert_eq!(
            parse("ready health=http://127.0.0.1:1 url=http://127.0.0.1:2/ more=later\n"),
            Some(Announcement { health: Some("http://127.0.0.1:1".into()), url: Some("http://127.0.0.1:2".into()) })
        );
    }

    #[test]
    fn the_simulator_announces_its_url() {
        assert_eq!(
            parse("listening on http://127.0.0.1:9"),
            Some(Announcement { health: None, url: Some("http://127.0.0.1:9".into()) })
        );
    }

    #[test]
    fn other_lines_announce_nothing() {
        for line in [
            "",
            "ready",
            "ready ",
            "ready health=",
            "ready health=ftp://x",
            "already health=http://127.0.0.1:1",
            "listening on nothing",
        ] {
            assert_eq!(parse(line), None, "{line:?}");
        }
    }
}
