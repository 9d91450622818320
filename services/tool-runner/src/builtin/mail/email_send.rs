//! `email.send`: a mail to people, by the configured SMTP server.
//!
//! Sent mail is kept in `mail/Sent`, a Maildir within the mailbox, under a name of the action. Without a server that is
//! all there is, so a repeated call does nothing more; with one, nobody can know what became of a mail whose runner was
//! lost, and the call is not repeated.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use lettre::message::Mailbox;
use lettre::transport::smtp::Error as SmtpError;
use lettre::{AsyncSmtpTransport, AsyncTransport as _, Tokio1Executor};
use serde::Deserialize;
use serde_json::{Value, json};

use super::mail_draft::{AttachedFile, MailDraft, OutgoingMail};
use super::message::{self, Mail};
use super::{MailConfig, SENT, recipients};
use crate::builtin::parse_args;
use crate::builtin::team;
use crate::builtin::workspace::{Desk, Folder, Workspace, set_field};
use crate::outcome::{MissingAnswer, missing_answer_error};
use crate::tool::{CallContext, CallResult, Executor, Tool, ToolError, ToolSpec};

const NAME: &str = "email.send";
const DESCRIPTION: &str = "Sends a mail from the agent's address. to, cc and bcc name addresses, or people of the contacts by name; a name that fits several people is refused with the candidates. attachments are paths of files in the workspace, such as documents/report.md. in_reply_to is the id of the message that is answered, as email.search returned it. Returns id, message_id, the recipients, and in delivered what became of it: sent is false where no mail server is configured and the mail is only kept in Sent.";
/// Files attached to one mail, at most.
const MAX_ATTACHMENTS: usize = 50;
/// Folders above an attached file, at most.
const MAX_DEPTH: usize = 8;

type SmtpClient = AsyncSmtpTransport<Tokio1Executor>;

pub struct EmailSend {
    spec: ToolSpec,
    workspace: Arc<Workspace>,
    config: Arc<MailConfig>,
    smtp: Option<SmtpClient>,
}

#[derive(Deserialize)]
struct EmailSendArgs {
    to: Value,
    #[serde(default)]
    cc: Value,
    #[serde(default)]
    bcc: Value,
    subject: String,
    body: String,
    #[serde(default)]
    attachments: Vec<String>,
    in_reply_to: Option<String>,
}

/// A mail that is ready to go.
struct PreparedMail {
    mail: OutgoingMail,
    /// Its file in Sent.
    file: String,
    /// It is there already: the call was made before.
    kept: bool,
    result: Value,
}

impl EmailSend {
    /// # Errors
    /// When no connection to the configured server can be set up.
    pub fn new(config: &MailConfig, workspace: Arc<Workspace>, timeout: Duration) -> Result<Self, String> {
        let smtp = config.smtp_url.as_ref().map(|url| {
            let smtp = SmtpClient::from_url(url.expose());
            // The error is not repeated: it may quote a password.
            let smtp = smtp.map_err(|_| "mail.smtp_url: no connection can be set up with it".to_owned())?;
            Ok::<_, String>(smtp.timeout(Some(Duration::from_millis(config.smtp_timeout_ms))).build())
        });
        let smtp = smtp.transpose()?;
        let spec = ToolSpec {
            name: NAME.to_owned(),
            description: DESCRIPTION.to_owned(),
            schema: schema(),
            idempotent: smtp.is_none(),
            timeout,
            executor: Executor::ToolRunner,
            needs_approval: true,
            needs_approval_with: Vec::new(),
            acts_outside: true,
            definition: None,
        };
        Ok(Self { spec, workspace, config: Arc::new(config.clone()), smtp })
    }

    async fn send(&self, args: Value, ctx: CallContext) -> CallResult {
        ctx.exchange.mark_unsent();
        let workspace = Arc::clone(&self.workspace);
        let config = Arc::clone(&self.config);
        let context = ctx.clone();
        let ready = run_blocking(move || prepare_mail(&Desk::open(&workspace, &context)?, &config, args)).await?;
        let mut result = ready.result.clone();
        if ready.kept {
            return Ok(self.add_delivery(result));
        }
        if let Some(smtp) = &self.smtp {
            if ctx.cancel.is_cancelled() {
                return Err(ToolError::canceled("it was stopped before the mail was handed to the server"));
            }
            ctx.exchange.mark_sent();
            smtp.send_raw(&ready.mail.envelope, &ready.mail.bytes).await.map_err(|error| to_tool_error(&error))?;
            ctx.exchange.mark_answered();
        }
        let workspace = Arc::clone(&self.workspace);
        let kept = run_blocking(move || keep_copy(&Desk::open(&workspace, &ctx)?, &ready)).await;
        match kept {
            // It has gone out, which is what counts.
            Err(error) if self.smtp.is_some() => {
                set_field(&mut result, "note", format!("no copy is in Sent: {}", error.message))
            }
            kept => kept?,
        }
        Ok(self.add_delivery(result))
    }

    fn add_delivery(&self, mut result: Value) -> Value {
        let how = match self.smtp {
            Some(_) => "handed to the SMTP server, which accepted it for all recipients",
            None => "kept in Sent; no SMTP server is configured",
        };
        set_field(&mut result, "sent", self.smtp.is_some());
        set_field(&mut result, "delivered", how);
        result
    }
}

impl Tool for EmailSend {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call(&self, args: Value, ctx: CallContext) -> BoxFuture<'_, CallResult> {
        Box::pin(self.send(args, ctx))
    }
}

async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|_| Err(ToolError::failed("the tool panicked")))
}

/// Converts an SMTP error. A server that answered, or was never reached, has not taken the mail.
fn to_tool_error(error: &SmtpError) -> ToolError {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error).and_then(std::error::Error::source);
    while let Some(cause) = source {
        let _ = write!(text, ": {cause}");
        source = cause.source();
    }
    let answered = error.is_permanent() || error.is_transient() || error.is_client() || error.is_tls();
    // The only other way to tell is its text: whether the connection ever came about.
    if answered || text.starts_with("Connection error") {
        let again = if error.is_permanent() { "correct it" } else { "try again later" };
        return ToolError::failed(format!("the mail was not sent: {text}; {again}"));
    }
    let how = format!("the connection broke off while the mail was handed over: {text}");
    missing_answer_error(&MissingAnswer::Lost(how), false, true)
}

fn schema() -> Value {
    let people = |description: &str| {
        json!({
            "type": ["string", "array", "object"],
            "maxLength": 10_000,
            "maxItems": 1_000,
            "description": description,
        })
    };
    json!({
        "type": "object",
        "required": ["to", "subject", "body"],
        "properties": {
            "to": people("An address, the name of a contact, a list of such, or a result of team.members"),
            "cc": people("Copies, in the same way"),
            "bcc": people("Copies that the others do not see, in the same way"),
            "subject": {"type": "string", "minLength": 1, "maxLength": 500},
            "body": {"type": "string", "description": "Plain text"},
            "attachments": {
                "type": "array",
                "maxItems": MAX_ATTACHMENTS,
                "items": {"type": "string", "minLength": 1, "maxLength": 500},
                "description": "Paths of files in the workspace, as other tools returned them",
            },
            "in_reply_to": {"type": "string", "minLength": 1, "maxLength": 500, "description": "Id of the message that is answered"},
        },
        "additionalProperties": false,
    })
}

fn prepare_mail(desk: &Desk<'_>, config: &MailConfig, args: Value) -> Result<PreparedMail, ToolError> {
    let args: EmailSendArgs = parse_args(args)?;
    if args.body.len() > config.max_body_bytes {
        let size = args.body.len();
        let most = config.max_body_bytes;
        return Err(ToolError::invalid_arguments(format!(
            "/body: it takes {size} bytes of at most {most}; shorten it"
        )));
    }
    let [to, cc, bcc] = resolve_recipients(desk, config, &args)?;
    let from = config.sender(desk.agent());
    let draft = MailDraft {
        key: desk.action_key().simple().to_string(),
        written: desk.decided_at(),
        from: from
            .ok_or_else(|| ToolError::failed("mail.from of the configuration makes no address for this agent"))?,
        to,
        cc,
        bcc,
        subject: recipients::check_header_text("subject", &args.subject)?.to_owned(),
        attachments: read_attachments(desk, config, &args.attachments)?,
        answers: args.in_reply_to.as_deref().map(|id| load_conversation(desk, id)).transpose()?.unwrap_or_default(),
        body: args.body,
    };
    let letter = draft.to_outgoing_mail()?;
    let id = format!("{}.{}.kairo", draft.written.as_second(), draft.key);
    let file = format!("{id}:2,S");
    let kept = open_sent_folder(desk)?.has(&file)?;
    let result = describe_draft(&draft, &id, &file);
    Ok(PreparedMail { mail: letter, file, kept, result })
}

fn describe_draft(draft: &MailDraft, id: &str, file: &str) -> Value {
    let people = |all: &[Mailbox]| all.iter().map(Mailbox::to_string).collect::<Vec<_>>();
    let attached = draft.attachments.iter().map(|one| json!({"name": one.name, "bytes": one.bytes.len()}));
    json!({
        "id": id,
        "message_id": draft.message_id(),
        "from": draft.from.to_string(),
        "to": people(&draft.to),
        "cc": people(&draft.cc),
        "bcc": people(&draft.bcc),
        "subject": draft.subject,
        "attachments": attached.collect::<Vec<_>>(),
        "path": format!("mail/{SENT}/cur/{file}"),
    })
}

/// Returns the `to`, `cc` and `bcc` recipients, nobody twice.
fn resolve_recipients(
    desk: &Desk<'_>,
    config: &MailConfig,
    args: &EmailSendArgs,
) -> Result<[Vec<Mailbox>; 3], ToolError> {
    let fields = [("to", &args.to), ("cc", &args.cc), ("bcc", &args.bcc)];
    let mut said = Vec::new();
    for (field, value) in fields {
        said.push((field, recipients::parse_recipients(field, value)?));
    }
    let total: usize = said.iter().map(|(_, texts)| texts.len()).sum();
    if total > config.max_recipients {
        let most = config.max_recipients;
        return Err(ToolError::invalid_arguments(format!("/to: {total} recipients of at most {most}; name fewer")));
    }
    let names = said.iter().flat_map(|(_, texts)| texts).any(|text| recipients::is_name(text));
    let contacts = if names { team::load_contacts(desk)?.0 } else { Vec::new() };
    let mut known = std::collections::HashSet::new();
    let mut resolved: [Vec<Mailbox>; 3] = Default::default();
    for ((field, texts), list) in said.iter().zip(&mut resolved) {
        for text in texts {
            let mailbox = recipients::resolve(field, text, &contacts)?;
            if known.insert(mailbox.email.to_string().to_lowercase()) {
                list.push(mailbox);
            }
        }
    }
    if resolved.first().is_none_or(Vec::is_empty) {
        return Err(ToolError::invalid_arguments("/to: nobody is named; give an address or the name of a contact"));
    }
    Ok(resolved)
}

fn read_attachments(desk: &Desk<'_>, config: &MailConfig, paths: &[String]) -> Result<Vec<AttachedFile>, ToolError> {
    let mut room = config.max_attachments_bytes;
    let mut attached = Vec::new();
    for (index, path) in paths.iter().enumerate() {
        desk.check_not_canceled()?;
        let field = format!("attachments/{index}");
        let wrong = |problem: String| ToolError::invalid_arguments(format!("/{field}: {problem}"));
        recipients::check_header_text(&field, path)?;
        let file = desk.read_file(path, MAX_DEPTH, room)?;
        let (name, file) = file.ok_or_else(|| {
            wrong(format!("there is no file {path:?} in the workspace; write a path such as documents/report.md"))
        })?;
        if file.truncated {
            let most = config.max_attachments_bytes;
            return Err(wrong(format!("with this one the attachments take more than {most} bytes; leave some out")));
        }
        room = room.saturating_sub(file.bytes.len());
        attached.push(AttachedFile { name: name.to_owned(), bytes: file.bytes });
    }
    Ok(attached)
}

/// The conversation that a reply goes on with.
fn load_conversation(desk: &Desk<'_>, id: &str) -> Result<Vec<String>, ToolError> {
    let no_id = || {
        ToolError::invalid_arguments(format!(
            "/in_reply_to: there is no message {id:?} that could be answered; take an id that email.search returned"
        ))
    };
    let mailbox = desk.folder("mail")?;
    match super::find_message(&mailbox, id, desk)? {
        Some((_, file)) => {
            let mail = Mail::parse_headers(&file.bytes).filter(|mail| !mail.message_id.is_empty()).ok_or_else(no_id)?;
            Ok(mail.references.into_iter().chain([mail.message_id]).collect())
        }
        // Somebody may know the mail's own id from elsewhere.
        None => Ok(vec![message::parse_message_id(id).ok_or_else(no_id)?]),
    }
}

fn open_sent_folder(desk: &Desk<'_>) -> Result<Folder, ToolError> {
    Ok(desk.folder("mail")?.open_or_create(SENT)?.open_or_create("cur")?)
}

fn keep_copy(desk: &Desk<'_>, ready: &PreparedMail) -> Result<(), ToolError> {
    let folder = open_sent_folder(desk)?;
    // A mail reader expects a Maildir to be whole.
    for part in ["new", "tmp"] {
        desk.folder("mail")?.open_or_create(SENT)?.open_or_create(part)?;
    }
    Ok(folder.write(&ready.file, &ready.mail.bytes)?)
}
