"""A preview of pools tells what they would do to the nodes of the live cluster."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pulumi
import pulumi_aws as aws_sdk
import pulumi_kubernetes as k8s
import pytest
import yaml

from localenv.pulumi import Stack
from nodeless.model.labels import OWNER
from pulumi_nodeless import Capacity
from tests.components.recorder import Recorder, ensure_event_loop, run
from tests.controllers.process import settings
from tests.controllers.world import DISCOVERY, POOLS

pytestmark = pytest.mark.long

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
@pytest.mark.drawn("previews of pools")
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


class Shop:
    """A stack whose program declares what `declared` says: arguments of `Capacity` by component."""

    def __init__(self, directory: Path, control_plane: Any, aws: Any, namespace: str) -> None:
        (directory / "Pulumi.yaml").write_text("name: shop\nruntime: python\n")
        self._kubeconfig = control_plane.kubeconfig.read_text()
        self._namespace = namespace
        self.declared: dict[str, Any] = {}
        self.stack = Stack(directory / "run", control_plane, aws, root=directory, program=self._program)

    def _program(self) -> None:
        cluster = k8s.Provider("cluster", kubeconfig=self._kubeconfig, upsert_existing_objects=True)
        account = aws_sdk.Provider("aws", region="us-east-1")
        for name, args in self.declared.items():
            Capacity(
                name,
                {
                    "cluster_name": DISCOVERY["karpenter.sh/discovery"],
                    "preview_kubeconfig": yaml.safe_load(self._kubeconfig),
                    "controller_namespace": self._namespace,
                    "region": "us-east-1",
                    **args,
                },
                pulumi.ResourceOptions(providers=[cluster]),
            )
            # While a program waits for a function, what is known already goes its way.
            aws_sdk.get_caller_identity(opts=pulumi.InvokeOptions(provider=account))
        pulumi.export("components", list(self.declared))

    def foretold(self, **declared: Any) -> str:
        """What a preview of a program that declares this tells."""
        self.declared = declared
        self.stack.preview()
        return "\n".join(line for line in self.stack.told if "pools: " in line)


DECLARED = {
    "node_templates": [{"name": "default"}],
    "provisioners": [{"name": "default", "node_template": "default", "requirements": [*ROOMY, ON_DEMAND]}],
}
SPARE = {
    "node_templates": [{"name": "spare"}],
    "provisioners": [{"name": "spare", "node_template": "spare", "requirements": [*LARGER, ON_DEMAND]}],
}
REMOVED = "pools: 1 node would end and 1 pod move: Provisioner/default is removed [PoolRemoved]"


@pytest.mark.cluster
@pytest.mark.drawn("previews of pools")
def test_a_preview_of_the_engine_tells_what_becomes_of_the_nodes_of_pools_that_leave_the_stack(
    api: Any, aws: Any, eks: Any, claimed: str, control_plane: Any, tmp_path: Path
) -> None:
    api.create(settings(claimed))
    shop = Shop(tmp_path, control_plane, aws, claimed)
    assert "pools: no node would drift" in shop.foretold(pools={}), "without an update there is no state"
    shop.declared = {"pools": DECLARED, "spare": {}}
    shop.stack.up()
    # As a stack left it whose last update was before pools were annotated.
    api.patch(f"{POOLS}/default", {"metadata": {"annotations": {OWNER: None}}})

    assert "pools: no node would drift" in shop.foretold(pools=DECLARED, spare=SPARE)
    told = shop.foretold(pools={}, spare={})
    assert REMOVED in told
    assert "1 pod without a place" in told
    assert "-71.68 USD a month" in told

    assert REMOVED in shop.foretold(spare={}), "the component left as a whole"
    moved = shop.foretold(spare=SPARE)
    assert moved.count(REMOVED) == 1
    assert "launch 1 x m5.xlarge (on-demand) of Provisioner/spare" in moved, "one makes up for the other"
    kept = shop.foretold(pools={**DECLARED, "preview_plan": False}, spare={})
    assert kept == "pools: none is declared, and none leaves", "what is declared stays, asking or not"
    assert "deletionTimestamp" not in api.get(f"{POOLS}/default")["metadata"], "a preview deletes nothing"


@pytest.mark.cluster
@pytest.mark.drawn("previews of pools")
def test_where_the_engine_does_not_tell_what_the_stack_had_the_annotation_does(
    api: Any, aws: Any, eks: Any, claimed: str, control_plane: Any, tmp_path: Path
) -> None:
    api.create(settings(claimed))
    shop = Shop(tmp_path, control_plane, aws, claimed)
    assert "pools: no node would drift" in shop.foretold(pools={}), "the pool is another's"
    api.patch(f"{POOLS}/default", {"metadata": {"annotations": {OWNER: "shop/local/pools"}}})
    assert REMOVED in shop.foretold(pools={})


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
