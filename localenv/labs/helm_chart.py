"""The controller as Helm installs it: the charts take the place of what the stack has deployed.

Both make the same objects, so Helm takes over those of the stack (`--take-ownership`) and rolls out its own
pods, and these give pods nodes. Afterwards the objects are the stack's again, which destroys them with the
rest: Helm's records of the releases are removed, and its name from the objects.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from localenv.binaries import helm
from localenv.environment import Environment
from localenv.kubernetes import ConditionNotMet, Object
from localenv.labs.run import Lab

CHARTS = Path(__file__).parents[2] / "charts"
#: Release and chart, in the order in which they are installed.
RELEASES = (("karpenter-crd", "nodeless-crd"), ("karpenter", "nodeless"))
#: Settings that the chart has under a name of their own, and how their texts are read.
_VALUES: Mapping[str, tuple[tuple[str, ...], Callable[[str], Any]]] = {
    "aws.clusterName": (("clusterName",), str),
    "aws.clusterEndpoint": (("clusterEndpoint",), str),
    "aws.interruptionQueueName": (("interruptionQueue",), str),
    "aws.defaultInstanceProfile": (("aws", "defaultInstanceProfile"), str),
    "aws.tags": (("aws", "tags"), json.loads),
    "batchIdleDuration": (("batchIdleDuration",), str),
    "batchMaxDuration": (("batchMaxDuration",), str),
    "featureGates.driftEnabled": (("featureGates", "drift"), json.loads),
}
_RECORDS = "owner=helm"
_SECONDS = 180


class HelmChart(Lab):
    name = "helm-chart"
    title = "Installed by Helm: the charts take over from the stack, and five pods get nodes"

    def __init__(self, environment: Environment, changed: Callable[[], None] = lambda: None) -> None:
        super().__init__(environment, changed)
        self._namespace = environment.options.namespace
        self._deployment = f"/apis/apps/v1/namespaces/{self._namespace}/deployments/karpenter"
        #: The objects as the stack has them, by path.
        self._before: dict[str, Object] = {}

    def steps(self) -> None:
        values = self.environment.directory / "helm-values.yaml"
        values.write_text(
            yaml.safe_dump(values_of_the_stack(self._config(), self._account(), self._running()))
        )
        self._remember(values)
        self.expect("Helm installs the definitions", lambda: self._install(*RELEASES[0]))
        self.expect(
            "Helm installs the controller, and its pods are ready",
            lambda: self._install(*RELEASES[1], values),
        )
        self.expect("a replica of the chart leads", self._leader, detail=str)
        self.apply("nodeless/awsnodetemplate.yaml")
        self.apply("lowest-price/provisioner.yaml")
        self.run_pods("fewest-nodes/inflate.yaml", "inflate", 5)

    def clean_up(self) -> None:
        super().clean_up()
        self._give_back()

    def _install(self, release: str, chart: str, values: Path | None = None) -> str:
        """One chart, over what the stack has made; what Helm says of it."""
        given = ("--values", str(values), "--wait", f"--timeout={_SECONDS}s") if values else ()
        owning = ("--take-ownership", "--force-conflicts")
        answer = self._helm(
            "upgrade", "--install", release, str(CHARTS / chart), *owning, *given, "--output=json"
        )
        document = json.loads(answer)
        return (
            f"{document['chart']['metadata']['name']} {document['chart']['metadata']['version']} as {release}"
        )

    def _helm(self, *arguments: str) -> str:
        """What a command of Helm writes. Raises ConditionNotMet with what it complains of."""
        command = [str(helm(self.environment.report)), *arguments, "--namespace", self._namespace]
        environment = {**os.environ, "KUBECONFIG": str(self.environment.kubeconfig)}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise ConditionNotMet(f"helm {' '.join(arguments[:3])}", _SECONDS, done.stderr.strip())
        return done.stdout

    def _leader(self) -> str:
        """The pod that leads, once it is one of the chart's."""
        leader = self.environment.leader()
        if leader is None:
            return ""
        pod = self.api.find(f"/api/v1/namespaces/{self._namespace}/pods/{leader.pod}")
        newest = self.api.get(self._deployment)["spec"]["template"]["metadata"]["annotations"]
        return leader.pod if pod and newest.items() <= pod["metadata"].get("annotations", {}).items() else ""

    def _config(self) -> Object:
        return self.api.get(f"/api/v1/namespaces/{self._namespace}/configmaps/karpenter-global-settings")

    def _account(self) -> Object:
        return self.api.get(f"/api/v1/namespaces/{self._namespace}/serviceaccounts/karpenter")

    def _running(self) -> Object:
        return self.api.get(self._deployment)

    def _objects(self, values: Path) -> Iterable[Object]:
        """What the charts make."""
        for release, chart in RELEASES:
            given = ("--values", str(values)) if chart == "nodeless" else ()
            for document in yaml.safe_load_all(self._helm("template", release, str(CHARTS / chart), *given)):
                if document:
                    yield document

    def _remember(self, values: Path) -> None:
        for document in self._objects(values):
            path = self.api.path_of(document)
            found = self.api.find(path)
            if found is not None:
                self._before[path] = found

    def _give_back(self) -> None:
        """Have the stack's objects be the stack's again."""
        records = f"/api/v1/namespaces/{self._namespace}/secrets"
        for record in self.api.list(records, label_selector=_RECORDS):
            self.api.delete(f"{records}/{record['metadata']['name']}")
        for path, before in self._before.items():
            found = self.api.find(path)
            if found is not None:
                change = {"metadata": _restore_metadata(found["metadata"], before["metadata"])}
                if found["kind"] == "ConfigMap":
                    change["data"] = _undone(found, before, "data")
                self.api.patch(path, change)


def _restore_metadata(metadata: Object, before: Object) -> Object:
    """What makes labels and annotations as they were, and leaves Helm out of those who own fields."""
    changes = {part: _undone(metadata, before, part) for part in ("labels", "annotations")}
    owners = [each for each in metadata.get("managedFields", []) if each["manager"] != "helm"]
    return {**changes, "managedFields": owners}


def _undone(now: Object, before: Object, part: str) -> Object:
    """The merge patch that makes a part of an object as it was."""
    return {key: before.get(part, {}).get(key) for key in {**now.get(part, {}), **before.get(part, {})}}


def values_of_the_stack(config: Object, account: Object, deployment: Object) -> Object:
    """Values with which the chart installs what the stack has installed.

    Args:
        config: The controller's settings.
        account: Its service account.
        deployment: Its Deployment.
    """
    settings: dict[str, Any] = {}
    for key, text in config["data"].items():
        if key in _VALUES:
            (*above, last), read = _VALUES[key]
            part = settings
            for name in above:
                part = part.setdefault(name, {})
            part[last] = read(text)
        elif key.startswith("nodeless."):
            settings.setdefault("nodeless", {})[key.removeprefix("nodeless.")] = text
    # Imported here: Pulumi takes a second, and is there where a stack is up.
    from pulumi_nodeless.deployment import RESERVED_ENVIRONMENT  # noqa: PLC0415

    container = deployment["spec"]["template"]["spec"]["containers"][0]
    repository, _, tag = container["image"].rpartition(":")
    return {
        "settings": settings,
        "serviceAccount": {"annotations": _aws_annotations(account["metadata"].get("annotations", {}))},
        "replicas": deployment["spec"]["replicas"],
        "controller": {
            "image": {"repository": repository, "tag": tag},
            "resources": container["resources"],
            "env": [each for each in container["env"] if each["name"] not in RESERVED_ENVIRONMENT],
        },
    }


def _aws_annotations(annotations: Mapping[str, str]) -> dict[str, str]:
    """Annotations that say something to AWS."""
    return {key: value for key, value in annotations.items() if key.startswith("eks.amazonaws.com/")}
