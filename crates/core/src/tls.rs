//! The choice of the library that does the cryptography of TLS.

use async_nats::rustls::crypto::ring;

/// Has ring do it, wherever a connection does not say itself: several libraries bring one, and the process has none of its
/// own before somebody says which.
pub fn use_ring() {
    // Whoever was here before installed the same.
    let _ = ring::default_provider().install_default();
}
