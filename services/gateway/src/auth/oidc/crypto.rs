//! Verifies the signatures of tokens with ring, which the project's other cryptography uses too. Nothing is signed
//! here, and nothing is verified with a secret.

use jsonwebtoken::{
    Algorithm, DecodingKey, DecodingKeyKind, EncodingKey,
    crypto::{CryptoProvider, JwkUtils, JwtSigner, JwtVerifier},
    errors::{ErrorKind, Result, new_error},
};
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_2048_8192_SHA384,
    RSA_PKCS1_2048_8192_SHA512, RSA_PSS_2048_8192_SHA256, RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512,
    RsaParameters, RsaPublicKeyComponents, UnparsedPublicKey, VerificationAlgorithm,
};
use signature::{Error, Verifier};

static RING: CryptoProvider = CryptoProvider {
    signer_factory: refuse_signing,
    verifier_factory: build_verifier,
    jwk_utils: JwkUtils::new_unimplemented(),
};

/// From here on tokens can be checked.
pub fn install_provider() {
    // Whoever was here before installed the same.
    _ = RING.install_default();
}

fn refuse_signing(_: &Algorithm, _: &EncodingKey) -> Result<Box<dyn JwtSigner>> {
    Err(new_error(ErrorKind::InvalidAlgorithm))
}

fn build_verifier(algorithm: &Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>> {
    let check = RingAlgorithm::for_jwt(*algorithm).filter(|_| key.family() == algorithm.family());
    let check = check.ok_or_else(|| new_error(ErrorKind::InvalidAlgorithm))?;
    Ok(Box::new(SignatureVerifier { algorithm: *algorithm, check, key: key.clone() }))
}

/// The ring algorithm that verifies the signatures of a JWT algorithm.
enum RingAlgorithm {
    Rsa(&'static RsaParameters),
    Point(&'static dyn VerificationAlgorithm),
}

impl RingAlgorithm {
    /// None for those with a secret.
    fn for_jwt(algorithm: Algorithm) -> Option<Self> {
        Some(match algorithm {
            Algorithm::RS256 => Self::Rsa(&RSA_PKCS1_2048_8192_SHA256),
            Algorithm::RS384 => Self::Rsa(&RSA_PKCS1_2048_8192_SHA384),
            Algorithm::RS512 => Self::Rsa(&RSA_PKCS1_2048_8192_SHA512),
            Algorithm::PS256 => Self::Rsa(&RSA_PSS_2048_8192_SHA256),
            Algorithm::PS384 => Self::Rsa(&RSA_PSS_2048_8192_SHA384),
            Algorithm::PS512 => Self::Rsa(&RSA_PSS_2048_8192_SHA512),
            Algorithm::ES256 => Self::Point(&ECDSA_P256_SHA256_FIXED),
            Algorithm::ES384 => Self::Point(&ECDSA_P384_SHA384_FIXED),
            Algorithm::EdDSA => Self::Point(&ED25519),
            Algorithm::HS256 | Algorithm::HS384 | Algorithm::HS512 => return None,
        })
    }
}

struct SignatureVerifier {
    algorithm: Algorithm,
    check: RingAlgorithm,
    key: DecodingKey,
}

impl Verifier<Vec<u8>> for SignatureVerifier {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> std::result::Result<(), Error> {
        let checked = match (&self.check, self.key.kind()) {
            (RingAlgorithm::Rsa(parameters), DecodingKeyKind::RsaModulusExponent { n, e }) => {
                RsaPublicKeyComponents { n, e }.verify(parameters, message, signature)
            }
            (RingAlgorithm::Point(algorithm), DecodingKeyKind::SecretOrDer(point)) => {
                UnparsedPublicKey::new(*algorithm, point).verify(message, signature)
            }
            (RingAlgorithm::Rsa(_), DecodingKeyKind::SecretOrDer(_))
            | (RingAlgorithm::Point(_), DecodingKeyKind::RsaModulusExponent { .. }) => return Err(Error::new()),
        };
        checked.map_err(|_| Error::new())
    }
}

impl JwtVerifier for SignatureVerifier {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

#[cfg(test)]
mod tests {
    use jsonwebtoken::crypto::verify;

    use super::*;

    // Made with OpenSSL: the modulus of a key, and what it signed of "kairo"; the key itself is gone.
    const MODULUS: &str = concat!(
        "xEYZfivVjQWg2y7TBqxw1va4mDBGoENfMaTMBhsYEOWQa3o_4JHgRHchA56geYCDgzd65AkPohxSQSbu72UsCz76yFCMV65C-McF",
        "zIWf-jpU7c8Y9xv5IAgzwLMwnHE_wxgyuXtEXSWSlVxFpbJzDos56NBZVJRE25ZyprMUkeIdIcpSv-GFtoE9spyGSdK0L8ESalji",
        "SwfXSX8CXBH3VcQz1RB2QUedbv9JPKYY-jlDMOpJ2ryaF28MilgNM1-kZydRYcdZ3jsZAJOj5uDg2otYF2BkjigqwlMgZVvfnY5i",
        "ZnzQCqYFBXUUrpv6Q895urxTzR2S_EpGGgcThQkJxw",
    );
    const RS256: &str = concat!(
        "fI5njGO5E9A1kPnU7RtxuQ79_Av0d34gjYPtqXQnWXv1HFD2RD1wc50HHFWX4XKX9vgmOEzBgYloBZce_KKcLzhrNR1LM7qiC4Fm",
        "SfU6Spcx1Wnd4VyaY6op9e9L38kpDrHf4a30i-fVgYNF8S0NAWmJfLFh9flcnS89JM3y9s25V2UMjGy5jVDxH_5ZCYc8AmK2Df0D",
        "eUHlU7Co_6LAP_1vtT4D46WO3a3sqsT7yLoGbHotdFvpC0mWi5Ax0z5Oz68EsHCt0ag-Hs0jL7raRBldLex3UwNE20mTrI6EsJ-p",
        "fsc1ofylShcd_AQMn8MX5NiA5MgdMkq6b0ILQBIITg",
    );
    const PS256: &str = concat!(
        "aPNmTPBeKtWA3fqNVhix7_Hy-DJigCNTgj3GnA8dlEt1z4-8X8S_QR1tLcS15aiSgNnT0I8kUPtxywl3hbvWjTmaInd7H6RfTbU4",
        "i2T184rmFTAUkmFkPfa_w8cDN7idvfHD7PNOPvlCb3S786mwcoVPXb_TT6GnILIttMv2UZBPfhDJmI_7EzTpnaAxAMHwUOssRb-y",
        "2wUvVtBySm2dZx7VnCohqGpGTomYKiu7Sa9yAcZXW4KkHX0Aq6UxEYcv_ASq8Hf_s8vzhrYtnmoi1rAekwhcLYLtJMJL7p1Bvk0c",
        "9w6F2q8tC51m_UlB7BUdmhaTvVJJLcIYVoaotVCdvA",
    );

    #[test]
    fn rsa_signatures_are_checked_as_their_algorithm_says_and_no_secret_is_a_key() {
        install_provider();
        let key = DecodingKey::from_rsa_components(MODULUS, "AQAB").unwrap();
        let good = |signature: &str, said: &[u8], algorithm| verify(signature, said, &key, algorithm).unwrap_or(false);
        assert!(good(RS256, b"kairo", Algorithm::RS256) && good(PS256, b"kairo", Algorithm::PS256));
        assert!(!good(RS256, b"kairo", Algorithm::PS256) && !good(PS256, b"kairo", Algorithm::RS256));
        assert!(!good(RS256, b"Kairo", Algorithm::RS256) && !good("", b"kairo", Algorithm::RS256));
        for algorithm in [Algorithm::RS384, Algorithm::ES256, Algorithm::EdDSA, Algorithm::HS256] {
            assert!(!good(RS256, b"kairo", algorithm), "{algorithm:?}");
        }
        let secret = DecodingKey::from_secret(b"secret");
        assert!(verify("", b"kairo", &secret, Algorithm::HS256).is_err());
    }
}
