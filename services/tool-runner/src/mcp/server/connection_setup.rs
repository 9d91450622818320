//! Reaching a server, whichever era of the protocol it is of.

use std::sync::Arc;

use rmcp::model::ProtocolVersion;
use rmcp::service::{ClientInitializeError, ClientLifecycleMode, ClientServiceExt as _};
use tokio::time::timeout;

use super::super::transport::{self, TransportError};
use super::{ConnectionKeeper, McpClient, McpService, reason};

/// The reason a server could not be connected to.
#[derive(Debug, thiserror::Error)]
enum McpConnectError {
    #[error("it has neither command nor url")]
    Nowhere,
    #[error("{0}")]
    Transport(#[from] TransportError),
    #[error("{}", reason(.0.as_ref()))]
    Handshake(Box<ClientInitializeError>),
}

impl McpConnectError {
    /// Returns true if a program ended, or closed its input, on a request that only the newest protocol knows.
    fn is_end_of_program(&self) -> bool {
        let Self::Handshake(error) = self else { return false };
        matches!(
            error.as_ref(),
            ClientInitializeError::ConnectionClosed(_)
                | ClientInitializeError::TransportError { .. }
                | ClientInitializeError::LegacyFallbackFailed { .. }
        )
    }

    /// Returns true if it answered, but not like a server that knows the newest protocol.
    fn is_unexpected_answer(&self) -> bool {
        let Self::Handshake(error) = self else { return false };
        matches!(
            error.as_ref(),
            ClientInitializeError::ExpectedInitResponse(_)
                | ClientInitializeError::ExpectedInitResult(_)
                | ClientInitializeError::ConflictInitResponseId(..)
                | ClientInitializeError::UncorrelatedErrorResponse { .. }
                | ClientInitializeError::JsonRpcError(_)
        )
    }
}

impl ConnectionKeeper {
    pub(super) async fn connect(&self) -> Result<McpService, String> {
        // Newest first; servers that know nothing of `server/discover` get the old handshake.
        let newest = ClientLifecycleMode::Auto {
            preferred_versions: vec![ProtocolVersion::LATEST],
            legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
        };
        // A program may take long to start; an endpoint that is silent may never answer what it does not know.
        let limit = if self.server.url.is_some() { self.limits.start_timeout / 3 } else { self.limits.start_timeout };
        match timeout(limit, self.connect_with(newest)).await {
            // A program that is started anew is asked as one of the older protocol, once.
            Ok(Err(error)) if self.server.command.is_some() && error.is_end_of_program() => {}
            Ok(Err(error)) if !error.is_unexpected_answer() => return Err(error.to_string()),
            Ok(Ok(running)) => return Ok(running),
            Ok(Err(_)) | Err(_) => {}
        }
        self.connect_with(ClientLifecycleMode::Initialize).await.map_err(|error| error.to_string())
    }

    async fn connect_with(&self, lifecycle: ClientLifecycleMode) -> Result<McpService, McpConnectError> {
        let connected = match (&self.server.command, &self.server.url) {
            (Some(program), _) => {
                let child = transport::spawn_program(&self.server, program, &self.notes)?;
                self.build_client().serve_with_lifecycle(child, lifecycle).await
            }
            (None, Some(url)) => {
                let endpoint = transport::connect_http(
                    &self.server,
                    url,
                    self.limits.parallel,
                    &self.notes,
                    self.sign_in.clone(),
                )?;
                self.build_client().serve_with_lifecycle(endpoint, lifecycle).await
            }
            (None, None) => return Err(McpConnectError::Nowhere),
        };
        connected.map_err(|error| McpConnectError::Handshake(Box::new(error)))
    }

    fn build_client(&self) -> McpClient {
        McpClient::new(Arc::clone(&self.handle.name), self.server.roots.as_slice().into(), self.asking.clone())
    }
}
