# ruff: noqa: T201 - prints its figures
"""What an honest tenant feels of hostile neighbors on the live environment: how long its pods take to run.

Run: python -m bench.neighbors [ROUNDS] [SEED] (`make bench` does, with 12 rounds). A round is three
pods that fit no node until they run on a new one, measured by the clock from their creation. Half of the
rounds have the cluster for themselves; in the others a namespace holds a hundred drawn hostile pods, of which
thirty are new in every round. Exit code 1 when an honest round is not finished.
"""

import random
import sys
from contextlib import suppress
from statistics import median, quantiles

from localenv import stats
from localenv.environment import Environment
from localenv.kubernetes import ApiError, ConditionNotMet, KubernetesApi
from localenv.progress import StreamReport
from tests.environment.user import pool_manifests
from tests.fuzz.run import Honest
from tests.hostile_pods import hostile_pod

_NAMESPACE = "hostile"
_ALIVE, _NEW = 100, 30
#: CPUs that hostile pods may have bought: they are to be planned, not to fill the machine.
_LIMIT = {"limits": {"resources": {"cpu": "32"}}}


class Neighbors:
    """A tenant whose pods are hard to plan, some of them new in every round."""

    def __init__(self, environment: Environment, seed: str) -> None:
        self._api: KubernetesApi = environment.control_plane.client()
        self._chance = random.Random(f"neighbors {seed}")
        self._alive: list[str] = []
        self._made = 0
        discovery = {"karpenter.sh/discovery": environment.options.cluster_name}
        template = {"subnetSelector": discovery, "securityGroupSelector": discovery}
        for manifest in pool_manifests("anybody", template, ttlSecondsAfterEmpty=30, **_LIMIT):
            self._api.create(manifest)
        self._api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": _NAMESPACE}})

    def change(self) -> None:
        """The oldest pods go, and new ones come until a hundred are there."""
        gone, self._alive = self._alive[:_NEW], self._alive[_NEW:]
        for name in gone:
            with suppress(ApiError):
                self._api.delete(f"/api/v1/namespaces/{_NAMESPACE}/pods/{name}")
        while len(self._alive) < _ALIVE:
            self._made += 1
            pod = hostile_pod(self._chance, f"h-{self._made}", _NAMESPACE)
            with suppress(ApiError):  # what the API server does not take is no neighbor
                self._api.create(pod)
                self._alive.append(pod["metadata"]["name"])


def main(arguments: list[str]) -> int:
    rounds = int(arguments[0]) if arguments else 12
    seed = arguments[1] if len(arguments) > 1 else "1"
    with Environment.start(report=StreamReport()) as environment:
        honest = Honest(environment)
        honest.round()  # what is made once for a pool is not counted
        try:
            alone = [honest.round() for _ in range(rounds)]
            neighbors = Neighbors(environment, seed)
            beside = []
            for _ in range(rounds):
                neighbors.change()
                beside.append(honest.round())
        except ConditionNotMet as error:
            print(f"an honest round was not finished: {error}")
            return 1
        largest = max(stats.memory(environment).values())
    print(f"time until three honest pods run on a new node, {rounds} rounds each, seed {seed}")
    print(f"  without hostile neighbors: p50 {median(alone):.1f} s, p99 {_p99(alone):.1f} s")
    print(f"  beside {_ALIVE} hostile pods: p50 {median(beside):.1f} s, p99 {_p99(beside):.1f} s")
    print(f"  memory of the largest replica afterwards: {largest:.0f} MiB")
    return 0


def _p99(seconds: list[float]) -> float:
    return quantiles(seconds, n=100, method="inclusive")[-1] if len(seconds) > 1 else seconds[0]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
