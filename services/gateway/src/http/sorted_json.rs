//! Messages of the contract as answers.

use axum::{
    Json,
    response::{IntoResponse, Response},
};
use serde::{Serialize, Serializer, ser::Error};

/// A message with its fields in the order of their names, which most answers have always had: the same answer is the same
/// bytes, however the contract is put in order.
#[derive(Debug)]
pub struct SortedJson<T>(pub T);

impl<T: Serialize> Serialize for SortedJson<T> {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        serde_json::to_value(&self.0).map_err(S::Error::custom)?.serialize(out)
    }
}

impl<T: Serialize> IntoResponse for SortedJson<T> {
    fn into_response(self) -> Response {
        Json(self).into_response()
    }
}

#[cfg(test)]
mod tests {
    use kairo_proto::v1::{GetStatusResponse, LagRow};

    use super::*;

    #[test]
    fn fields_are_in_the_order_of_their_names() {
        let projection = Some(LagRow { position: 7, lag: 1 });
        let told = serde_json::to_string(&SortedJson(GetStatusResponse { projection, ..Default::default() })).unwrap();
        let expected = r#"{"consumers":[],"dead_letters":0,"drift":[],"epoch":0,"projection":{"lag":1,"position":7},"services":[],"stream":null,"waits":[]}"#;
        assert_eq!(told, expected);
    }
}
