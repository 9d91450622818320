//! The log on stderr.

use std::{fmt, io};

use opentelemetry::{Context, trace::TraceContextExt};
use tracing::{Event, Subscriber};
use tracing_subscriber::{
    EnvFilter, Layer, Registry,
    filter::{FilterExt, ParseError, filter_fn},
    fmt::{
        FmtContext, MakeWriter,
        format::{FormatEvent, FormatFields, Writer},
    },
    registry::LookupSpan,
};

use super::{
    TelemetryError,
    config::{LogFormat, TelemetryConfig},
};

pub(super) type BoxedLayer = Box<dyn Layer<Registry> + Send + Sync>;

pub(super) fn parse_filter(directives: &str) -> Result<EnvFilter, ParseError> {
    EnvFilter::builder().parse(directives)
}

/// Writes to `writer`, which is standard error but in tests.
pub(super) fn log_layer<W>(config: &TelemetryConfig, writer: W) -> Result<BoxedLayer, TelemetryError>
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let log_spans = config.log_spans;
    // Were spans enabled here, every message would pay for them whether exported or not.
    let filter = parse_filter(&config.log)
        .map_err(TelemetryError::Filter)?
        .and(filter_fn(move |metadata| log_spans || metadata.is_event()));
    let layer = tracing_subscriber::fmt::layer().with_writer(writer);
    Ok(match config.format {
        LogFormat::Text => {
            let to_terminal = io::IsTerminal::is_terminal(&io::stderr());
            layer.with_ansi(to_terminal).with_filter(filter).boxed()
        }
        LogFormat::Json => layer.json().map_event_format(WithIds).with_filter(filter).boxed(),
    })
}

/// Objects as another format writes them, with the ids of the trace and the span that they belong to at their end. They
/// are there also where the log does not show spans.
struct WithIds<F>(F);

impl<S, N, F> FormatEvent<S, N> for WithIds<F>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(&self, context: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let current = Context::current();
        let span = current.span();
        let ids = span.span_context();
        if !ids.is_valid() {
            return self.0.format_event(context, writer, event);
        }
        let mut object = String::new();
        self.0.format_event(context, Writer::new(&mut object), event)?;
        match object.trim_end().strip_suffix('}') {
            Some(open) => {
                writeln!(writer, "{open},\"trace_id\":\"{}\",\"span_id\":\"{}\"}}", ids.trace_id(), ids.span_id())
            }
            None => writer.write_str(&object),
        }
    }
}
