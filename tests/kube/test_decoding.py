"""Given an object's JSON, does the model say what Kubernetes means?"""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeless.api.times import parse_time
from nodeless.kube.decoding import decode_daemon_set, decode_node, decode_pod
from nodeless.kube.kinds import watched_kinds
from nodeless.model.events import NamespaceGone, NamespaceSeen
from nodeless.model.labels import DO_NOT_DISRUPT
from nodeless.model.namespaces import Namespace
from nodeless.model.pods import HostPort, PodResourceClaim
from nodeless.model.requirements import Requirement
from nodeless.model.taints import Taint
from nodeless.state.protection import protection

MIB = 1024**2


def pod_json(spec=None, status=None, **metadata):
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "web", "namespace": "shop", "uid": "u1", **metadata},
            "spec": {"containers": [], **(spec or {})},
            "status": status or {},
        }
    ).encode()


def container(cpu=None, memory=None, **fields):
    requests = {name: value for name, value in (("cpu", cpu), ("memory", memory)) if value}
    return {"name": "c", "resources": {"requests": requests}, **fields}


def requests_of(**spec):
    return decode_pod(pod_json(spec)).requests


def test_requests_are_the_sum_of_the_containers_and_one_pod():
    assert requests_of(containers=[container("500m", "128Mi"), container("1")]) == {
        "cpu": 1500,
        "memory": 128 * MIB,
        "pods": 1,
    }


def test_the_larger_of_init_and_running_phase_counts():
    assert requests_of(containers=[container("1")], initContainers=[container("3")])["cpu"] == 3000


def test_a_sidecar_counts_with_the_containers_and_with_later_init_containers():
    spec = {
        "containers": [container("1")],
        "initContainers": [container("500m", restartPolicy="Always"), container("2")],
    }
    assert requests_of(**spec)["cpu"] == 2500


def test_overhead_of_the_runtime_class_comes_on_top():
    assert requests_of(containers=[container("1")], overhead={"cpu": "250m"})["cpu"] == 1250


def test_pod_level_requests_replace_the_sum():
    assert requests_of(containers=[container("1")], resources={"requests": {"cpu": "4"}})["cpu"] == 4000


@pytest.mark.parametrize(
    ("containers", "limits", "expected"),
    [
        pytest.param([container("1")], {"cpu": "4"}, 1000, id="containers-say-less"),
        pytest.param([container("1"), container("2")], {"cpu": "8"}, 3000, id="sum-of-containers"),
        pytest.param([container(memory="1Gi")], {"cpu": "4"}, 4000, id="containers-say-nothing-of-it"),
        pytest.param(
            [{"resources": {"limits": {"cpu": "2"}}}], {"cpu": "4"}, 2000, id="limit-of-a-container"
        ),
    ],
)
def test_a_pod_level_limit_counts_where_nothing_is_requested(containers, limits, expected):
    """As the API server fills it in for pods, but not for the templates of DaemonSets."""
    assert requests_of(containers=containers, resources={"limits": limits})["cpu"] == expected


def test_pods_on_the_hosts_network_hold_all_their_ports():
    ports = [{"containerPort": 80}, {"containerPort": 53, "hostPort": 53, "protocol": "UDP"}]
    containers, sidecars = [container(ports=ports)], [container(restartPolicy="Always", ports=ports[:1])]
    alone = decode_pod(pod_json({"containers": containers, "initContainers": sidecars})).shape
    on_host = decode_pod(pod_json({"containers": containers, "hostNetwork": True})).shape
    beside = {"initContainers": [container(restartPolicy="Always", ports=[{"hostPort": 9}])]}
    assert alone.host_ports == (HostPort("0.0.0.0", 53, "UDP"),)
    assert on_host.host_ports == (HostPort("0.0.0.0", 80, "TCP"), HostPort("0.0.0.0", 53, "UDP"))
    assert decode_pod(pod_json(beside)).shape.host_ports == (HostPort("0.0.0.0", 9, "TCP"),)


@pytest.mark.parametrize("merged", [False, True])
def test_labels_of_the_pod_itself_bound_whom_an_affinity_term_means(merged):
    """The API server merges them into the selector of a pod; a manifest has them beside it."""
    added = [("tenant", "NotIn", ("red",)), ("app", "In", ("web",))]
    expressions = [{"key": key, "operator": operator, "values": values} for key, operator, values in added]
    term = {
        "topologyKey": "zone",
        "labelSelector": {"matchExpressions": expressions if merged else []},
        "mismatchLabelKeys": ["tenant", "absent"],
        "matchLabelKeys": ["app"],
    }
    for kind in ("podAffinity", "podAntiAffinity"):
        spec = {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}
        shape = decode_pod(pod_json(spec, labels={"tenant": "red", "app": "web"})).shape
        (read,) = (*shape.affinity, *shape.anti_affinity)
        assert read.selector is not None
        assert sorted(read.selector.match_expressions) == sorted(added)


def test_claims_on_devices_arrive_unless_none_was_needed():
    spec = {
        "resourceClaims": [
            {"name": "gpu", "resourceClaimTemplateName": "large"},
            {"name": "nic", "resourceClaimName": "shared"},
        ]
    }
    made = {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "web-gpu-x"}]}
    needless = {"resourceClaimStatuses": [{"name": "gpu"}]}
    allocated = {
        "resourceClaimStatuses": [
            *made["resourceClaimStatuses"],
            {"name": "nic", "resourceClaimName": "shared"},
        ]
    }
    claims = (PodResourceClaim("gpu", template="large"), PodResourceClaim("nic", claim="shared"))
    assert decode_pod(pod_json(spec)).shape.resource_claims == claims
    assert decode_pod(pod_json(spec, made)).shape.resource_claims == claims
    assert decode_pod(pod_json(spec, made)).generated_claims == (("gpu", "web-gpu-x"),)
    assert decode_pod(pod_json(spec, needless)).shape.resource_claims == claims[1:]
    assert decode_pod(pod_json(spec, allocated)).shape.resource_claims == claims


@pytest.mark.parametrize(
    ("initial", "containers", "parts"),
    [
        ([], [2], ()),
        ([], [2, 1], (2, 1)),
        # An init container has the devices of what starts after it, and no more than it asks for beside.
        ([(2, None)], [2, 1], (2, 1)),
        ([(5, None), (4, None)], [2, 1], (2, 2, 1)),
        ([(1, "Always"), (3, None)], [2], (1, 1, 2)),
        ([(3, None), (1, "Always")], [2], (1, 2)),
    ],
)
def test_devices_for_an_extended_resource_are_claimed_for_each_container(initial, containers, parts):
    """As kube-scheduler 1.36 makes its requests of them."""

    def asking(name, amount, policy=None):
        limits = {"resources": {"limits": {"nvidia.com/gpu": str(amount), "cpu": "1"}}}
        return {"name": name, "restartPolicy": policy, **limits}

    spec = {
        "initContainers": [asking(f"i{at}", *each) for at, each in enumerate(initial)],
        "containers": [asking(f"c{at}", each) for at, each in enumerate(containers)],
    }
    pod = decode_pod(pod_json(spec))
    assert pod.extended_parts == ((("nvidia.com/gpu", parts),) if parts else ())
    assert sum(parts) in (0, pod.requests["nvidia.com/gpu"])


def test_a_limit_stands_in_for_a_missing_request():
    assert requests_of(containers=[{"name": "c", "resources": {"limits": {"nvidia.com/gpu": 1}}}]) == {
        "nvidia.com/gpu": 1,
        "pods": 1,
    }


def resized(wished, granted, *conditions, kind="containerStatuses"):
    """CPU of a pod whose container asks for `wished` while its kubelet grants and uses `granted`."""
    cpu = {"cpu": granted}
    held = {"name": "c", "allocatedResources": cpu, "resources": {"requests": cpu}}
    place = "containers" if kind == "containerStatuses" else "initContainers"
    sidecar = {"restartPolicy": "Always"} if place == "initContainers" else {}
    spec = {place: [container(wished, **sidecar)]}
    return decode_pod(pod_json(spec, {kind: [held], "conditions": list(conditions)})).requests["cpu"]


def test_a_container_that_is_resized_in_place_counts_with_the_most_of_wish_and_grant():
    assert resized("2", "1") == 2000
    assert resized("1", "2") == 2000
    assert resized("2", "1", kind="initContainerStatuses") == 2000


def test_a_resize_that_the_node_cannot_grant_does_not_count():
    waiting = {"type": "PodResizePending", "status": "True", "reason": "Infeasible"}
    assert resized("200", "1", waiting) == 1000
    assert resized("200", "1", {**waiting, "reason": "Deferred"}) == 200_000


def held(name, allocated, actual):
    """What a kubelet says of a container; None: it says nothing of that."""
    status = {"name": name}
    if allocated is not None:
        status["allocatedResources"] = {"cpu": f"{allocated}m"}
    if actual is not None:
        status["resources"] = {"requests": {"cpu": f"{actual}m"}}
    return status


MILLIS = st.integers(1, 8000)
SAID = st.one_of(st.none(), MILLIS)


@given(
    st.lists(
        st.tuples(st.sampled_from(("run", "sidecar", "init")), MILLIS, SAID, SAID), min_size=1, max_size=6
    ),
    st.sampled_from(("", "Deferred", "Infeasible")),
)
def test_resized_containers_and_sidecars_count_as_kube_scheduler_counts_them(containers, reason):
    """The rule of component-helpers' PodRequests with UseStatusResources, container by container."""

    def counts(kind, wished, allocated, actual):
        if actual is None or kind == "init":
            return wished
        in_use = max(allocated or 0, actual)
        return in_use if reason == "Infeasible" else max(wished, in_use)

    sidecars = peak = running = 0
    spec, status = (
        {"containers": [], "initContainers": []},
        {"containerStatuses": [], "initContainerStatuses": []},
    )
    for number, (kind, wished, allocated, actual) in enumerate(containers):
        counted = counts(kind, wished, allocated, actual)
        always = {"restartPolicy": "Always"} if kind == "sidecar" else {}
        place, said = ("containers", "containerStatuses")
        if kind != "run":
            place, said = ("initContainers", "initContainerStatuses")
        spec[place].append({**container(f"{wished}m", **always), "name": f"c{number}"})
        status[said].append(held(f"c{number}", allocated, actual))
        if kind == "sidecar":
            sidecars += counted
        running += counted if kind != "init" else 0
        peak = max(peak, sidecars + (counted if kind == "init" else 0))
    if reason:
        status["conditions"] = [{"type": "PodResizePending", "status": "True", "reason": reason}]
    assert decode_pod(pod_json(spec, status)).requests.get("cpu", 0) == max(running, peak)


@pytest.mark.parametrize(
    ("wished", "allocated", "actual", "reason", "counted"),
    [
        (4000, 2000, 2000, "", 4000),
        (4000, 2000, 3000, "Deferred", 4000),
        (1000, 2000, 3000, "", 3000),
        (4000, 2000, 3000, "Infeasible", 3000),
        (4000, None, None, "Infeasible", 4000),
    ],
)
def test_resources_of_the_pod_as_a_whole_are_resized_too(wished, allocated, actual, reason, counted):
    spec = {"containers": [container("500m")], "resources": {"requests": {"cpu": f"{wished}m"}}}
    whole = held("", allocated, actual)
    del whole["name"]
    whole["conditions"] = [{"type": "PodResizePending", "status": "True", "reason": reason}] if reason else []
    assert decode_pod(pod_json(spec, whole)).requests["cpu"] == counted


def test_equal_specs_share_one_shape():
    spec = {"containers": [container("1")], "nodeSelector": {"a": "b"}}
    assert decode_pod(pod_json(spec)).shape is decode_pod(pod_json(spec, uid="u2")).shape


def test_only_a_pod_that_the_scheduler_refused_needs_capacity():
    refused = {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}
    assert decode_pod(pod_json(status=refused)).provisionable
    assert not decode_pod(pod_json()).provisionable
    assert not decode_pod(pod_json({"nodeName": "n"}, refused)).provisionable
    assert not decode_pod(pod_json(status={**refused, "nominatedNodeName": "n"})).provisionable
    owner = [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "x"}]
    assert not decode_pod(pod_json(status=refused, ownerReferences=owner)).provisionable
    gated = {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]}
    assert not decode_pod(pod_json(status=gated)).provisionable


@pytest.mark.parametrize(
    ("manager", "ours"), [("nodeless", True), ("kube-scheduler", False), ("kubectl-edit", False)]
)
def test_a_nomination_is_ours_when_the_api_server_says_that_we_wrote_it(manager, ours):
    refused = {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}
    managed = [
        {"manager": "kubelet", "fieldsV1": {"f:status": {"f:phase": {}}}, "subresource": "status"},
        {"manager": "nodeless", "fieldsV1": {"f:metadata": {"f:annotations": {}}}},
        {"manager": manager, "fieldsV1": {"f:status": {"f:nominatedNodeName": {}}}, "subresource": "status"},
    ]
    pod = decode_pod(pod_json(status={**refused, "nominatedNodeName": "n"}, managedFields=managed))
    assert (pod.expected_node_name, pod.nominated_node_name) == (("n", "") if ours else ("", "n"))
    assert pod.provisionable == ours


def test_affinity_ports_and_claims_arrive():
    expression = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["us-east-1a"]}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    spec = {
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}},
        "containers": [container("1", ports=[{"containerPort": 80, "hostPort": 8080}])],
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data-0"}}],
    }
    shape = decode_pod(pod_json(spec)).shape
    zone = Requirement.of("topology.kubernetes.io/zone", "In", ["us-east-1a"])
    assert shape.required_terms[0].expressions == (zone,)
    assert shape.host_ports == (HostPort("0.0.0.0", 8080, "TCP"),)
    assert shape.claims == ("data-0",)


def test_a_node_arrives_with_taints_resources_and_readiness():
    document = {
        "metadata": {"name": "ip-10-0-1-2", "uid": "n1", "resourceVersion": "7"},
        "spec": {"providerID": "aws:///us-east-1a/i-1", "taints": [{"key": "a", "effect": "NoSchedule"}]},
        "status": {
            "allocatable": {"cpu": "1930m", "memory": "7Gi"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }
    node = decode_node(json.dumps(document).encode())
    assert node.provider_id == "aws:///us-east-1a/i-1"
    assert node.taints == (Taint("a", "NoSchedule"),)
    assert node.allocatable == {"cpu": 1930, "memory": 7 * 1024 * MIB}
    assert node.ready


def test_a_daemon_set_arrives_with_the_shape_of_its_pods():
    document = {
        "metadata": {"name": "aws-node", "namespace": "kube-system", "uid": "d1"},
        "spec": {"template": {"spec": {"containers": [container("50m")]}}},
    }
    daemon_set = decode_daemon_set(json.dumps(document).encode())
    assert daemon_set.key == "kube-system/aws-node"
    assert dict(daemon_set.shape.requests) == {"cpu": 50, "pods": 1}


@pytest.mark.parametrize(
    ("containers", "expected"),
    [
        pytest.param([container(memory="64Mi")], 700, id="nothing-is-requested-of-it"),
        pytest.param([container("50m")], 50, id="a-container-requests-less"),
    ],
)
def test_a_pod_level_limit_of_a_daemon_set_counts_where_nothing_is_requested(containers, expected):
    """Its template is not defaulted as a pod is: the daemon's pods will request the limit."""
    template = {"spec": {"containers": containers, "resources": {"limits": {"cpu": "700m"}}}}
    document = {
        "metadata": {"name": "agent", "namespace": "kube-system", "uid": "d1"},
        "spec": {"template": template},
    }
    assert dict(decode_daemon_set(json.dumps(document).encode()).shape.requests)["cpu"] == expected


def test_a_namespace_arrives_with_its_labels():
    (watched,) = (each for each in watched_kinds(lambda *_: None) if each.name == "namespaces")
    manifest = {"metadata": {"name": "shop", "labels": {"team": "a"}}, "status": {"phase": "Active"}}
    key, (seen,) = watched.decode(json.dumps(manifest).encode())
    assert (key, seen) == ("shop", NamespaceSeen(Namespace("shop", {"team": "a"})))
    assert watched.gone(key) == NamespaceGone("shop")


def test_a_claim_that_cannot_be_read_is_seen_all_the_same():
    """Its instance must not pass for one without a claim: that would end it without a drain."""
    claims = next(kind for kind in watched_kinds(lambda *_: None) if kind.name == "nodeclaims")
    manifest = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {"name": "default-abcde", "uid": "u", "labels": {"karpenter.sh/nodepool": "default"}},
        "spec": {"requirements": "none"},
        "status": {"providerID": "aws:///us-east-1a/i-1"},
    }
    key, (seen,) = claims.decode(json.dumps(manifest).encode())
    assert key == "default-abcde"
    assert seen.claim.provider_id == "aws:///us-east-1a/i-1"
    assert "requirements" in seen.claim.invalid


DELETED = "2026-01-01T00:00:00Z"
AUTO_MODE = {"group": "eks.amazonaws.com", "kind": "NodeClass", "name": "default"}
OURS = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}


def spec_of(kind, reference):
    named = {"nodeClassRef": reference, "requirements": []}
    return named if kind == "NodeClaim" else {"template": {"spec": named}}


@pytest.mark.parametrize(("kind", "key"), [("NodeClaim", "one"), ("NodePool", "NodePool/one")])
@pytest.mark.parametrize("broken", [False, True], ids=["sound", "broken"])
def test_what_eks_auto_mode_serves_is_left_alone_in_whatever_state_it_is(kind, key, broken):
    """Its kinds are Karpenter's: a claim taken for ours would be deleted for want of an instance."""
    reported = []
    kinds = watched_kinds(lambda *given: reported.append(given))
    watched = next(each for each in kinds if each.path.endswith(f"/karpenter.sh/v1/{kind.lower()}s"))
    manifest = {
        "apiVersion": "karpenter.sh/v1",
        "kind": kind,
        "metadata": {"name": "one", "uid": "u"} | ({"deletionTimestamp": DELETED} if broken else {}),
        "spec": spec_of(kind, AUTO_MODE) | ({"requirements": "none", "weight": "x"} if broken else {}),
    }

    decoded, seen = watched.decode(json.dumps(manifest).encode())
    assert decoded == key
    # A pool of its is known as such, so that users can be told of it.
    assert [type(each).__name__ for each in seen] == (["NeighborPoolSeen"] if kind == "NodePool" else [])
    assert reported == []
    ours = {**manifest, "spec": spec_of(kind, OURS)}
    own_key, seen = watched.decode(json.dumps(ours).encode())
    assert (own_key, len(seen)) == (key, 1)


@pytest.mark.parametrize(("kind", "key"), [("NodeClaim", "one"), ("NodePool", "NodePool/one")])
def test_what_another_provider_serves_is_left_alone(kind, key):
    """A claim taken for ours would be deleted, since its node class is none of ours."""
    reported = []
    watched = next(
        each
        for each in watched_kinds(lambda *given: reported.append(given))
        if each.path.endswith(f"/karpenter.sh/v1/{kind.lower()}s")
    )
    reference = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}
    manifest = {
        "apiVersion": "karpenter.sh/v1",
        "kind": kind,
        "metadata": {"name": "one", "uid": "u"},
        "spec": spec_of(kind, reference),
    }
    assert watched.decode(json.dumps(manifest).encode()) == (key, ())
    assert reported == []


def test_when_a_pod_was_told_to_save_its_work_is_on_the_pod():
    told = {
        "type": "nodeless.dev/CheckpointRequested",
        "status": "True",
        "lastTransitionTime": "2023-11-14T22:13:20Z",
    }
    status = {"conditions": [told]}
    asking = {"annotations": {"nodeless.dev/checkpoint-grace": "10m"}}
    assert decode_pod(pod_json(status=status, **asking)).checkpoint_requested_at == 1_700_000_000
    assert decode_pod(pod_json(status=status)).checkpoint_requested_at is None
    taken_back = {"conditions": [{**told, "status": "False"}]}
    assert decode_pod(pod_json(status=taken_back, **asking)).checkpoint_requested_at is None


@pytest.mark.parametrize("phase", ["Pending", "Running", "Unknown", "Failed"])
def test_a_pod_has_started_when_its_kubelet_says_so_whatever_its_phase_is(phase):
    pod = decode_pod(pod_json(status={"phase": phase, "startTime": "2023-11-14T00:00:00Z"}))
    assert pod.started_at == parse_time("2023-11-14T00:00:00Z")
    assert decode_pod(pod_json(status={"phase": phase})).started_at is None


def test_a_pod_that_never_comes_up_is_not_protected_for_longer_than_it_asked_to():
    asked = {"annotations": {DO_NOT_DISRUPT: "10m"}}
    pod = decode_pod(pod_json(status={"phase": "Pending", "startTime": "2023-11-14T00:00:00Z"}, **asked))
    end = parse_time("2023-11-14T00:10:00Z")
    assert protection(pod, end - 1)
    assert not protection(pod, end)
