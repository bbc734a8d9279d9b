"""Configuration as people type it: wrong keys and values are told on the real engine, by their keys."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from localenv.aws import LocalAws
from localenv.control_plane import ControlPlane
from localenv.pulumi import Stack, StackFailed

pytestmark = pytest.mark.cluster

Refused = Callable[..., str]


@pytest.fixture
def refused(tmp_path: Path, control_plane: ControlPlane, aws: LocalAws) -> Refused:
    """What a preview of the project's own program tells of a stack with such configuration."""

    def preview(**config: str) -> str:
        values = {key if ":" in key else f"nodeless:{key}": value for key, value in config.items()}
        stack = Stack(tmp_path, control_plane, aws, config=values)
        with pytest.raises(StackFailed) as failed:
            stack.preview()
        return str(failed.value)

    return preview


def test_keys_that_are_not_declared_are_refused_with_the_nearest_ones(refused: Refused) -> None:
    told = refused(zonecount="2", nat_gateways="none", color="red")
    assert "nodeless:zonecount: no such key (hint: did you mean nodeless:zoneCount?)" in told
    assert "nodeless:nat_gateways: no such key (hint: did you mean nodeless:natGateways?)" in told
    assert "nodeless:color: no such key" in told
    assert "Traceback" not in told


def test_a_key_of_the_provider_that_has_no_effect_is_refused(refused: Refused) -> None:
    told = refused(**{"aws:regoin": "eu-west-1", "aws:profile": "elsewhere"})
    assert "aws:regoin: has no effect here (hint: did you mean aws:region?)" in told
    assert "aws:profile: has no effect here (hint: set AWS_PROFILE" in told
    assert "Traceback" not in told


def test_wrong_values_are_told_by_the_keys_that_they_were_given_for(refused: Refused) -> None:
    told = refused(
        zoneCount="9",
        fargateProfiles='[{"name": "eks-own", "selectors": [{"namespce": "x"}]}]',
        provisioners='[{"name": "own", "nodeTemplate": "own", "labels": {"node_template": 1}, "weigth": 3}]',
        imageBase="python:3.13",
    )
    for line in (
        "nodeless:zoneCount: 9 is not between 2 and 6",
        "nodeless:fargateProfiles[0].name: 'eks-own' is reserved by EKS",
        "nodeless:fargateProfiles[0].selectors[0].namespce: no such argument (hint: did you mean namespace?)",
        "nodeless:provisioners[0].nodeTemplate: 'own' is not declared here",
        "nodeless:provisioners[0].weigth: no such argument (hint: did you mean weight?)",
        "nodeless:imageBase: no image is built (hint: give buildImage, or leave it out)",
    ):
        assert line in told, told
    assert "Traceback" not in told
    assert "zone_count" not in told


@pytest.mark.parametrize("version", ["1.99", "1.23"])
def test_a_kubernetes_version_that_eks_does_not_offer_is_told_at_preview(
    refused: Refused, version: str
) -> None:
    told = refused(kubernetesVersion=version)
    assert f"EKS offers no Kubernetes version '{version}' here (kubernetesVersion)" in told
    assert "1.33" in told
    assert "Traceback" not in told
