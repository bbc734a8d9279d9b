"""Keys, certificates and the bundle that clients trust."""

from __future__ import annotations

from dataclasses import replace

import pytest
from cryptography import x509

from nodeless.webhook import pki

NAMES = pki.service_names("karpenter", "ns")
NOW = 1_700_000_000.0
DAY = 86400.0


def test_a_certificate_is_for_every_name_of_the_service() -> None:
    (certificate,) = x509.load_pem_x509_certificates(pki.make(NAMES, NOW).certificate)

    alternatives = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert alternatives.get_values_for_type(x509.DNSName) == [
        "karpenter.ns.svc",
        "karpenter",
        "karpenter.ns",
        "karpenter.ns.svc.cluster.local",
    ]


@pytest.mark.parametrize(("days", "usable"), [(0.0, True), (5.9, True), (6.1, False), (8.0, False)])
def test_a_certificate_is_renewed_a_day_before_its_end(days: float, usable: bool) -> None:
    assert pki.usable(pki.make(NAMES, NOW), NAMES, NOW + days * DAY) is usable


MADE, OTHER = pki.make(NAMES, NOW), pki.make(NAMES, NOW)
BROKEN = {
    "not yet valid": pki.make(NAMES, NOW + 30 * DAY),
    "some of the names": pki.make(NAMES[:-1], NOW),
    "empty": pki.Material(b"", b"", b""),
    "another key": replace(MADE, key=OTHER.key),
    "another authority": replace(MADE, bundle=OTHER.bundle),
    "no key": replace(MADE, key=b"x"),
    "no certificate": replace(MADE, certificate=b"-----BEGIN CERTIFICATE-----\nx\n"),
    "other names": pki.make(["elsewhere"], NOW),
}


@pytest.mark.parametrize("material", BROKEN.values(), ids=BROKEN)
def test_broken_material_is_not_used(material: pki.Material) -> None:
    assert not pki.usable(material, NAMES, NOW)


def test_a_renewal_keeps_trusting_the_authority_before() -> None:
    first = pki.make(NAMES, NOW)
    second = pki.make(NAMES, NOW + 6 * DAY, first.bundle)
    third = pki.make(NAMES, NOW + 12 * DAY, second.bundle)

    assert second.bundle.endswith(first.bundle)
    assert third.bundle.endswith(second.bundle.removesuffix(first.bundle))
    assert pki.make(NAMES, NOW + 8 * DAY, first.bundle).bundle.count(b"BEGIN") == 1
