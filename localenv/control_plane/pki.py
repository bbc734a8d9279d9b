"""Keys and certificates of a local control plane, in one folder.

One authority signs the API server's certificate and every client's; a client's
common name is its Kubernetes user, its organizations are its groups. A separate key
signs service account tokens. Leaf certificates carry both key identifiers, so strict
X.509 checks (Python's default from 3.13 on) accept them. Who gets which identity is
decided in `control_plane`.
"""

from __future__ import annotations

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

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o700)
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._certificate = _self_signed(self._key, "nodeless-local")
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
        return self._sign(_name(common_name, ()), ExtendedKeyUsageOID.SERVER_AUTH, alternatives)

    def client(self, user: str, groups: Iterable[str] = ()) -> Certificate:
        """A client's certificate, by which the API server knows `user` in `groups`."""
        return self._sign(_name(user, groups), ExtendedKeyUsageOID.CLIENT_AUTH, None)

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

    def _sign(
        self,
        subject: x509.Name,
        usage: x509.ObjectIdentifier,
        alternatives: x509.SubjectAlternativeName | None,
    ) -> Certificate:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = (
            _builder(subject, self._certificate.subject, key.public_key())
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(digital_signature=True), critical=True)
            .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False
            )
        )
        if alternatives is not None:
            builder = builder.add_extension(alternatives, critical=False)
        signed = builder.sign(self._key, hashes.SHA256())
        return Certificate(signed.public_bytes(serialization.Encoding.PEM), _private_pem(key))


def _self_signed(key: ec.EllipticCurvePrivateKey, common_name: str) -> x509.Certificate:
    name = _name(common_name, ())
    return (
        _builder(name, name, key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(_key_usage(digital_signature=True, signs_certificates=True), critical=True)
        .sign(key, hashes.SHA256())
    )


def _builder(
    subject: x509.Name, issuer: x509.Name, public_key: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SKEW)
        .not_valid_after(now + _VALID)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False)
    )


def _name(common_name: str, organizations: Iterable[str]) -> x509.Name:
    attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, one) for one in organizations]
    return x509.Name([*attributes, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _key_usage(*, digital_signature: bool, signs_certificates: bool = False) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=digital_signature,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
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
