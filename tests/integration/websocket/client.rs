//! A client of the gateway's WebSocket that holds every frame it is sent to the document that describes them.

use futures::{SinkExt, StreamExt};
use jsonschema::Validator;
use kairo_core::event_json::EventJson;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::{
    MaybeTlsStream, WebSocketStream, connect_async,
    tungstenite::{Error, Message, client::IntoClientRequest, handshake::client::Request},
};

use crate::{
    asyncapi::document,
    world::{DEADLINE, World},
};

pub struct Client {
    pub socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
    frames: Validator,
    pub hello: Value,
}

/// Returns the request that opens a connection.
pub fn request(world: &World) -> Request {
    world.url("/v1/ws").replace("http://", "ws://").into_client_request().unwrap()
}

/// The HTTP status with which a connection is refused.
pub async fn refusal(request: Request) -> u16 {
    match connect_async(request).await {
        Err(Error::Http(answer)) => answer.status().as_u16(),
        other => panic!("not refused: {other:?}"),
    }
}

impl Client {
    pub async fn connect(world: &World) -> Self {
        let described: Value = serde_saphyr::from_str(&document(world).await).unwrap();
        let frames = described["operations"]["toClient"]["messages"].as_array().unwrap().iter().map(|message| {
            let name = message["$ref"].as_str().unwrap().rsplit('/').next().unwrap().to_owned();
            json!({ "$ref": format!("#/components/messages/{name}/payload") })
        });
        let schema = json!({ "oneOf": frames.collect::<Vec<_>>(), "components": described["components"] });
        let frames = jsonschema::validator_for(&schema).unwrap();
        let (socket, _) = connect_async(request(world)).await.unwrap();
        let mut client = Self { socket, frames, hello: Value::Null };
        client.hello = client.next().await;
        assert_eq!(client.hello["type"], "hello");
        client
    }

    pub async fn send(&mut self, frame: Value) {
        self.socket.send(Message::text(frame.to_string())).await.unwrap();
    }

    /// The next frame, which is one that is described.
    pub async fn next(&mut self) -> Value {
        self.next_or_end().await.expect("the connection ended")
    }

    /// The next frame; none at the end of the connection.
    pub async fn next_or_end(&mut self) -> Option<Value> {
        loop {
            let message = tokio::time::timeout(DEADLINE, self.socket.next()).await.expect("no frame came")?;
            match message.unwrap() {
                Message::Text(text) => {
                    let frame: Value = serde_json::from_str(&text).unwrap();
                    if let Err(error) = self.frames.validate(&frame) {
                        panic!("{error}: {frame}");
                    }
                    return Some(frame);
                }
                Message::Ping(_) | Message::Pong(_) => {}
                Message::Close(_) => return None,
                other => panic!("{other:?}"),
            }
        }
    }

    /// The next frame of this type. Those before it that are of no other type than `passing` are passed over.
    pub async fn expect(&mut self, kind: &str, passing: &[&str]) -> Value {
        loop {
            let frame = self.next().await;
            if frame["type"] == kind {
                return frame;
            }
            assert!(passing.contains(&frame["type"].as_str().unwrap()), "{frame} instead of {kind}");
        }
    }

    /// Sends a frame and returns the answer to it.
    pub async fn ask(&mut self, frame: Value) -> Value {
        self.send(frame).await;
        loop {
            let frame = self.next().await;
            if !["event", "live"].contains(&frame["type"].as_str().unwrap()) {
                return frame;
            }
        }
    }
}

/// The event in a frame.
pub fn event(frame: &Value) -> EventJson {
    serde_json::from_value(frame["event"].clone()).unwrap()
}
