//! Authorities and certificates of tests, with which servers prove who they are.

use std::{fs, path::Path};

use kairo_local::TlsFiles;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

/// Writes an authority's certificate, and returns what signs for it.
pub fn authority(path: &Path) -> Issuer<'static, KeyPair> {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    fs::write(path, params.self_signed(&key).unwrap().pem()).unwrap();
    Issuer::new(params, key)
}

/// The certificate and key of a server on 127.0.0.1, signed by this authority.
pub fn of_server(folder: &Path, authority: &Issuer<'static, KeyPair>) -> TlsFiles {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    let files = TlsFiles { certificate: folder.join("server.pem"), key: folder.join("server.key") };
    fs::write(&files.certificate, params.signed_by(&key, authority).unwrap().pem()).unwrap();
    fs::write(&files.key, key.serialize_pem()).unwrap();
    files
}
