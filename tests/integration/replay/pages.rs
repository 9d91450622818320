//! The pages of `kairo replay --html` and `kairo whatif --html`, opened by a real browser.

use kairo_local::StackOptions;
use kairo_proto::v1::AgentDecision;
use kairo_replay::testing::{TestAgent, call_completion, text_completion, with_changed_decision};
use serde_json::json;
use tokio::process::Command;

use crate::chromium::{self, Chromium, Page};

/// A message that tries to run scripts in the page.
const HOSTILE: &str =
    "</pre></svg><script>document.title = 'run'</script><img src=x onerror=\"document.title = 'run'\"> the old slot";

/// The classes of all of these elements that can be seen.
async fn seen(page: &mut Page, of: &str) -> Vec<String> {
    let seen = "filter(it => it.getClientRects().length > 0).map(it => it.getAttribute('class') ?? '')";
    let seen = page.look(&format!("[...document.querySelectorAll({})].{seen}", json!(of))).await;
    serde_json::from_value(seen).unwrap()
}

/// Each filter, clicked, takes its rows away and nothing else, and the space bar brings them back. What is in `graph` stays.
async fn filters(page: &mut Page, graph: &str) {
    let (rows, drawn) = (seen(page, "section").await, seen(page, graph).await);
    let filters = page.look("[...document.querySelectorAll('fieldset input')].map(it => it.id)").await;
    let filters: Vec<String> = serde_json::from_value(filters).unwrap();
    let is_of = |row: &str, class: &str| row.split(' ').any(|it| it == class);
    let classes = filters.iter().map(|filter| filter.strip_prefix("show-").unwrap());
    assert!(rows.iter().all(|row| classes.clone().any(|class| is_of(row, class))), "{rows:?}: {filters:?}");
    assert!(classes.clone().filter(|class| rows.iter().any(|row| is_of(row, class))).count() > 1, "{rows:?}");
    for (class, filter) in classes.zip(&filters) {
        let (of_class, others): (Vec<String>, Vec<String>) = rows.iter().cloned().partition(|row| is_of(row, class));
        let label = page.look(&format!("document.querySelector('#{filter}').parentElement.innerText")).await;
        assert!(label.as_str().unwrap().split([' ', ':']).any(|word| word == of_class.len().to_string()), "{label}");
        page.click(&format!("#{filter}")).await;
        assert_eq!((seen(page, "section").await, seen(page, graph).await), (others, drawn.clone()), "without {class}");
        page.look("document.activeElement.blur()").await;
        // The keyboard begins where the last click was, so it goes around once at most.
        for _ in 0..100 {
            page.press("Tab", 9, "").await;
            if page.look("document.activeElement.id").await == filter.as_str() {
                break;
            }
        }
        page.press(" ", 32, " ").await;
        assert_eq!(seen(page, "section").await, rows, "with {class} again");
    }
}

/// Nothing that the log says was run or loaded.
fn shows_only(page: &str, title: &str) {
    assert!(page.contains(&format!("<title>{title}</title>")), "{page}");
    assert!(
        page.contains("&lt;script&gt;document.title") && !page.contains("<script") && !page.contains("<img"),
        "{page}"
    );
}

#[tokio::test]
async fn pages_mark_words_and_draw_the_cone_and_run_nothing_of_a_log() {
    let Some(chromium) = chromium::program() else { return };
    let mut agent = TestAgent::new("cook");
    let heard = agent.hears("", HOSTILE);
    let looks = agent.decide(&[call_completion("tools.now")]);
    agent.learns(looks, "\"2\"");
    let tells = agent.decide(&[text_completion(HOSTILE)]);
    let messages = with_changed_decision(&agent.messages(), tells, |decision: &mut AgentDecision| {
        for event in &mut decision.events {
            *event =
                serde_json::from_str(&serde_json::to_string(event).unwrap().replace("old slot", "new slot")).unwrap();
        }
    });
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let lines = messages.iter().map(|message| serde_json::to_string(message).unwrap() + "\n");
    std::fs::write(path("cook.log"), lines.collect::<String>()).unwrap();
    let kairo = async |arguments: &[&str], page: &str| {
        let program = StackOptions::bin_dir_of_this_build().unwrap().join("kairo");
        let mut command = Command::new(program);
        command.arg(arguments[0]).arg(path("cook.log")).args(&arguments[1..]).arg("--html").arg(path(page));
        let output = command.output().await.unwrap();
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        Chromium::page(&chromium, &path(page)).await
    };
    let mut page = kairo(&["replay"], "report.html").await;
    let report = page.document().await;
    shows_only(&report, "Decisions made again");
    assert!(report.contains("the <del>new</del> slot") && report.contains("the <ins>old</ins> slot"), "{report}");
    assert!(report.contains(&format!("id=\"cook-{looks}\"")) && report.contains(&format!("id=\"cook-{tells}\"")));
    filters(&mut page, "h1").await;

    std::fs::write(
        path("edit.json"),
        "{\"message_id\":\"m1\",\"user\":\"ann\",\"text\":\"<script>document.title = 1</script>\"}",
    )
    .unwrap();
    let edit = format!("{heard}={}", path("edit.json").display());
    let mut page = kairo(&["whatif", "--edit", &edit], "cone.html").await;
    let cone = page.document().await;
    assert!(cone.contains("<title>The cone of a change</title>"), "{cone}");
    assert_eq!(cone.matches("<circle class=\"").count(), cone.matches("<section class=\"").count(), "{cone}");
    assert!(cone.matches("<circle class=\"unknown\"").count() >= 2, "{cone}");
    assert!(cone.contains(&format!("<a href=\"#m{looks}\">")) && cone.contains(&format!("id=\"m{looks}\"")), "{cone}");
    filters(&mut page, "circle").await;
}
