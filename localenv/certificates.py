"""Keys and certificates of the local environment, in folders of their owners.

One authority signs the API server's certificate and every client's; a client's common name is its Kubernetes
user, its organizations are its groups (trustme knows one organization at most). A separate key signs service
account tokens. The pods' mutating webhook has an authority of its own. Leaf certificates carry both key
identifiers, so strict X.509 checks (Python's default from 3.13 on) accept them.
"""

from __future__ import annotations

import base64
import datetime
import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

#: A local cluster lives for hours; a month keeps a forgotten one usable.
_VALID = datetime.timedelta(days=30)
#: Certificates start in the past, so that a clock set back a little does no harm.
_SKEW = datetime.timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class Certificate:
    """A certificate and its key, PEM."""

    certificate: bytes
    key: bytes


class CertificateAuthority:
    """The authority of one cluster, with its files in `folder`."""

    def __init__(self, folder: Path, name: str = "nodeless-local") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o700)
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._certificate = _sign(_name(name), self._key, _name(name), self._key)
        self.certificate_file = folder / "ca.crt"
        self.key_file = folder / "ca.key"
        self.certificate_file.write_bytes(self.certificate)
        _write_secret(self.key_file, _private_pem(self._key))

    @property
    def certificate(self) -> bytes:
        """The authority's own certificate, PEM."""
        return self._certificate.public_bytes(serialization.Encoding.PEM)

    def server(self, common_name: str, names: Iterable[str]) -> Certificate:
        """A server's certificate.

        Args:
            common_name: For readers only; clients look at `names`.
            names: Host names and IP addresses it answers to.
        """
        alternatives = x509.SubjectAlternativeName([_general_name(name) for name in names])
        return self._issue(_name(common_name), ExtendedKeyUsageOID.SERVER_AUTH, alternatives)

    def client(self, user: str, groups: Iterable[str] = ()) -> Certificate:
        """A client's certificate, by which the API server knows `user` in `groups`."""
        return self._issue(_name(user, groups), ExtendedKeyUsageOID.CLIENT_AUTH)

    def write(self, name: str, issued: Certificate) -> tuple[Path, Path]:
        """Write `<name>.crt` and `<name>.key` beside the authority; return both paths."""
        certificate, key = self._folder / f"{name}.crt", self._folder / f"{name}.key"
        certificate.write_bytes(issued.certificate)
        _write_secret(key, issued.key)
        return certificate, key

    def write_service_account_key(self) -> tuple[Path, Path]:
        """Make the key that signs service account tokens; return the public and the private file."""
        key = ec.generate_private_key(ec.SECP256R1())
        public, private = self._folder / "sa.pub", self._folder / "sa.key"
        public.write_bytes(
            key.public_key().public_bytes(
                serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
            )
        )
        _write_secret(private, _private_pem(key))
        return public, private

    def _issue(
        self, subject: x509.Name, usage: x509.ObjectIdentifier, *more: x509.ExtensionType
    ) -> Certificate:
        key = ec.generate_private_key(ec.SECP256R1())
        extensions = (x509.ExtendedKeyUsage([usage]), _AUTHORITY(self._key.public_key()), *more)
        signed = _sign(subject, key, self._certificate.subject, self._key, extensions)
        return Certificate(signed.public_bytes(serialization.Encoding.PEM), _private_pem(key))


def same_certificates(base64_pem: str, pem: bytes) -> bool:
    """Whether base64 of a PEM (as user data carries it) holds the certificates of a PEM text.

    Raises:
        ValueError: The first is no base64 of a PEM.
    """
    given = base64.b64decode(base64_pem, validate=True)
    return {*x509.load_pem_x509_certificates(given)} == {*x509.load_pem_x509_certificates(pem)}


_AUTHORITY = x509.AuthorityKeyIdentifier.from_issuer_public_key


def _sign(
    subject: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    issuer: x509.Name,
    issuer_key: ec.EllipticCurvePrivateKey,
    extensions: Iterable[x509.ExtensionType] = (),
) -> x509.Certificate:
    """A certificate of a key; of an authority where key and issuer's key are the same."""
    signs_others = key is issuer_key
    now = datetime.datetime.now(datetime.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SKEW)
        .not_valid_after(now + _VALID)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.BasicConstraints(ca=signs_others, path_length=None), critical=True)
        .add_extension(_key_usage(signs_others), critical=True)
    )
    for each in extensions:
        builder = builder.add_extension(each, critical=False)
    return builder.sign(issuer_key, hashes.SHA256())


def _name(common_name: str, organizations: Iterable[str] = ()) -> x509.Name:
    attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, one) for one in organizations]
    return x509.Name([*attributes, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _key_usage(signs_others: bool) -> x509.KeyUsage:
    unused = ("content_commitment", "key_encipherment", "data_encipherment", "key_agreement")
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=signs_others,
        crl_sign=signs_others,
        **dict.fromkeys((*unused, "encipher_only", "decipher_only"), False),
    )


def _private_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    # "EC PRIVATE KEY": the form that kube-controller-manager accepts for service account keys.
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )


def _write_secret(file: Path, content: bytes) -> None:
    file.touch(mode=0o600)
    file.write_bytes(content)
