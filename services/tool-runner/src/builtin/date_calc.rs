//! `tools.date_calc`: dates, ranges and arithmetic, so that models need not count days.
//!
//! Pure: the base is the action's recorded time, so calling again gives the same answer.

#[cfg(test)]
mod tests;

use std::time::Duration;

use futures::future::BoxFuture;
use jiff::civil::Date;
use jiff::{Timestamp, Zoned};
use kairo_core::dates::calendar::{self, CalendarError, DateExtent};
use kairo_core::dates::grammar::{self, CalendarUnit, DateQuery, DateShift};
use kairo_core::dates::{self, DateError, FIND_FORMS, SHIFT_FORMS, bounds};
use serde::Deserialize;
use serde_json::{Value, json};

use super::now::rfc3339;
use super::{parse_args, time_zone};
use crate::tool::{CallContext, CallResult, Executor, Tool, ToolError, ToolSpec};

/// The tool's name.
pub const NAME: &str = "tools.date_calc";

/// The tool, with the time zone that calls without one get.
#[derive(Debug)]
pub struct DateCalc {
    spec: ToolSpec,
    default_zone: String,
}

impl DateCalc {
    /// `default_zone` is the IANA name of the configured time zone.
    pub fn new(default_zone: &str, timeout: Duration) -> Self {
        Self {
            spec: ToolSpec {
                name: NAME.to_owned(),
                description: format!(
                    "Calculates dates and ranges. Starts at `from`, applies `add`, then `subtract`, then `find`, seen from there. \
                     Returns start and end (RFC 3339, end exclusive), date and last_date (first and last day), weekday of date and a description. \
                     Weeks begin on Monday; \"next friday\" is the first Friday after the base date. \
                     add and subtract understand {SHIFT_FORMS}. find understands: {FIND_FORMS}."
                ),
                schema: schema(default_zone),
                idempotent: true,
                timeout,
                executor: Executor::ToolRunner,
                needs_approval: false,
                needs_approval_with: Vec::new(),
                acts_outside: false,
                definition: None,
            },
            default_zone: default_zone.to_owned(),
        }
    }
}

impl Tool for DateCalc {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call(&self, args: Value, ctx: CallContext) -> BoxFuture<'_, CallResult> {
        let result = parse_args(args).and_then(|args| calculate(&args, ctx.now, &self.default_zone));
        Box::pin(std::future::ready(result))
    }
}

fn schema(default_zone: &str) -> Value {
    let text =
        |description: &str| json!({"type": "string", "minLength": 1, "maxLength": 200, "description": description});
    json!({
        "type": "object",
        "properties": {
            "from": {
                "description": "Base: RFC 3339, YYYY-MM-DD, YYYY-MM-DD HH:MM, whatever find understands, or a result of tools.now or tools.date_calc. Default now",
                "type": ["string", "object"],
                "maxLength": 200,
            },
            "add": text("Such as 3 days"),
            "subtract": text("Such as 2 months and 1 day"),
            "find": text("Such as next friday or end of month"),
            "format": {
                "enum": ["date", "datetime", "week_range", "month_range"],
                "description": "Turns the answer into its first day, its first moment, or the week or month around its first day. Default as found",
            },
            "time_zone": text(&format!("IANA time zone, default {default_zone}")),
        },
        "additionalProperties": false,
    })
}

#[derive(Debug, Default, Deserialize)]
struct DateCalcArgs {
    from: Option<DateCalcBase>,
    add: Option<String>,
    subtract: Option<String>,
    find: Option<String>,
    format: Option<DateCalcFormat>,
    time_zone: Option<String>,
}

/// Chains fill `from` with what an earlier step returned, which may be a whole result.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum DateCalcBase {
    Text(String),
    Result {
        #[serde(alias = "start")]
        now: Option<String>,
        date: Option<String>,
        time_zone: Option<String>,
    },
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum DateCalcFormat {
    Date,
    Datetime,
    WeekRange,
    MonthRange,
}

fn calculate(args: &DateCalcArgs, now: Timestamp, default_zone: &str) -> CallResult {
    let mut base = parse_base(args, now, default_zone)?;
    let add = args.add.as_deref().map(|text| parse_shift("add", text));
    let subtract = args.subtract.as_deref().map(|text| parse_shift("subtract", text));
    let mut extent = match &args.from {
        None => DateExtent::Moment(base.clone()),
        Some(_) => DateExtent::day_of(base.clone()),
    };
    for shift in [add, subtract.map(|shift| shift.map(DateShift::negate))] {
        if let Some(shift) = shift.transpose()? {
            extent = calendar::shift_to_extent(&base, shift).map_err(to_tool_error)?;
            base = extent.moment().clone();
        }
    }
    if let Some(text) = &args.find {
        extent = calendar::resolve(&parse_find("find", text)?, &base).map_err(to_tool_error)?;
    }
    if let Some(format) = args.format {
        extent = apply_format(&extent, format).map_err(to_tool_error)?;
    }
    describe_extent(&extent).map_err(to_tool_error)
}

/// Returns the start of the calculation, in the time zone it is done in: the one asked for, else the one that came with
/// `from`, else the default.
fn parse_base(args: &DateCalcArgs, now: Timestamp, default_zone: &str) -> Result<Zoned, ToolError> {
    let (text, own_zone) = match &args.from {
        None => (None, None),
        Some(DateCalcBase::Text(text)) => (Some(text.as_str()), None),
        Some(DateCalcBase::Result { now, date, time_zone }) => {
            let text = now.as_deref().or(date.as_deref()).ok_or_else(|| {
                ToolError::invalid_arguments(
                    "/from: an object must hold now, start or date, as tools.now and tools.date_calc return",
                )
            })?;
            (Some(text), time_zone.as_deref())
        }
    };
    let asked = args.time_zone.as_deref().or(own_zone);
    let zone = time_zone(asked.unwrap_or(default_zone))?;
    let Some(text) = text else {
        return Ok(now.to_zoned(zone));
    };
    if let Ok(zoned) = text.parse::<Zoned>() {
        return Ok(match asked {
            Some(_) => zoned.with_time_zone(zone),
            None => zoned,
        });
    }
    dates::parse_moment(text, &zone).map_or_else(
        || {
            let find = parse_find("from", text)?;
            let extent = calendar::resolve(&find, &now.to_zoned(zone)).map_err(to_tool_error)?;
            Ok(extent.moment().clone())
        },
        Ok,
    )
}

fn parse_shift(field: &str, text: &str) -> Result<DateShift, ToolError> {
    grammar::parse_shift(text).ok_or_else(|| not_understood(field, text, SHIFT_FORMS))
}

fn parse_find(field: &str, text: &str) -> Result<DateQuery, ToolError> {
    grammar::parse_query(text).ok_or_else(|| not_understood(field, text, FIND_FORMS))
}

fn not_understood(field: &str, text: &str, forms: &str) -> ToolError {
    ToolError::invalid_arguments(format!("/{field}: {text:?} is not understood; understood are {forms}"))
}

fn to_tool_error(error: CalendarError) -> ToolError {
    ToolError::invalid_arguments(error.to_string())
}

/// Start and end of what other tools are given as a date: an ISO 8601 date or time, or what `find` understands; the same
/// twice for a moment. `now` says from when to look and in which time zone.
pub(super) fn parse_range(field: &str, text: &str, now: &Zoned) -> Result<(Zoned, Zoned), ToolError> {
    dates::parse_range(text, now).map_err(|error| match error {
        DateError::NotUnderstood(text) => not_understood(field, &text, FIND_FORMS),
        DateError::Calendar(error) => to_tool_error(error),
    })
}

fn apply_format(extent: &DateExtent, format: DateCalcFormat) -> Result<DateExtent, CalendarError> {
    let moment = extent.moment();
    let unit = match format {
        DateCalcFormat::Date => return Ok(DateExtent::day_of(moment.clone())),
        DateCalcFormat::Datetime => return Ok(DateExtent::Moment(moment.clone())),
        DateCalcFormat::WeekRange => CalendarUnit::Week,
        DateCalcFormat::MonthRange => CalendarUnit::Month,
    };
    let (first, last) = calendar::unit_bounds(moment.date(), unit, 0)?;
    calendar::whole_days(first, last, moment)
}

fn describe_extent(extent: &DateExtent) -> Result<Value, CalendarError> {
    let (start, end, last) = bounds(extent)?;
    let date = start.date();
    Ok(json!({
        "start": rfc3339(&start),
        "end": rfc3339(&end),
        "date": date.to_string(),
        "last_date": last.to_string(),
        "weekday": date.strftime("%A").to_string(),
        "time_zone": start.time_zone().iana_name(),
        "description": format_extent(extent, date, last),
    }))
}

fn format_extent(extent: &DateExtent, first: Date, last: Date) -> String {
    let day = |date: Date| date.strftime("%A, %-d %B %Y").to_string();
    let time = |moment: &Zoned| moment.strftime("%A, %-d %B %Y at %H:%M").to_string();
    match extent {
        DateExtent::Moment(moment) => time(moment),
        DateExtent::Window(start, end) => format!("{} until {}", time(start), time(end)),
        DateExtent::Days { .. } if first == last => day(first),
        DateExtent::Days { .. } => format!("{} to {}", day(first), day(last)),
    }
}
