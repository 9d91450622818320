//! Sending the frames of an answer at their pace.

use std::io;
use std::time::Duration;

use axum::body::{Body, Bytes};
use futures::stream;
use tokio_util::sync::CancellationToken;

use crate::tally::OpenRequest;
use crate::wire::response::Frame;

/// Waits, but not once the server is stopping.
pub async fn pause(milliseconds: u64, stopping: &CancellationToken) {
    if milliseconds > 0 {
        let pause = tokio::time::sleep(Duration::from_millis(milliseconds));
        stopping.run_until_cancelled(pause).await;
    }
}

/// The body that sends `frames`, with a pause before each but the first. The request is answered when the last of them
/// is handed over.
///
/// Frames that are to come apart are written one by one also where there is nothing to wait for.
pub fn body_of_frames(
    frames: Vec<Frame>,
    apart: bool,
    chunk_delay_ms: u64,
    stopping: CancellationToken,
    open: OpenRequest,
) -> Body {
    match join_frames(&frames).filter(|_| !apart || frames.len() == 1) {
        // With nothing to wait for, one write says it all.
        Some(whole) if chunk_delay_ms == 0 => {
            open.mark_answered();
            Body::from(whole)
        }
        _ => paced_body(frames, chunk_delay_ms, stopping, open),
    }
}

/// All the data of the frames, unless one of them is not data.
fn join_frames(frames: &[Frame]) -> Option<Bytes> {
    let data = |frame: &Frame| match frame {
        Frame::Data(data) => Some(data.clone()),
        Frame::Wait(_) | Frame::Stall | Frame::Cut => None,
    };
    match frames {
        [only] => data(only),
        several => {
            let parts = several.iter().map(data).collect::<Option<Vec<_>>>()?;
            Some(Bytes::from(parts.concat()))
        }
    }
}

fn paced_body(frames: Vec<Frame>, chunk_delay_ms: u64, stopping: CancellationToken, open: OpenRequest) -> Body {
    let start = (frames.into_iter(), stopping, 0, Some(open));
    Body::from_stream(stream::unfold(start, move |(mut frames, stopping, delay_ms, mut open)| async move {
        let mut frame = frames.next()?;
        while let Frame::Wait(wait_ms) = frame {
            pause(wait_ms, &stopping).await;
            frame = frames.next()?;
        }
        // What was sent so far is flushed only when this has nothing more to give for a moment.
        tokio::task::yield_now().await;
        pause(delay_ms, &stopping).await;
        let sent = match frame {
            Frame::Data(data) => Ok(data),
            // It was waited for.
            Frame::Wait(_) => Ok(Bytes::new()),
            Frame::Stall => {
                stopping.cancelled().await;
                Err(io::Error::other("the model simulator is stopping"))
            }
            Frame::Cut => Err(io::Error::other("the scenario cuts the connection here")),
        };
        if frames.as_slice().is_empty()
            && let Some(open) = open.take()
        {
            open.mark_answered();
        }
        Some((sent, (frames, stopping, chunk_delay_ms, open)))
    }))
}
