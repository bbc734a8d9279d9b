"""Certificates: the webhook server's own, and comparing a cluster's CA with what an instance was given."""

import base64
import datetime
import ipaddress
import re
import ssl
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_PEM = re.compile(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)
_LIFETIME = datetime.timedelta(days=3650)


def same_certificates(base64_pem: str, pem: str) -> bool:
    """Return whether base64 PEM (as user data carries it) holds the certificates of a PEM text.

    Raises:
        ValueError: if the first is no base64 of a PEM.
    """
    given = _der(base64.b64decode(base64_pem, validate=True).decode())
    if not given:
        raise ValueError("no PEM certificate in it")
    return given == _der(pem)


def _der(pem: str) -> set[bytes]:
    return {ssl.PEM_cert_to_DER_cert(each) for each in _PEM.findall(pem)}


def server_certificate(directory: Path) -> tuple[ssl.SSLContext, bytes]:
    """Make a CA and a certificate for 127.0.0.1; return the server's TLS context and the CA's PEM."""
    authority_key = ec.generate_private_key(ec.SECP256R1())
    key = ec.generate_private_key(ec.SECP256R1())
    now = datetime.datetime.now(datetime.UTC) - datetime.timedelta(minutes=5)
    issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "local-eks-webhooks")])
    authority = (
        x509.CertificateBuilder()
        .subject_name(issuer)
        .issuer_name(issuer)
        .public_key(authority_key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now)
        .not_valid_after(now + _LIFETIME)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(authority_key, hashes.SHA256())
    )
    certificate = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")]))
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now)
        .not_valid_after(now + _LIFETIME)
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False
        )
        .sign(authority_key, hashes.SHA256())
    )
    certificate_file, key_file = directory / "webhook.crt", directory / "webhook.key"
    certificate_file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    key_file.touch(mode=0o600)
    key_file.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate_file, key_file)
    return context, authority.public_bytes(serialization.Encoding.PEM)
