//! A search's conditions in the words of Meilisearch.

use super::{DocumentKind, SearchQuery, rows::DELETED};

/// All that must hold; empty for nothing.
pub fn engine_filter(query: &SearchQuery) -> String {
    let mut all = Vec::new();
    if query.kinds.is_empty() || query.kinds.contains(&DocumentKind::State) {
        all.push(format!("status != {DELETED}"));
    }
    if !query.kinds.is_empty() {
        let kinds: Vec<&str> = query.kinds.iter().map(|kind| kind.name()).collect();
        all.push(format!("kind IN [{}]", kinds.join(", ")));
    }
    let fields = [("agent", &query.agent), ("type", &query.kind_of), ("status", &query.status)];
    for (field, value) in fields {
        all.extend(value.as_ref().map(|value| format!("{field} = {}", quote_value(value))));
    }
    if let Some(user) = &query.user {
        // What is written for all is a memory or inner state; a thread of nobody is not everybody's.
        let for_all = format!("kind IN [{}, {}]", DocumentKind::Memory.name(), DocumentKind::State.name());
        all.push(format!("(user = {} OR (user IS NULL AND {for_all}))", quote_value(user)));
    }
    all.extend(query.from.map(|day| format!("day >= {}", super::day_number(day))));
    all.extend(query.to.map(|day| format!("day <= {}", super::day_number(day))));
    all.join(" AND ")
}

fn quote_value(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    #[test]
    fn only_what_is_asked_for_is_in_it() {
        assert_eq!(engine_filter(&SearchQuery::default()), "status != deleted");
        let query = SearchQuery {
            kinds: vec![DocumentKind::Thread, DocumentKind::Memory],
            agent: Some("bob".into()),
            user: Some("ann".into()),
            from: Some(date(2026, 11, 9)),
            ..Default::default()
        };
        assert_eq!(
            engine_filter(&query),
            "kind IN [thread, memory] AND agent = \"bob\" AND (user = \"ann\" OR \
             (user IS NULL AND kind IN [memory, state])) \
             AND day >= 20261109"
        );
    }

    #[test]
    fn a_value_ends_where_it_ends() {
        let query = SearchQuery { kind_of: Some(r#"x" OR kind = "task\"#.into()), ..Default::default() };
        assert_eq!(engine_filter(&query), r#"status != deleted AND type = "x\" OR kind = \"task\\""#);
    }
}
