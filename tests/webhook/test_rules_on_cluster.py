"""Every row of the rule tables, asked of the real API server with the real webhook behind it.

Dry runs: nothing is stored. What the server refuses by its own decoding or naming rules, before any webhook
is asked, carries its words; everything else carries ours, with the exact field.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

from localenv.kubernetes import KubernetesApi
from tests.api import aws_rows, generation_one, provisioner_rows
from tests.api.manifests import provisioner, requirement
from tests.api.provisioner_rows import KEY_VERDICTS
from tests.webhook.asking import asked_to_apply, asked_to_create
from tests.webhook.conftest import Serving

pytestmark = pytest.mark.cluster

#: Rows that the API server refuses before it asks a webhook, and what it says then.
BY_THE_SERVER = {
    "P-0b": 'metadata.name: Invalid value: "A-',
    "metadata of a wrong type": "ObjectMeta.name of type string",
    "a time that is none": 'parsing time "soon"',
}
REFUSED = [*provisioner_rows.REFUSED, *aws_rows.REFUSED]
ACCEPTED = [*provisioner_rows.ACCEPTED, *aws_rows.ACCEPTED]
#: The rules of Provisioners, inline providers and AWSNodeTemplates in docs/acceptance/admission.md.
ROWS = [
    *(f"P-{number}" for number in ("0a", "0b", "0c", *range(1, 31))),
    *(f"A-{number}" for number in (1, 2)),
    *(f"N-{number}" for number in range(21)),
]


def test_every_row_of_the_tables_has_a_case() -> None:
    named = {word for row, *_ in REFUSED for word in re.findall(r"[PNA]-\d+[abc]?", row)}

    assert [row for row in ROWS if row not in named] == []


@pytest.mark.parametrize(("row", "manifest", "paths"), REFUSED, ids=[row[0] for row in REFUSED])
def test_what_breaks_a_rule_is_refused(
    api: KubernetesApi, admission: Serving, row: str, manifest: dict[str, Any], paths: list[str]
) -> None:
    told = asked_to_create(api, manifest).refusal

    for expected in [BY_THE_SERVER[row]] if row in BY_THE_SERVER else paths:
        assert expected in told


@pytest.mark.parametrize("manifest", [row[1] for row in ACCEPTED], ids=[row[0] for row in ACCEPTED])
def test_what_the_rules_allow_is_accepted(
    api: KubernetesApi, admission: Serving, manifest: dict[str, Any]
) -> None:
    assert asked_to_create(api, manifest).refusal == ""


@pytest.mark.parametrize(
    ("row", "manifest", "path"), generation_one.CASES, ids=[f"v1-{row}" for row in generation_one.IDS]
)
def test_a_row_of_generation_v1(
    api: KubernetesApi, admission: Serving, row: str, manifest: dict[str, Any], path: str
) -> None:
    told = asked_to_create(api, manifest).refusal

    assert path in told
    assert bool(told) is bool(path)


@pytest.mark.parametrize(("key", "restricted"), KEY_VERDICTS, ids=[f"2.3-{key}" for key, _ in KEY_VERDICTS])
def test_a_key_of_a_requirement(api: KubernetesApi, admission: Serving, key: str, restricted: bool) -> None:
    told = asked_to_create(api, provisioner(requirements=[requirement(key, "Exists")])).refusal

    assert ("spec.requirements[0].key" in told) is restricted
    assert ("is restricted" in told) is restricted


#: 3.7: accepted, and said to be suspicious: where, and in which words.
SUSPICIOUS = {
    "3.7 NotIn without values": ("spec.requirements[0].values", "NotIn then allows every value"),
    "3.7 Exists with values": ("spec.requirements[0].values", "is ignored by Exists"),
    "3.7 DoesNotExist with values": ("spec.requirements[0].values", "is ignored by DoesNotExist"),
    "3.7 contradiction": ("spec.requirements[1]", "contradicts the requirements on team"),
    "3.7 unknown capacity type": ("spec.requirements[0].values[0]", "is not a known value"),
    "3.7 negative limit": ("spec.limits.resources.cpu", "nothing will ever be launched"),
    "3.7 annotation": ('spec.annotations["not a key"]', "is not an annotation key"),
    "3.7 DNS that is no address": ("spec.kubeletConfiguration.clusterDNS[0]", "is not an IP address"),
    "3.7 container runtime": ("spec.kubeletConfiguration.containerRuntime", "nodes run containerd"),
    "3.7 tag keys": ('spec.tags["aws:x"]', "EC2 refuses"),
    "3.7 many tags": ("spec.tags", "EC2 allows 50"),
    "3.7 volume figures": ("spec.blockDeviceMappings[0].ebs.iops", "EC2 allows from"),
}


@pytest.mark.parametrize("row", SUSPICIOUS)
def test_what_is_accepted_but_suspicious_is_said_to_be(
    api: KubernetesApi, admission: Serving, row: str
) -> None:
    manifest = next(manifest for name, manifest in ACCEPTED if name == row)
    path, words = SUSPICIOUS[row]

    verdict = asked_to_create(api, manifest)

    assert verdict.refusal == ""
    assert [warning for warning in verdict.warnings if warning.startswith(path) and words in warning], (
        verdict.warnings
    )


def test_3_2_applying_again_what_was_defaulted_changes_nothing(
    api: KubernetesApi, admission: Serving
) -> None:
    once = asked_to_create(api, provisioner()).stored
    twice = asked_to_create(api, {**provisioner(), "spec": once["spec"]}).stored

    keys = [each["key"].rpartition("/")[2] for each in once["spec"]["requirements"]]
    assert keys == ["os", "arch", "capacity-type", "instance-category", "instance-generation"]
    assert twice["spec"] == once["spec"]


DEFAULTED = {
    "any operator counts": (requirement("kubernetes.io/arch", "Exists"), {"arch"}),
    "an alias counts": (requirement("beta.kubernetes.io/os", "In", "linux"), {"os"}),
    "a word on the type": (requirement("beta.kubernetes.io/instance-type", "In", "m5.large"), {"type"}),
}


@pytest.mark.parametrize(("entry", "absent"), DEFAULTED.values(), ids=[f"3.2 {name}" for name in DEFAULTED])
def test_3_2_what_is_said_is_not_defaulted(
    api: KubernetesApi, admission: Serving, entry: dict[str, Any], absent: set[str]
) -> None:
    given, *added = asked_to_apply(api, provisioner(requirements=[entry])).stored["spec"]["requirements"]

    assert given == entry
    names = {each["key"].rpartition("/")[2] for each in added}
    assert not names & (absent - {"type"})
    assert ("instance-category" in names) is ("type" not in absent)
