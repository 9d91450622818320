//! Authorities and certificates, with which servers prove who they are.

use std::{
    fs,
    path::{Path, PathBuf},
};

use kairo_local::TlsFiles;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

use crate::chaos::Outcome;

/// Somebody who vouches for servers.
pub struct Authority {
    certificate: PathBuf,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    /// A new one, whose certificate is written to this file.
    pub fn create(certificate: impl Into<PathBuf>) -> Outcome<Self> {
        let (certificate, key) = (certificate.into(), KeyPair::generate()?);
        let mut params = CertificateParams::new(Vec::new())?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        fs::write(&certificate, params.self_signed(&key)?.pem())?;
        Ok(Self { certificate, issuer: Issuer::new(params, key) })
    }

    /// The certificate and key of a server on 127.0.0.1, written to this folder.
    pub fn server(&self, folder: &Path) -> Outcome<TlsFiles> {
        let key = KeyPair::generate()?;
        let certificate = CertificateParams::new(vec!["127.0.0.1".to_owned()])?.signed_by(&key, &self.issuer)?;
        let files = TlsFiles {
            certificate: folder.join("server.pem"),
            key: folder.join("server.key"),
            authority: self.certificate.clone(),
        };
        fs::write(&files.certificate, certificate.pem())?;
        fs::write(&files.key, key.serialize_pem())?;
        Ok(files)
    }
}
