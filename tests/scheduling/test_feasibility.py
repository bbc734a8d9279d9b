"""The checker itself: right answers pass, and each kind of wrong answer is told."""

import copy

import pytest

from tests.scheduling.feasibility import Checker

TYPE = {
    "name": "four",
    "capacity": {"cpu": "4", "memory": "8Gi", "pods": "10"},
    "overhead": {"cpu": "100m"},
    "requirements": {
        "node.kubernetes.io/instance-type": ["four"],
        "kubernetes.io/arch": ["amd64"],
        "topology.kubernetes.io/zone": ["a", "b"],
        "karpenter.sh/capacity-type": ["on-demand"],
    },
    "offerings": [
        {"zone": zone, "capacityType": "on-demand", "price": 0.2, "available": True} for zone in ("a", "b")
    ],
}
APP = {"matchLabels": {"app": "web"}}
PROBLEM = {
    "instanceTypes": [TYPE],
    "nodePools": [{"name": "default", "limits": {"cpu": "8"}}],
    "pods": [{"name": "web", "count": 4, "requests": {"cpu": "1"}, "labels": {"app": "web"}}],
    "daemonSets": [{"name": "agent", "requests": {"cpu": "500m"}, "tolerations": [{"operator": "Exists"}]}],
}


def node(count, zone="a", number=1, **other):
    return {
        "count": number,
        "nodePool": "default",
        "instanceType": "four",
        "zone": zone,
        "capacityType": "on-demand",
        "price": 0.2,
        "pods": [{"name": "web", "count": count}],
        **other,
    }


def faults(*nodes, problem=PROBLEM, left=0, **pod):
    changed = copy.deepcopy(problem)
    changed["pods"][0].update(pod)
    answer = {
        "newNodes": list(nodes),
        "existingNodes": [],
        "unschedulable": [{"name": "web", "count": left}] if left else [],
        "totalHourlyPrice": sum(each["price"] * each["count"] for each in nodes),
    }
    return Checker(changed, None).faults(answer)


def test_a_right_answer_has_no_fault():
    assert faults(node(2, number=2)) == []
    assert faults(node(3), left=1) == []


@pytest.mark.parametrize(
    ("nodes", "pod", "words"),
    [
        ([node(2)], {}, "2 of 4 pods web"),
        ([node(4)], {}, "4.5 cpu on a node of 3.9"),
        ([node(1, number=4)], {}, "pool default has 16.0 cpu"),
        ([node(2, number=2, price=0.1)], {}, "is not sold"),
        ([node(2, number=2)], {"nodeSelector": {"kubernetes.io/arch": "arm64"}}, "does not select"),
        (
            [node(2, number=2)],
            {"podAntiAffinity": [{"topologyKey": "kubernetes.io/hostname", "labelSelector": APP}]},
            "that it repels",
        ),
        (
            [node(2), node(2, "b")],
            {
                "podAffinity": [
                    {
                        "topologyKey": "topology.kubernetes.io/zone",
                        "labelSelector": {"matchLabels": {"app": "db"}},
                    }
                ]
            },
            "is not beside",
        ),
        (
            [node(2, number=2)],
            {
                "topologySpreadConstraints": [
                    {
                        "topologyKey": "topology.kubernetes.io/zone",
                        "maxSkew": 1,
                        "whenUnsatisfiable": "DoNotSchedule",
                        "labelSelector": APP,
                    }
                ]
            },
            "skewed over topology.kubernetes.io/zone",
        ),
    ],
)
def test_a_wrong_answer_is_told(nodes, pod, words):
    assert any(words in fault for fault in faults(*nodes, **pod))
