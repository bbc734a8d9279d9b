from __future__ import annotations

import ssl
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID
from cryptography.x509.verification import PolicyBuilder, Store

from localenv.certificates import CertificateAuthority


@pytest.fixture
def authority(tmp_path: Path) -> CertificateAuthority:
    return CertificateAuthority(tmp_path / "pki")


def test_a_client_certificate_names_its_user_and_groups(authority: CertificateAuthority) -> None:
    issued = authority.client("system:node:ip-10-0-1-2", ["system:nodes", "others"])

    subject = x509.load_pem_x509_certificate(issued.certificate).subject

    assert [one.value for one in subject.get_attributes_for_oid(NameOID.COMMON_NAME)] == [
        "system:node:ip-10-0-1-2"
    ]
    assert [one.value for one in subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)] == [
        "system:nodes",
        "others",
    ]


def test_a_server_certificate_passes_strict_verification(authority: CertificateAuthority) -> None:
    issued = x509.load_pem_x509_certificate(authority.server("api", ["localhost", "127.0.0.1"]).certificate)
    root = x509.load_pem_x509_certificate(authority.certificate)

    verifier = PolicyBuilder().store(Store([root])).build_server_verifier(x509.DNSName("localhost"))

    assert verifier.verify(issued, [])[-1] == root


def test_a_server_certificate_is_refused_for_another_name(authority: CertificateAuthority) -> None:
    issued = x509.load_pem_x509_certificate(authority.server("api", ["localhost"]).certificate)
    store = Store([x509.load_pem_x509_certificate(authority.certificate)])

    verifier = PolicyBuilder().store(store).build_server_verifier(x509.DNSName("elsewhere"))

    with pytest.raises(x509.verification.VerificationError):
        verifier.verify(issued, [])


def test_written_certificates_load_and_keys_are_private(authority: CertificateAuthority) -> None:
    certificate, key = authority.write("client", authority.client("someone"))

    ssl.create_default_context().load_cert_chain(certificate, key)
    _, token_key = authority.write_service_account_key()
    for secret in (key, token_key, authority.key_file):
        assert secret.stat().st_mode & 0o077 == 0, secret
