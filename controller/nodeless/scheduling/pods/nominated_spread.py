"""Which pods would keep each other from their node if all of them were nominated to it.

kube-scheduler checks a node as if the pods that are nominated to it ran there already, and so counts them for
hard topology spread (`RunFilterPluginsWithNominatedPods` in
k8s.io/kubernetes/pkg/scheduler/framework/runtime/framework.go). Where ten pods of a workload that is spread
over zones are nominated to one node, each finds nine more in that zone than in the others, and none is bound
while the others are nominated.
"""

from collections import Counter
from collections.abc import Iterable

from nodeless.model.pods import Pod
from nodeless.scheduling.pods.rules import HARD, Spread, rules_of
from nodeless.scheduling.pods.selecting import Namespaces

_Kind = tuple[str, tuple[tuple[str, str], ...]]
"""What a rule sees of a pod: its namespace and labels."""


def kept_from_their_node(pods: Iterable[Pod], namespaces: Namespaces) -> set[str]:
    """The keys of those that hard topology spread keeps from a node while all the pods are nominated to it.

    Args:
        pods: What is to come to one node.
        namespaces: The namespaces of the cluster.
    """
    some = list(pods)
    spread = [pod for pod in some if any(each.when_unsatisfiable == HARD for each in pod.shape.spread)]
    if len(some) < 2 or not spread:
        return set()
    kinds = Counter(map(_kind, some))
    found = set()
    judged: dict[object, bool] = {}
    for pod in spread:
        kind = pod.shape, _kind(pod)
        if kind not in judged:
            rules = rules_of(pod.shape, pod.namespace, pod.labels, namespaces).hard().spread
            judged[kind] = any(_counted(rule, kinds) > rule.max_skew for rule in rules)
        if judged[kind]:
            found.add(pod.key)
    return found


def _kind(pod: Pod) -> _Kind:
    return pod.namespace, tuple(sorted(pod.labels.items()))


def _counted(rule: Spread, kinds: Counter[_Kind]) -> int:
    """How many of the pods a rule counts; among them the one that has it, if it counts itself."""
    (selector,) = rule.topology_group.pod_selectors
    return sum(
        number for (namespace, labels), number in kinds.items() if selector.selects(namespace, dict(labels))
    )
