"""Certificates of the webhook server: a certificate authority of its own, made anew at each renewal.

ECDSA P-256, valid for seven days, renewed when less than a day remains (Karpenter's
figures). The bundle that clients trust keeps the authority before this one until it
expires: between two replicas there is then no moment at which a client trusts only what
a server no longer, or not yet, shows.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LIFETIME = timedelta(days=7)
RENEW_BEFORE = timedelta(days=1)
#: Clocks differ: a certificate is valid from a little before it was made.
_BACKDATE = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class Material:
    """PEM texts: private key (PKCS#8), certificate, and the bundle of authorities, the newest first."""

    key: bytes
    certificate: bytes
    bundle: bytes


def service_names(service: str, namespace: str, domain: str = "cluster.local") -> list[str]:
    """The names under which a Service is reached."""
    base = f"{service}.{namespace}"
    return [f"{base}.svc", service, base, f"{base}.svc.{domain}"]


def make(names: list[str], now: float, former: bytes = b"") -> Material:
    """A new authority and a certificate of it for `names`; `former` is the bundle used so far."""
    moment = datetime.fromtimestamp(now, UTC)
    authority_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    authority = _authority(authority_key, moment)
    certificate = _certificate(names, key, authority, authority_key, moment)
    kept = [known for known in _parse(former) if known.not_valid_after_utc > moment][:1]
    return Material(
        key=key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ),
        certificate=_pem(certificate),
        bundle=b"".join(_pem(one) for one in (authority, *kept)),
    )


def usable(material: Material, names: list[str], now: float) -> bool:
    """Whether key, certificate and bundle belong together, are for `names`, and last for another day."""
    moment = datetime.fromtimestamp(now, UTC)
    try:
        certificate, authority = _parse(material.certificate)[0], _parse(material.bundle)[0]
        key = serialization.load_pem_private_key(material.key, None)
        certificate.verify_directly_issued_by(authority)
        alternatives = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (
        ValueError,
        TypeError,
        IndexError,
        InvalidSignature,
        UnsupportedAlgorithm,
        x509.ExtensionNotFound,
    ):
        return False
    return (
        key.public_key() == certificate.public_key()
        and set(names) <= set(alternatives.get_values_for_type(x509.DNSName))
        and certificate.not_valid_before_utc <= moment
        and min(certificate.not_valid_after_utc, authority.not_valid_after_utc) - moment > RENEW_BEFORE
    )


def _authority(key: ec.EllipticCurvePrivateKey, moment: datetime) -> x509.Certificate:
    serial = x509.random_serial_number()
    # Two authorities may be trusted at once: their names differ, so that neither is taken for the other.
    name = _name(f"nodeless webhook {serial:x}"[:64])
    return (
        _builder(name, name, key, moment, serial)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )


def _certificate(
    names: list[str],
    key: ec.EllipticCurvePrivateKey,
    authority: x509.Certificate,
    authority_key: ec.EllipticCurvePrivateKey,
    moment: datetime,
) -> x509.Certificate:
    alternatives = x509.SubjectAlternativeName([x509.DNSName(name) for name in names])
    identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key())
    return (
        _builder(_name(names[0][:64]), authority.subject, key, moment, x509.random_serial_number())
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(alternatives, critical=False)
        .add_extension(identifier, critical=False)
        .sign(authority_key, hashes.SHA256())
    )


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, moment: datetime, serial: int
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(serial)
        .not_valid_before(moment - _BACKDATE)
        .not_valid_after(moment + LIFETIME)
    )


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs,
        key_cert_sign=signs,
        crl_sign=signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _parse(pem: bytes) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(pem)
    except ValueError:
        return []


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
