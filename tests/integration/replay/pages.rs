//! The pages of `kairo replay --html` and `kairo whatif --html`, opened by a real browser.

use std::path::Path;

use kairo_local::StackOptions;
use kairo_proto::v1::AgentDecision;
use kairo_replay::testing::{Agent, calls, says, with_decision};
use tokio::process::Command;

/// What somebody says who would like the page to do something.
const HOSTILE: &str =
    "</pre></svg><script>document.title = 'run'</script><img src=x onerror=\"document.title = 'run'\"> the old slot";

/// The page as the browser has it once it is loaded; none without Chromium.
async fn opened(page: &Path) -> Option<String> {
    let chromium = std::env::var("KAIRO_CHROMIUM").ok()?;
    let profile = tempfile::tempdir().unwrap();
    let mut browser = Command::new(chromium);
    browser.args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--dump-dom"]);
    browser.arg(format!("--user-data-dir={}", profile.path().display()));
    let output = browser.arg(format!("file://{}", page.display())).output().await.unwrap();
    assert!(output.status.success(), "{output:?}");
    Some(String::from_utf8(output.stdout).unwrap())
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
    let mut agent = Agent::new("cook");
    let heard = agent.hears("", HOSTILE);
    let looks = agent.decides(&[calls("tools.now")]);
    agent.learns(looks, "\"2\"");
    let tells = agent.decides(&[says(HOSTILE)]);
    let messages = with_decision(&agent.messages(), tells, |decision: &mut AgentDecision| {
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
        opened(&path(page)).await
    };
    let Some(report) = kairo(&["replay"], "report.html").await else {
        return eprintln!("skipped: no Chromium is installed");
    };
    shows_only(&report, "Decisions made again");
    assert!(report.contains("the <del>new</del> slot") && report.contains("the <ins>old</ins> slot"), "{report}");
    assert!(report.contains(&format!("id=\"cook-{looks}\"")) && report.contains(&format!("id=\"cook-{tells}\"")));

    std::fs::write(
        path("edit.json"),
        "{\"message_id\":\"m1\",\"user\":\"ann\",\"text\":\"<script>document.title = 1</script>\"}",
    )
    .unwrap();
    let edit = format!("{heard}={}", path("edit.json").display());
    let cone = kairo(&["whatif", "--edit", &edit], "cone.html").await.unwrap();
    assert!(cone.contains("<title>The cone of a change</title>"), "{cone}");
    assert_eq!(cone.matches("<circle class=\"").count(), cone.matches("<section class=\"").count(), "{cone}");
    assert!(cone.matches("<circle class=\"unknown\"").count() >= 2, "{cone}");
    assert!(cone.contains(&format!("<a href=\"#m{looks}\">")) && cone.contains(&format!("id=\"m{looks}\"")), "{cone}");
}
