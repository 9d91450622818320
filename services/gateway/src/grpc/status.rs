//! A problem as a gRPC client is told it: a status, with the details that clients' libraries can read. Pure.
//!
//! `google.rpc.ErrorInfo` names the kind of problem, and how far the read model was where it was asked;
//! `google.rpc.BadRequest` every wrong field; `google.rpc.RetryInfo` when to try again.

use std::{collections::HashMap, time::Duration};

use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

use crate::problem::{FieldError, Problem};

/// The domain of the reasons in error details (`ErrorInfo`).
const DOMAIN: &str = "kairo";

/// Returns the gRPC code for the HTTP status of a problem.
fn grpc_code(status: u16) -> Code {
    match status {
        400 | 415 => Code::InvalidArgument,
        401 => Code::Unauthenticated,
        403 => Code::PermissionDenied,
        404 => Code::NotFound,
        405 => Code::Unimplemented,
        409 | 412 => Code::FailedPrecondition,
        // As for a message that is not even read because of its size, and for a revision that was compacted away.
        410 | 413 => Code::OutOfRange,
        429 => Code::ResourceExhausted,
        503 => Code::Unavailable,
        _ => Code::Internal,
    }
}

pub fn to_status(problem: &Problem) -> Status {
    let mut details = ErrorDetails::new();
    let numbers = [("position", problem.position), ("wanted", problem.wanted)];
    let known = numbers.into_iter().filter_map(|(name, number)| Some((name.to_owned(), number?.to_string())));
    details.set_error_info(problem.kind, DOMAIN, known.collect::<HashMap<_, _>>());
    for error in &problem.errors {
        details.add_bad_request_violation(&error.field, describe_expected(error));
    }
    if let Some(seconds) = problem.retry_after() {
        details.set_retry_info(Some(Duration::from_secs(seconds.get().into())));
    }
    Status::with_error_details(grpc_code(problem.status.as_u16()), status_message(problem), details)
}

/// Also clients that do not read details are told what is wrong.
fn status_message(problem: &Problem) -> String {
    let errors = problem.errors.iter().map(|error| format!("; {}: {}", error.field, describe_expected(error)));
    format!("{}{}", problem.detail, errors.collect::<String>())
}

fn describe_expected(FieldError { expected, found, .. }: &FieldError) -> String {
    match found {
        Some(found) => format!("expected {expected}, found {found}"),
        None => format!("expected {expected}"),
    }
}

#[cfg(test)]
mod tests {
    use kairo_core::{
        bus::congestion::{Congestion, InputQueue},
        ids::Name,
    };

    use super::*;

    #[test]
    fn every_wrong_field_is_named_in_the_details_and_in_the_words() {
        let error = |field: &str, found: Option<&str>| FieldError {
            field: field.to_owned(),
            expected: "1 to 5".to_owned(),
            found: found.map(str::to_owned),
        };
        let status = to_status(&Problem::invalid_fields(vec![error("user", None), error("limit", Some("7"))]));
        assert_eq!(status.code(), Code::InvalidArgument);
        let words = "correct these fields: user, limit; user: expected 1 to 5; limit: expected 1 to 5, found 7";
        assert_eq!(status.message(), words);
        let details = status.get_error_details();
        let violations = &details.bad_request().unwrap().field_violations;
        let told: Vec<_> = violations.iter().map(|wrong| (wrong.field.as_str(), wrong.description.as_str())).collect();
        assert_eq!(told, [("user", "expected 1 to 5"), ("limit", "expected 1 to 5, found 7")]);
        assert_eq!(details.error_info().unwrap().reason, "urn:kairo:problem:invalid");
        assert!(details.retry_info().is_none());
    }

    #[test]
    fn whoever_is_too_early_is_told_how_far_it_is() {
        let status = to_status(&Problem::read_model_behind(5, 7));
        assert_eq!(status.code(), Code::Unavailable);
        let details = status.get_error_details();
        let info = details.error_info().unwrap();
        assert_eq!((info.metadata["position"].as_str(), info.metadata["wanted"].as_str()), ("5", "7"));
        assert_eq!(details.retry_info().unwrap().retry_delay, Some(Duration::from_secs(1)));
    }

    #[test]
    fn every_kind_of_problem_has_its_code() {
        let queue = InputQueue::for_agent(&Name::parse("bob").unwrap());
        let codes = [
            (Problem::malformed_request("x"), Code::InvalidArgument),
            (Problem::no_valid_key(), Code::Unauthenticated),
            (Problem::exceeds_key_limits("agent", "bob".to_owned(), None), Code::PermissionDenied),
            (Problem::not_found("x"), Code::NotFound),
            (Problem::method_not_allowed(), Code::Unimplemented),
            (Problem::conflict("x"), Code::FailedPrecondition),
            (Problem::too_large("x"), Code::OutOfRange),
            (Problem::too_many_requests(Duration::from_millis(1_500)), Code::ResourceExhausted),
            (Problem::agent_congested(&queue, Congestion { pending: 2, limit: 1 }), Code::ResourceExhausted),
            (Problem::unavailable("x"), Code::Unavailable),
            (Problem::internal(&std::fmt::Error), Code::Internal),
        ];
        for (problem, code) in codes {
            assert_eq!(to_status(&problem).code(), code, "{}", problem.kind);
        }
        let later = to_status(&Problem::too_many_requests(Duration::from_millis(1_500)));
        let details = later.get_error_details();
        assert_eq!(details.retry_info().unwrap().retry_delay, Some(Duration::from_secs(2)));
    }
}
