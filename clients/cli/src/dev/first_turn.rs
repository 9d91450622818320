//! The first message: an agent to send it to, and what comes of it.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::timeout;

use crate::{
    client::{Client, ClientError, NewMessage},
    default_tools,
    exchange::{Exchange, Update},
    turn::Ending,
};

/// The agent that messages go to unless they name another.
pub(crate) const AGENT: &str = "default";

const PROMPT: &str = "\
You are a helpful, precise assistant. Answer briefly, in the language of the user. \
Use a tool whenever it knows better than you do, such as for the time or for dates, and call several at once when \
they do not depend on each other. If a tool fails, say what failed and what can be done about it.";

/// A real model may think for a while.
const PATIENCE: Duration = Duration::from_secs(120);

/// Makes the agent if there is none of its name: somebody may have changed it since it was made.
pub(crate) async fn ensure_agent(client: &Client, name: &str) -> Result<(), ClientError> {
    let answer: Value = client.get("v1/agents", &[]).await?;
    let agents = answer.get("agents").and_then(Value::as_array);
    if agents.into_iter().flatten().any(|agent| agent.get("agent").and_then(Value::as_str) == Some(name)) {
        return Ok(());
    }
    let profile = json!({
        "agent": name,
        "description": "answers whatever is not addressed to another agent",
        "prompt": PROMPT,
        "tools": default_tools::DEFAULT_TOOLS,
    });
    client.post::<Value>("v1/agents", &profile).await?;
    Ok(())
}

/// Says something and waits for the end of the turn, `None` if it did not come in time.
pub(crate) async fn send_and_wait(
    client: &Client,
    agent: &str,
    text: &str,
) -> Result<(Exchange, Option<Ending>), ClientError> {
    let message = NewMessage {
        user: "you".to_owned(),
        text: text.to_owned(),
        agent: Some(agent.to_owned()),
        message_id: None,
        thread_id: None,
        parts: Vec::new(),
        environment: None,
        state: None,
    };
    let mut exchange = Exchange::begin(client, &message).await?;
    let ended = timeout(PATIENCE, async {
        loop {
            if let Update::End(ending) = exchange.next().await? {
                return Ok(ending);
            }
        }
    });
    let ending = ended.await.ok().transpose()?;
    Ok((exchange, ending))
}
