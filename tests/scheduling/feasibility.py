"""Whether an answer to a packing problem can be carried out, found without the solver's code.

Reads the two documents as they are (`Checker.faults`): every pod has one place, what a node is
bought as is for sale at that price and allowed by its pool, everything fits beside the daemons,
limits hold, and so does every required rule of a pod about nodes and about other pods.

A hostname's spread is judged as if an empty node could always be added; a zone's over the zones
in which the pools that the pod may use could make a node.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Any

Json = Mapping[str, Any]

ZONE = "topology.kubernetes.io/zone"
CAPACITY_TYPE = "karpenter.sh/capacity-type"
HOSTNAME = "kubernetes.io/hostname"
NODE_POOL = "karpenter.sh/nodepool"
TYPE = "node.kubernetes.io/instance-type"
_POWERS = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15}
_SUFFIXES = {suffix: Fraction(10) ** power for suffix, power in _POWERS.items()}
_SUFFIXES.update({f"{letter}i": Fraction(2) ** (10 * (1 + power)) for power, letter in enumerate("KMGTP")})


def quantity(text: Any) -> Fraction:
    text = str(text)
    number = text.rstrip("numkMGTPi")
    return Fraction(number) * _SUFFIXES[text[len(number) :]]


def amounts(resources: Mapping[str, Any] | None) -> Counter:
    return Counter({name: quantity(text) for name, text in (resources or {}).items()})


class Node:
    """A node with everything that is on it; `pods` are (description, how many)."""

    def __init__(self, name: str, labels: Mapping[str, str], taints: Iterable[Json], room: Counter) -> None:
        self.name = name
        self.labels = {HOSTNAME: name, **labels}
        self.taints = [taint for taint in taints if taint["effect"] != "PreferNoSchedule"]
        self.room = room
        self.pods: list[tuple[Json, int]] = []

    def used(self) -> Counter:
        used: Counter = Counter()
        for pod, count in self.pods:
            for name, amount in amounts(pod.get("requests")).items():
                used[name] += amount * count
            used["pods"] += count
        return used


class Checker:
    """One problem."""

    def __init__(self, problem: Json, catalog: Json | None) -> None:
        self.problem = problem
        names = problem.get("instanceTypeNames")
        types = [
            kind for kind in (catalog or {}).get("instanceTypes", ()) if not names or kind["name"] in names
        ]
        self.types = {kind["name"]: kind for kind in [*types, *problem.get("instanceTypes", ())]}
        self.pools = {pool["name"]: pool for pool in problem["nodePools"]}
        self.pods = {pod["name"]: pod for pod in problem["pods"]}
        self.daemons = problem.get("daemonSets", ())
        self._zones: dict[str, set[str]] = {}

    def faults(self, answer: Json) -> list[str]:
        """What is wrong with an answer; empty when it can be carried out."""
        nodes = [*self._existing(answer), *self._new(answer)]
        return [
            *self._places(answer),
            *self._purchases(answer),
            *self._limits(answer),
            *(fault for node in nodes for fault in self._on(node)),
            *self._between(nodes),
        ]

    def _places(self, answer: Json) -> Iterator[str]:
        placed: Counter = Counter()
        for node in answer["newNodes"]:
            for pod in node["pods"]:
                placed[pod["name"]] += pod["count"] * node["count"]
        for node in answer["existingNodes"]:
            for pod in node["pods"]:
                placed[pod["name"]] += pod["count"]
        for pod in answer["unschedulable"]:
            placed[pod["name"]] += pod["count"]
        wanted = Counter()
        for pod in self.problem["pods"]:
            wanted[pod["name"]] += pod.get("count", 1)
        for name in {*placed, *wanted}:
            if placed[name] != wanted[name]:
                yield f"{placed[name]} of {wanted[name]} pods {name} have an answer"
        total = sum(node["price"] * node["count"] for node in answer["newNodes"])
        if abs(total - answer["totalHourlyPrice"]) > 1e-6:
            yield f"the nodes cost {total}, not {answer['totalHourlyPrice']}"

    def _purchases(self, answer: Json) -> Iterator[str]:
        for node in answer["newNodes"]:
            kind, pool = self.types[node["instanceType"]], self.pools[node["nodePool"]]
            wanted = (node["zone"], node["capacityType"])
            prices = [
                offer["price"]
                for offer in kind["offerings"]
                if offer.get("available", True) and (offer["zone"], offer["capacityType"]) == wanted
            ]
            if not prices or abs(min(prices) - node["price"]) > 1e-9:
                yield f"{node['instanceType']} is not sold in {wanted} at {node['price']}"
            labels = self._labels(node)
            for one in pool.get("requirements", ()):
                if not holds(one, labels):
                    yield f"{node['instanceType']} in {wanted} is not what pool {pool['name']} allows: {one}"

    def _limits(self, answer: Json) -> Iterator[str]:
        for name, pool in self.pools.items():
            used: Counter = Counter()
            for node in answer["newNodes"]:
                if node["nodePool"] == name:
                    for resource, amount in amounts(self.types[node["instanceType"]]["capacity"]).items():
                        used[resource] += amount * node["count"]
                    used["nodes"] += node["count"]
            bought = used["nodes"]
            for node in self.problem.get("existingNodes", ()):
                if node.get("labels", {}).get(NODE_POOL) == name:
                    used.update(amounts(node.get("capacity", node["allocatable"])))
                    used["nodes"] += 1
            for resource, limit in amounts(pool.get("limits")).items():
                if bought and used[resource] > limit:
                    yield f"pool {name} has {float(used[resource])} {resource}, more than {float(limit)}"

    def _new(self, answer: Json) -> Iterator[Node]:
        number = 0
        for entry in answer["newNodes"]:
            kind, pool = self.types[entry["instanceType"]], self.pools[entry["nodePool"]]
            room = amounts(kind["capacity"])
            room.subtract(amounts(kind.get("overhead")))
            for _ in range(entry["count"]):
                number += 1
                node = Node(f"new-node-{number}", self._labels(entry), pool.get("taints", ()), room)
                node.pods = [(self.pods[pod["name"]], pod["count"]) for pod in entry["pods"]]
                node.pods += [(daemon, 1) for daemon in self.daemons if accepts(daemon, node)]
                yield node

    def _existing(self, answer: Json) -> Iterator[Node]:
        coming = {entry["name"]: entry["pods"] for entry in answer["existingNodes"]}
        for entry in self.problem.get("existingNodes", ()):
            room = amounts(entry["allocatable"])
            node = Node(entry["name"], entry.get("labels", {}), entry.get("taints", ()), room)
            node.pods = [(pod, pod.get("count", 1)) for pod in entry.get("pods", ())]
            present = {pod["name"] for pod in entry.get("pods", ()) if pod.get("daemonSet")}
            node.pods += [
                (daemon, 1)
                for daemon in self.daemons
                if daemon["name"] not in present and accepts(daemon, node)
            ]
            if entry["name"] in coming:
                node.pods += [(self.pods[pod["name"]], pod["count"]) for pod in coming[entry["name"]]]
                yield node
            else:
                node.room = Counter({name: Fraction(10**30) for name in [*node.used(), "pods"]})
                yield node

    def _labels(self, node: Json) -> dict[str, str]:
        kind, pool = self.types[node["instanceType"]], self.pools[node["nodePool"]]
        known = {key: values[0] for key, values in kind["requirements"].items() if len(values) == 1}
        several = {key: values[0] for key, values in kind["requirements"].items() if len(values) > 1}
        return {
            **several,
            **known,
            **pool.get("labels", {}),
            TYPE: kind["name"],
            NODE_POOL: pool["name"],
            ZONE: node["zone"],
            CAPACITY_TYPE: node["capacityType"],
        }

    def _on(self, node: Node) -> Iterator[str]:
        for name, amount in node.used().items():
            if amount > node.room[name]:
                yield f"{node.name}: {float(amount)} {name} on a node of {float(node.room[name])}"
        for pod, _ in node.pods:
            if pod["name"] in self.pods and pod is self.pods[pod["name"]] and not accepts(pod, node):
                yield f"{node.name}: pod {pod['name']} does not select or tolerate it"

    def _between(self, nodes: list[Node]) -> Iterator[str]:
        found: set[str] = set()
        for node in nodes:
            for pod, _ in node.pods:
                for term in pod.get("podAntiAffinity", ()):
                    if "weight" not in term and self._beside(pod, term, node, nodes) > 0:
                        found.add(f"{node.name}: pod {pod['name']} is beside a pod that it repels")
                if pod["name"] not in self.pods:
                    continue
                for term in pod.get("podAffinity", ()):
                    if "weight" not in term and not self._near(pod, term, node, nodes):
                        found.add(f"{node.name}: pod {pod['name']} is not beside the pods that it wants")
                for rule in pod.get("topologySpreadConstraints", ()):
                    if rule["whenUnsatisfiable"] == "DoNotSchedule":
                        found.update(self._skewed(pod, rule, node, nodes))
        yield from sorted(found)

    def _near(self, pod: Json, term: Json, node: Node, nodes: list[Node]) -> bool:
        if term["topologyKey"] not in node.labels:
            return False
        if self._beside(pod, term, node, nodes) > 0:
            return True
        itself = selects(term, pod, pod)
        return (
            itself
            and sum(
                self._beside(pod, term, other, [other]) + 1
                for other in nodes
                if any(selects(term, pod, one) for one, _ in other.pods)
            )
            <= 1
        )

    def _beside(self, pod: Json, term: Json, node: Node, nodes: list[Node]) -> int:
        """Selected pods in the domain of a node, the pod itself left out."""
        key = term["topologyKey"]
        if key not in node.labels:
            return 0
        number = sum(
            count
            for other in nodes
            if other.labels.get(key) == node.labels[key]
            for one, count in other.pods
            if selects(term, pod, one)
        )
        return number - (1 if selects(term, pod, pod) else 0)

    def _skewed(self, pod: Json, rule: Json, node: Node, nodes: list[Node]) -> Iterator[str]:
        key = rule["topologyKey"]
        if key not in node.labels:
            yield f"{node.name}: pod {pod['name']} is spread over {key}, which the node does not bear"
            return
        counts: Counter = Counter(dict.fromkeys(self._domains(pod, key), 0))
        for other in nodes:
            if key in other.labels and selected_by_affinity(pod, other.labels):
                counts[other.labels[key]] += sum(
                    count for one, count in other.pods if selects(rule, pod, one, own_namespace=True)
                )
        least = 0 if key == HOSTNAME or len(counts) < (rule.get("minDomains") or 1) else min(counts.values())
        if counts[node.labels[key]] - least > rule["maxSkew"]:
            yield f"{pod['name']} is skewed over {key}: {dict(counts) if key != HOSTNAME else node.name}"

    def _domains(self, pod: Json, key: str) -> set[str]:
        """The zones in which some pool could make a node that the pod selects."""
        if key != ZONE:
            return set()
        memo = repr((pod.get("nodeSelector"), pod.get("requiredNodeAffinity")))
        if memo not in self._zones:
            self._zones[memo] = {
                offer["zone"]
                for name, pool in self.pools.items()
                for kind in self.types.values()
                for offer in kind["offerings"]
                if self._could_be(pod, name, pool, kind, offer)
            }
        return self._zones[memo]

    def _could_be(self, pod: Json, name: str, pool: Json, kind: Json, offer: Json) -> bool:
        labels = self._labels(
            {
                "instanceType": kind["name"],
                "nodePool": name,
                "zone": offer["zone"],
                "capacityType": offer["capacityType"],
            }
        )
        return (
            offer.get("available", True)
            and all(holds(one, labels) for one in pool.get("requirements", ()))
            and selected_by_affinity(pod, labels)
        )


def holds(expression: Json, labels: Mapping[str, str]) -> bool:
    """A node selector requirement on labels, as Kubernetes reads it."""
    value = labels.get(expression["key"])
    values = expression.get("values") or ()
    match expression["operator"]:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt":
            return value is not None and int(value) > int(values[0])
        case "Lt":
            return value is not None and int(value) < int(values[0])
    raise ValueError(expression["operator"])


def selected_by_affinity(pod: Json, labels: Mapping[str, str]) -> bool:
    if any(labels.get(key) != value for key, value in pod.get("nodeSelector", {}).items()):
        return False
    terms = pod.get("requiredNodeAffinity")
    return not terms or any(all(holds(one, labels) for one in term) for term in terms)


def tolerates(pod: Json, taint: Json) -> bool:
    return any(
        (not one.get("effect") or one["effect"] == taint["effect"])
        and (not one.get("key") or one["key"] == taint["key"])
        and (one.get("operator") == "Exists" or one.get("value", "") == taint.get("value", ""))
        for one in pod.get("tolerations", ())
    )


def accepts(pod: Json, node: Node) -> bool:
    return selected_by_affinity(pod, node.labels) and all(tolerates(pod, taint) for taint in node.taints)


def selects(term: Json, owner: Json, pod: Json, *, own_namespace: bool = False) -> bool:
    """Whether a term of a pod selects another pod, by namespace and labels."""
    home = owner.get("namespace", "default")
    namespaces = [home] if own_namespace else term.get("namespaces") or [home]
    selector = term.get("labelSelector")
    if selector is None or pod.get("namespace", "default") not in namespaces:
        return False
    labels = pod.get("labels", {})
    pinned = {
        key: owner["labels"][key] for key in term.get("matchLabelKeys", ()) if key in owner.get("labels", {})
    }
    return all(
        labels.get(key) == value for key, value in {**selector.get("matchLabels", {}), **pinned}.items()
    ) and all(holds(one, labels) for one in selector.get("matchExpressions", ()))
