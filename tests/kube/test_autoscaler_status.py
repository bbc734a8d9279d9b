"""Cluster Autoscaler's own account of its groups, in the form of either time."""

import pytest

from nodeless.kube.autoscaler_status import groups_of, is_status
from nodeless.model.neighbors import ScalingGroup

#: As of 1.30: the fields of `ClusterAutoscalerStatus` (kubernetes/autoscaler, clusterstate/api).
OF_YAML = """\
time: 2026-01-02 03:04:05.6 +0000 UTC
autoscalerStatus: Running
clusterWide:
  health: {status: Healthy, minSize: 0, maxSize: 0}
nodeGroups:
- name: eks-web-0aca
  health:
    status: Healthy
    nodeCounts: {registered: {total: 2, ready: 2}}
    cloudProviderTarget: 2
    minSize: 1
    maxSize: 10
  scaleUp: {status: NoActivity}
- health: {minSize: 0, maxSize: 4}
  name: batch
"""
#: Before 1.30: a text.
OF_TEXT = """\
Cluster-autoscaler status at 2023-01-02 03:04:05.6 +0000 UTC:
Cluster-wide:
  Health:      Healthy (ready=2 unready=0 notStarted=0 registered=2 longUnregistered=0)

NodeGroups:
  Name:        eks-web-0aca
  Health:      Healthy (ready=2 unready=0 registered=2 cloudProviderTarget=2 (minSize=1, maxSize=10))
  ScaleUp:     NoActivity (ready=2 cloudProviderTarget=2)

  Name:        batch
  Health:      Healthy (ready=0 unready=0 registered=0 cloudProviderTarget=0 (minSize=0, maxSize=4))
"""


def a_status(text):
    return {"kind": "ConfigMap", "metadata": {"name": "cluster-autoscaler-status"}, "data": {"status": text}}


@pytest.mark.parametrize("text", [OF_YAML, OF_TEXT])
def test_groups_have_their_names_and_bounds(text):
    assert groups_of(a_status(text)) == (ScalingGroup("batch", 0, 4), ScalingGroup("eks-web-0aca", 1, 10))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "nodeGroups: 3",
        "nodeGroups: [3, {name: 4}, {}]",
        "NodeGroups:\n  Name: x\n",
        "[" * 3000,
        None,
    ],
)
def test_what_is_no_status_tells_of_no_group(text):
    assert groups_of(a_status(text)) == ()


def test_a_group_whose_bounds_cannot_be_read_is_still_one():
    assert groups_of(a_status("nodeGroups: [{name: web, health: {minSize: few, maxSize: true}}]")) == (
        ScalingGroup("web", 0, 0),
    )


def test_only_the_one_object_is_the_status():
    assert is_status(a_status(""))
    assert not is_status({**a_status(""), "kind": "Secret"})
    assert not is_status({"kind": "ConfigMap", "metadata": {"name": "other"}})
