"""What the change of each configuration key does, on the real engine: docs/configuration.md is held to it.

All keys are changed in previews of one environment, as few as tell the keys apart.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from localenv.aws import LocalAws
from localenv.binaries import control_plane_binaries
from localenv.control_plane import ControlPlane
from localenv.kubernetes import KubernetesApi
from localenv.pulumi import StackFailed
from tests.localenv.pulumi.configuration_changes import (
    DECLARED,
    PAGE,
    STACKS,
    Case,
    Previews,
    batches,
    page,
    recorded,
)
from tests.localenv.pulumi.test_infra_program import guard_let_go

#: A key of the provider: another region is another environment.
OF_PROVIDERS = {"aws:region"}
COMPARED = batches(case for case in recorded() if not case.refused)
REFUSED = [case for case in recorded() if case.refused]


@pytest.fixture(scope="module")
def previews(
    tmp_path_factory: pytest.TempPathFactory, control_plane: ControlPlane, aws_process: LocalAws
) -> Iterator[Previews]:
    aws_process.reset()
    made = Previews(tmp_path_factory.mktemp("configured"), control_plane, aws_process)
    api = control_plane.client()
    made.stand(api)
    yield made
    with guard_let_go(api):
        made.stack(STACKS["defaults"]).destroy()
    api.close()


def test_every_key_that_is_declared_has_a_line() -> None:
    assert {case.key for case in recorded()} == DECLARED.keys() - OF_PROVIDERS


def test_the_page_says_what_was_recorded() -> None:
    assert PAGE.read_text() == page(recorded()), "hint: python -m tests.localenv.pulumi.configuration_changes"


def test_previews_tell_the_changed_keys_apart() -> None:
    made = batches(recorded())
    for batch in made:
        names = [name for case in batch for name in case.names]
        assert len(names) == len({*names})
        assert len({case.of for case in batch}) == 1
    assert sum(map(len, made)) == len(recorded())


@pytest.mark.cluster
@pytest.mark.drawn
@pytest.mark.parametrize("batch", COMPARED, ids=lambda each: "+".join(case.key for case in each))
def test_each_key_changes_what_its_line_says_and_nothing_else(
    previews: Previews, api: KubernetesApi, batch: list[Case]
) -> None:
    previews.change_to(api, batch[0].of)
    told = previews.of({**STACKS[batch[0].of], **{case.key: case.to for case in batch}})
    assert told == _together(batch), "hint: python -m tests.localenv.pulumi.configuration_changes KEY"


@pytest.mark.cluster
@pytest.mark.parametrize("case", REFUSED, ids=lambda each: each.key)
def test_what_aws_would_refuse_half_way_is_refused_by_the_preview_with_what_to_do(
    previews: Previews, api: KubernetesApi, aws_process: LocalAws, case: Case
) -> None:
    previews.change_to(api, case.of)
    before = len(aws_process.calls())
    with pytest.raises(StackFailed) as told:
        previews.of({**STACKS[case.of], case.key: case.to})
    assert case.refused in str(told.value)
    assert "Traceback" not in str(told.value)
    asked = {call["action"] for call in aws_process.calls()[before:]}
    assert not [action for action in asked if action.startswith(("Create", "Delete", "Modify"))]


@pytest.mark.cluster
def test_the_kubeconfig_that_is_put_out_works_with_kubectl_and_is_in_no_state_in_clear(
    previews: Previews, api: KubernetesApi, tmp_path: Path
) -> None:
    """EKS's own tokens are AWS's matter: a program of the name `aws` stands for it, and is asked for one."""
    previews.change_to(api, "defaults")
    stack = previews.stack(STACKS["defaults"])
    given = stack.outputs()["kubeconfig"]
    written = given if isinstance(given, str) else json.dumps(given)
    assert "get-token" in written
    state = "".join(file.read_text() for file in stack.project.state.rglob("*.json*"))
    assert "nodeless-cluster-eks-eksCluster" in state
    assert "get-token" not in state

    asked = tmp_path / "asked"
    credential = {
        "apiVersion": "client.authentication.k8s.io/v1beta1",
        "kind": "ExecCredential",
        "status": {"token": api.token("karpenter", "karpenter")},
    }
    told = tmp_path / "credential.json"
    told.write_text(json.dumps(credential))
    command = tmp_path / "aws"
    command.write_text(f'#!/bin/sh\necho "$@" > {asked}\ncat {told}\n')
    command.chmod(0o755)
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(written)
    kubectl = [str(control_plane_binaries(lambda _: None)["kubectl"]), "--kubeconfig", str(kubeconfig)]
    seen = subprocess.run(
        [*kubectl, "auth", "whoami", "-o", "jsonpath={.status.userInfo.username}"],
        env={"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (seen.stdout, seen.stderr) == ("system:serviceaccount:karpenter:karpenter", "")
    assert asked.read_text().split() == (
        ["--region", "us-east-1", "eks", "get-token", "--cluster-name", "demo", "--output", "json"]
    )


def _together(batch: list[Case]) -> dict[str, list[str]]:
    joined: dict[str, list[str]] = {}
    for case in batch:
        for operation, names in case.steps.items():
            joined[operation] = sorted([*joined.get(operation, []), *names])
    return dict(sorted(joined.items()))
