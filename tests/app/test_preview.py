"""A preview of pools tells what they would do to the nodes of the live cluster."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pulumi
import pulumi_kubernetes as k8s
import pytest
import yaml

from infra.local.pulumi import Stack
from nodeless.model.labels import OWNER
from pulumi_nodeless import Capacity
from tests.app.process import settings
from tests.app.world import DISCOVERY, POOLS
from tests.components.recorder import Recorder, ensure_event_loop, run

ROOMY = [{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["m5.large", "m5.xlarge"]}]
LARGER = [{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["m5.xlarge"]}]
ON_DEMAND = {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]}


@pytest.fixture(autouse=True)
def _event_loop() -> None:
    ensure_event_loop()


def pools(requirements: list[dict[str, Any]], **more: Any) -> Callable[[], Any]:
    return lambda: Capacity(
        "pools",
        {
            "cluster_name": DISCOVERY["karpenter.sh/discovery"],
            "node_templates": [{"name": "default"}],
            "provisioners": [
                {"name": "default", "node_template": "default", "requirements": [*requirements, ON_DEMAND]}
            ],
            **more,
        },
    )


def told(caplog: pytest.LogCaptureFixture) -> str:
    return "\n".join(record.getMessage() for record in caplog.records if "pools: " in record.getMessage())


@pytest.mark.cluster
def test_a_preview_names_the_nodes_that_a_changed_pool_would_replace_and_the_cost(
    api: Any, eks: Any, claimed: str, control_plane: Any, caplog: pytest.LogCaptureFixture
) -> None:
    made = settings(claimed)
    made["data"]["featureGates.driftEnabled"] = "true"
    api.create(made)
    live = {
        "preview_kubeconfig": yaml.safe_load(control_plane.kubeconfig.read_text()),
        "controller_namespace": claimed,
        "region": "us-east-1",
    }
    with caplog.at_level(logging.INFO):
        run(pools(ROOMY, **live), preview=True)
        assert "pools: no node would drift" in told(caplog)
        caplog.clear()

        run(pools(LARGER, **live), preview=True)
        text = told(caplog)
        assert (
            "1 node would be replaced and 1 pod move: label node.kubernetes.io/instance-type=m5.large" in text
        )
        assert "launch 1 x m5.xlarge (on-demand) of Provisioner/default" in text
        assert "+70.08 USD a month" in text
        caplog.clear()

        run(pools(LARGER, **live))
        run(pools(LARGER, **live, preview_plan=False), preview=True)
        assert told(caplog) == "", "an up plans nothing, and a preview may be told not to"


@pytest.mark.cluster
def test_a_preview_of_the_engine_tells_what_becomes_of_the_nodes_of_a_pool_that_leaves_the_stack(
    api: Any, aws: Any, eks: Any, claimed: str, control_plane: Any, tmp_path: Path
) -> None:
    api.create(settings(claimed))
    (tmp_path / "Pulumi.yaml").write_text("name: shop\nruntime: python\n")
    kubeconfig = control_plane.kubeconfig.read_text()

    def program() -> None:
        cluster = k8s.Provider("cluster", kubeconfig=kubeconfig)
        Capacity(
            "pools",
            {
                "cluster_name": DISCOVERY["karpenter.sh/discovery"],
                "preview_kubeconfig": yaml.safe_load(kubeconfig),
                "controller_namespace": claimed,
                "region": "us-east-1",
            },
            pulumi.ResourceOptions(providers=[cluster]),
        )

    stack = Stack(tmp_path / "run", control_plane, aws, root=tmp_path, program=program)
    stack.preview()
    assert "pools: no node would drift" in "\n".join(stack.told), "the pool is another's"

    api.patch(f"{POOLS}/default", {"metadata": {"annotations": {OWNER: "shop/local/pools"}}})
    stack.preview()
    text = "\n".join(stack.told)
    assert "pools: 1 node would end and 1 pod move: Provisioner/default is removed [PoolRemoved]" in text
    assert "1 pod without a place" in text
    assert "-70.08 USD a month" in text
    assert "deletionTimestamp" not in api.get(f"{POOLS}/default")["metadata"], "a preview deletes nothing"


@pytest.mark.parametrize(
    ("kubeconfig", "why"),
    [
        (
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
                "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
                "current-context": "c",
                "users": [{"name": "u", "user": {}}],
            },
            "127.0.0.1",
        ),
        ("not a kubeconfig", ""),
    ],
    ids=["unreachable", "unusable"],
)
def test_a_cluster_that_cannot_be_reached_is_a_note_and_the_preview_goes_on(
    kubeconfig: Any, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        recorder = run(pools(LARGER, preview_kubeconfig=kubeconfig), preview=True)
    assert "pools: not planned against the cluster: " in told(caplog)
    assert why in told(caplog)
    assert recorder.one("kubernetes:karpenter.sh/v1alpha5:Provisioner")


class Unknowing(Recorder):
    def new_resource(self, args: Any) -> tuple[str | None, dict[str, Any]]:
        super().new_resource(args)
        return None, {}


def test_before_there_is_a_cluster_nothing_is_asked(caplog: pytest.LogCaptureFixture) -> None:
    def program() -> None:
        import pulumi_aws as aws  # noqa: PLC0415 - the SDKs are slow to import

        unknown = aws.ec2.Vpc("later", cidr_block="10.0.0.0/16").arn
        pools(LARGER, preview_kubeconfig=pulumi.Output.secret(unknown))()

    with caplog.at_level(logging.INFO):
        run(program, recorder=Unknowing(), preview=True)
    assert "pools: not planned against the cluster: it is not there yet" in told(caplog)
