"""What the change of each configuration key does: recorded, told in docs/configuration.md, held by a test.

    python -m tests.localenv.pulumi.configuration_changes [KEY ...]

asks the real engine anew about these keys (all by default), writes the steps down, and the page with them.
"""

from __future__ import annotations

import base64
import json
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import yaml

from localenv.aws import LocalAws
from localenv.control_plane import ControlPlane
from localenv.kubernetes import KubernetesApi
from localenv.pulumi import ResourceStep, Stack
from localenv.pulumi.project import ROOT
from tests.localenv.pulumi.ready_pods import ReadyPods

RECORD: Final = Path(__file__).with_suffix(".yaml")
PAGE: Final = ROOT / "docs" / "configuration.md"
DECLARED: Final[Mapping[str, Mapping[str, Any]]] = yaml.safe_load((ROOT / "Pulumi.yaml").read_text())[
    "config"
]
DEFAULTS, POOLS = "defaults", "pools"
#: The stacks that keys are changed in. EKS upgrades by one version, so there is one to come.
STACKS: Final[Mapping[str, Mapping[str, Any]]] = {
    DEFAULTS: {"clusterName": "demo", "kubernetesVersion": "1.34"},
    POOLS: {
        "clusterName": "demo",
        "kubernetesVersion": "1.34",
        "buildImage": True,
        "fargateProfiles": [{"name": "kube-system", "selectors": [{"namespace": "kube-system"}]}],
        "nodeTemplates": [{"name": "own", "amiFamily": "Ubuntu"}],
        "provisioners": [{"name": "own", "nodeTemplate": "own"}],
        "nodeClasses": [{"name": "own-v1", "amiAlias": "al2023@latest"}],
        "nodePools": [{"name": "own-v1", "nodeClass": "own-v1"}],
    },
}
_WEBHOOKS: Final = "/apis/admissionregistration.k8s.io/v1/{}webhookconfigurations"
#: More names than this stand below the table.
_SHORT: Final = 9
Steps = Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True)
class Case:
    """One change of one key.

    Attributes:
        key: The key.
        to: Its new value.
        says: What that means.
        of: The stack it is changed in, a key of `STACKS`.
        steps: Operation -> names of resources, as previewed.
        refused: What the preview says instead, where it refuses.
    """

    key: str
    to: Any
    says: str
    of: str = DEFAULTS
    steps: Steps = field(default_factory=dict)
    refused: str = ""

    @property
    def before(self) -> Any:
        return STACKS[self.of].get(self.key, DECLARED[self.key].get("default"))

    @property
    def replaces_much(self) -> bool:
        """Whether so much is made anew that another key's resources are others, too."""
        return any("replace" in each and len(names) > _SHORT for each, names in self.steps.items())

    @property
    def names(self) -> set[str]:
        return {name for names in self.steps.values() for name in names}


def recorded() -> list[Case]:
    """Every case, in the order of Pulumi.yaml."""
    return [Case(**each) for each in yaml.safe_load(RECORD.read_text())]


def batches(cases: Iterable[Case]) -> list[list[Case]]:
    """The cases in as few previews as tell them apart: no two of one preview touch the same resource.

    A key that makes much anew has a preview to itself.
    """
    made: list[list[Case]] = []
    for case in sorted(cases, key=lambda case: -len(case.names)):
        free = (
            batch
            for batch in made
            if batch[0].of == case.of
            and not batch[0].replaces_much
            and not any(each.names & case.names for each in batch)
        )
        batch = None if case.replaces_much else next(free, None)
        if batch is None:
            made.append([case])
        else:
            batch.append(case)
    return made


def steps_of(told: Sequence[ResourceStep]) -> dict[str, list[str]]:
    """Operation -> names, sorted; the steps of a replacement as one operation."""
    of_each: dict[str, list[str]] = defaultdict(list)
    for step in told:
        if step.done and not step.type.startswith("pulumi:"):
            of_each[step.name].append(step.operation)
    by_operation: dict[str, set[str]] = defaultdict(set)
    for name, operations in of_each.items():
        by_operation[_operation(operations)].add(name)
    return {operation: sorted(names) for operation, names in sorted(by_operation.items())}


def _operation(operations: Sequence[str]) -> str:
    if "create-replacement" not in operations:
        (operation,) = set(operations) - {"replace"} or {"replace"}
        return operation
    made = operations.index("create-replacement")
    gone_first = "delete-replaced" in operations[:made]
    return "replace, old first" if gone_first else "replace"


def texts(config: Mapping[str, Any]) -> dict[str, str]:
    """A configuration as people type it."""
    return {
        f"nodeless:{key}": value if isinstance(value, str) else json.dumps(value)
        for key, value in config.items()
    }


class Previews:
    """One environment, and previews of it."""

    def __init__(self, directory: Path, control_plane: ControlPlane, aws: LocalAws) -> None:
        authority = base64.b64encode(control_plane.certificate_authority.read_bytes()).decode()
        aws.set_cluster(
            endpoint=control_plane.endpoint,
            certificate_authority_data=authority,
            issuer=control_plane.issuer,
            service_account_key=None,
        )
        self._arguments = (directory, control_plane, aws)
        self._now = ""

    def stack(self, config: Mapping[str, Any]) -> Stack:
        return Stack(*self._arguments, stack="demo", config={"aws:region": "us-east-1", **texts(config)})

    def stand(self, api: KubernetesApi) -> None:
        """Bring it up with its defaults.

        Pools are refused while nobody answers for the webhooks, and there is no controller here: their
        configurations are taken away between.
        """
        with ReadyPods(api):
            self.stack({**STACKS[DEFAULTS], "defaultPool": False}).up()
            for kind in ("mutating", "validating"):
                collection = _WEBHOOKS.format(kind)
                for each in api.list(collection):
                    api.delete(f"{collection}/{each['metadata']['name']}")
        self.change_to(api, DEFAULTS)

    def change_to(self, api: KubernetesApi, stack: str) -> None:
        """Bring it to another of `STACKS`, unless that is what stands."""
        if self._now != stack:
            with ReadyPods(api):
                self.stack(STACKS[stack]).up()
            self._now = stack

    def of(self, config: Mapping[str, Any]) -> dict[str, list[str]]:
        """The steps of a preview with that configuration."""
        told: list[ResourceStep] = []
        self.stack(config).preview(told.append)
        return steps_of(told)


def page(cases: Iterable[Case]) -> str:
    """docs/configuration.md."""
    cases = list(cases)
    head = (ROOT / "tests" / "localenv" / "pulumi" / "configuration_head.md").read_text()
    rows = "\n".join(_row(case) for case in cases)
    long = "\n\n".join(_listed(case) for case in cases if len(case.names) > _SHORT)
    table = f"| key | for example | steps | which means |\n|---|---|---|---|\n{rows}\n"
    return f"{head}\n{table}\n## Long lists\n\n{long}\n"


def _row(case: Case) -> str:
    change = f"{_shown(case.before)} → {_shown(case.to)}"
    return f"| `{case.key}` | {change} | {_steps(case)} | {case.says} |"


def _steps(case: Case) -> str:
    if case.refused:
        return "refused"
    if not case.steps:
        return "none"
    if len(case.names) > _SHORT:
        counts = ", ".join(f"{operation} {len(names)}" for operation, names in case.steps.items())
        return f"{counts} ([list](#{case.key.lower()}))"
    return "; ".join(f"{operation} {_names(names)}" for operation, names in case.steps.items())


def _listed(case: Case) -> str:
    lines = [f"- {operation}: {_names(names)}" for operation, names in case.steps.items()]
    return "\n".join([f"### {case.key}", "", *lines])


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"`{name.removeprefix('nodeless-')}`" for name in names)


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    short = f"{text[:24]}…" if len(text) > 48 else text
    return f"`{short}`" if short else "empty"


@contextmanager
def _environment() -> Iterator[tuple[Previews, KubernetesApi, Callable[[], None]]]:
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        with ControlPlane.start(folder / "cluster") as cluster, LocalAws.start(folder / "aws") as aws:
            api = cluster.client()
            yield Previews(folder / "stack", cluster, aws), api, api.close


def main(keys: Sequence[str]) -> None:
    cases = recorded()
    with _environment() as (previews, api, close):
        previews.stand(api)
        for stack in STACKS:
            of_stack = [case for case in cases if case.of == stack and not case.refused]
            wanted = [each for each in of_stack if not keys or each.key in keys]
            if wanted and stack != DEFAULTS:
                previews.change_to(api, stack)
            for case in wanted:
                found = replace(case, steps=previews.of({**STACKS[stack], case.key: case.to}))
                cases[cases.index(case)] = found
                print(found.key, {k: len(v) for k, v in found.steps.items()}, flush=True)  # noqa: T201
                _write(cases)
        close()


def _write(cases: Sequence[Case]) -> None:
    documents = [
        {
            **{"key": case.key, "to": case.to, "says": case.says, "of": case.of},
            **({"refused": case.refused} if case.refused else {"steps": dict(case.steps)}),
        }
        for case in cases
    ]
    comment = "".join(line for line in RECORD.read_text().splitlines(True) if line.startswith("#"))
    RECORD.write_text(comment + yaml.safe_dump(documents, sort_keys=False, width=110, allow_unicode=True))
    PAGE.write_text(page(cases))


if __name__ == "__main__":
    main(sys.argv[1:])
