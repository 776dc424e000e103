//! A certificate authority for one control plane.

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose,
};

/// Signs the server's certificate and those of its users.
pub(crate) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

/// A certificate and its key, in PEM.
pub(crate) struct Identity {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name = name("gitspoke tests", None);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![
            KeyUsagePurpose::KeyCertSign,
            KeyUsagePurpose::DigitalSignature,
        ];
        let issuer =
            CertifiedIssuer::self_signed(params, key()).expect("the parameters are complete");
        Self { issuer }
    }

    /// The authority itself, as clients trust it and the controller manager signs with it.
    pub(crate) fn identity(&self) -> Identity {
        Identity {
            certificate: self.issuer.pem(),
            key: self.issuer.key().serialize_pem(),
        }
    }

    /// The API server on loopback.
    pub(crate) fn server(&self) -> Identity {
        let hosts = vec!["127.0.0.1".to_owned(), "localhost".to_owned()];
        let params = CertificateParams::new(hosts).expect("both are valid names");
        self.sign(params, ExtendedKeyUsagePurpose::ServerAuth)
    }

    /// A user as Kubernetes knows one: the common name, with the organization as its group.
    pub(crate) fn user(&self, user: &str, group: &str) -> Identity {
        let mut params = CertificateParams::default();
        params.distinguished_name = name(user, Some(group));
        self.sign(params, ExtendedKeyUsagePurpose::ClientAuth)
    }

    fn sign(&self, mut params: CertificateParams, purpose: ExtendedKeyUsagePurpose) -> Identity {
        params.extended_key_usages = vec![purpose];
        let key = key();
        let certificate = params
            .signed_by(&key, &self.issuer)
            .expect("the parameters are complete");
        Identity {
            certificate: certificate.pem(),
            key: key.serialize_pem(),
        }
    }
}

/// A key pair to sign service account tokens with: (private, public).
pub(crate) fn token_keys() -> (String, String) {
    let pair = key();
    (pair.serialize_pem(), pair.public_key_pem())
}

fn key() -> KeyPair {
    KeyPair::generate().expect("the system has randomness")
}

fn name(common: &str, organization: Option<&str>) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, common);
    if let Some(organization) = organization {
        name.push(DnType::OrganizationName, organization);
    }
    name
}
