"""What is wrong with an object stands on the object, with the generation that was looked at."""

import asyncio
from dataclasses import replace

import pytest
import structlog

from nodeless.api.kinds import AWS_NODE_TEMPLATE, EC2_NODE_CLASS, NODE_CLAIM, NODE_POOL, PROVISIONER
from nodeless.cloudprovider.aws import AwsProvider
from tests.api.manifests import ec2_node_class, inline, node_pool, node_template, provisioner, requirement
from tests.controllers.world import AWS_SETTINGS, DISCOVERY, a_pod

pytestmark = pytest.mark.cluster

GENERATIONS = {"v1alpha5": (PROVISIONER, AWS_NODE_TEMPLATE), "v1": (NODE_POOL, EC2_NODE_CLASS)}


@pytest.fixture(params=GENERATIONS)
def generation(request):
    return request.param


@pytest.fixture(autouse=True)
def clean(api, definitions):
    yield
    for kind in (NODE_POOL, PROVISIONER, EC2_NODE_CLASS, AWS_NODE_TEMPLATE):
        for found in api.list(kind.path()):
            path = kind.path(found["metadata"]["name"])
            api.patch(path, {"metadata": {"finalizers": None}})
            api.delete(path, missing_ok=True)
            api.wait_gone(path)


def a_pool(generation, *requirements):
    if generation == "v1":
        return node_pool(template={"requirements": [*requirements]})
    return provisioner(requirements=[*requirements] or None)


def a_class(generation, **selector):
    tags = selector or {"karpenter.sh/discovery": "demo"}
    if generation == "v1":
        return ec2_node_class(
            amiSelectorTerms=[{"alias": "al2@latest"}], subnetSelectorTerms=[{"tags": tags}]
        )
    return node_template(subnetSelector=tags)


def told(found, type_):
    """Status, reason, message and observed generation of a condition."""
    conditions = {each["type"]: each for each in ((found or {}).get("status") or {}).get("conditions") or ()}
    condition = conditions.get(type_, {})
    return tuple(condition.get(name) for name in ("status", "reason", "message", "observedGeneration"))


async def stands(rig, kind, type_, status, generation=1):
    """Wait until a condition has a status and was seen on a generation; gives back reason and message."""

    def there(found):
        given = told(found, type_)
        return (given[0], given[3]) == (status, generation)

    found = await asyncio.to_thread(rig.api.wait, kind.path("default"), there)
    _, reason, message, _ = told(found, type_)
    return reason, message


def test_a_reference_to_nothing_stands_on_the_pool_until_it_is_there(scene, generation):
    pool, node_class = GENERATIONS[generation]

    async def scenario(rig, namespace):
        await rig.create(a_pool(generation))
        reason, message = await stands(rig, pool, "NodeClassReady", "False")
        assert reason == "NodeClassNotFound"
        assert f"{node_class.kind}/default" in message
        assert (await stands(rig, pool, "Ready", "False"))[0] == "NodeClassReadyFalse"

        await rig.create(a_class(generation))
        await stands(rig, pool, "Ready", "True")

    scene(scenario)


def test_an_invalid_object_says_every_fault_until_it_is_corrected(scene, generation):
    """Stored while no webhook was asked."""
    pool, _ = GENERATIONS[generation]
    faulty = {
        "v1alpha5": [requirement("karpenter.sh/unknown", "Exists"), requirement("team", "In", "x y")],
        "v1": [requirement("karpenter.sh/capacity-type", "In", "cheap"), requirement("team", "In", "x y")],
    }[generation]

    async def scenario(rig, namespace):
        await rig.create(a_class(generation), a_pool(generation, *faulty))
        _, message = await stands(rig, pool, "ValidationSucceeded", "False")
        assert "requirements[0]" in message
        assert "requirements[1].values[0]" in message
        assert (await stands(rig, pool, "NodeClassReady", "Unknown"))[0] == "NotChecked"

        corrected = a_pool(generation)["spec"]
        spec = corrected if generation == "v1" else {**corrected, "requirements": None}
        await asyncio.to_thread(rig.api.patch, pool.path("default"), {"spec": spec})
        await stands(rig, pool, "ValidationSucceeded", "True", generation=2)
        await stands(rig, pool, "Ready", "True", generation=2)

    scene(scenario)


def test_what_selects_nothing_stands_on_the_node_class(scene, generation):
    _, node_class = GENERATIONS[generation]

    async def scenario(rig, namespace):
        await rig.create(a_class(generation, no="such"))
        reason, message = await stands(rig, node_class, "SubnetsReady", "False")
        assert reason == "SubnetsNotFound"
        assert message.startswith("SubnetSelector did not match any Subnets: no subnets match subnetSelector")
        assert "hint: tag the subnets" in message
        assert (await stands(rig, node_class, "ValidationSucceeded", "False"))[0] == "DependenciesNotReady"
        await stands(rig, node_class, "SecurityGroupsReady", "True")

        found = a_class(generation)["spec"]
        if generation == "v1alpha5":
            found["subnetSelector"]["no"] = None
        await asyncio.to_thread(rig.api.patch, node_class.path("default"), {"spec": found})
        await stands(rig, node_class, "Ready", "True", generation=2)

    scene(scenario)


def test_a_placement_group_that_is_not_there_is_named_and_reservations_that_are_there_are_listed(scene, aws):
    """What the class selects beside subnets, groups and images, each with a condition of its own."""
    reservation = aws.reserve("p5.48xlarge", "us-east-1a", endsIn=3600, tags={"team": "search"})

    async def scenario(rig, namespace):
        terms = [{"tags": {"team": "search"}}]
        await rig.create(
            ec2_node_class(
                amiSelectorTerms=[{"alias": "al2@latest"}],
                capacityReservationSelectorTerms=terms,
                placementGroupSelector={"name": "near"},
            )
        )
        reason, message = await stands(rig, EC2_NODE_CLASS, "PlacementGroupReady", "False")
        assert (reason, "there is no placement group near" in message) == ("PlacementGroupNotFound", True)
        await stands(rig, EC2_NODE_CLASS, "CapacityReservationsReady", "True")

        rig.network.ec2.create_placement_group(GroupName="near", Strategy="spread")
        path = EC2_NODE_CLASS.path("default")
        await asyncio.to_thread(rig.api.patch, path, {"spec": {"tags": {"looked": "again"}}})
        await stands(rig, EC2_NODE_CLASS, "Ready", "True", generation=2)
        (found,) = (await asyncio.to_thread(rig.api.get, path))["status"]["capacityReservations"]
        assert (found["id"], found["reservationType"]) == (reservation, "capacity-block")
        assert (found["instanceType"], found["state"]) == ("p5.48xlarge", "active")
        assert found["endTime"].endswith("Z")

    scene(scenario)


@pytest.mark.parametrize(
    ("kind", "manifest", "faults"),
    [
        (
            AWS_NODE_TEMPLATE,
            node_template(amiFamily="al2", tags={"": "x"}),
            ('spec.amiFamily: "al2"', "did you mean AL2?", "spec.tags"),
        ),
        (
            EC2_NODE_CLASS,
            ec2_node_class(kubelet={"evictionHard": {"memory.available": "lots"}}),
            ('spec.kubelet.evictionHard["memory.available"]: "lots"',),
        ),
    ],
    ids=["v1alpha1", "v1"],
)
def test_an_invalid_node_class_says_every_fault_and_its_pool_says_so_too(scene, kind, manifest, faults):
    """Stored while no webhook was asked, and past what the schema refuses."""
    pool, made = {
        AWS_NODE_TEMPLATE: (PROVISIONER, provisioner()),
        EC2_NODE_CLASS: (NODE_POOL, node_pool()),
    }[kind]

    async def scenario(rig, namespace):
        await rig.create(manifest, made)
        reason, message = await stands(rig, kind, "ValidationSucceeded", "False")
        assert reason == "Invalid"
        for fault in faults:
            assert fault in message
        assert (await stands(rig, kind, "Ready", "False"))[0] == "ValidationSucceededFalse"
        reason, message = await stands(rig, pool, "NodeClassReady", "False")
        assert reason == "NodeClassNotReady"
        assert f"{kind.kind}/default" in message

    scene(scenario)


def test_what_an_inline_provider_does_not_find_stands_on_the_provisioner(scene):
    nowhere, found = {"no": "such"}, DISCOVERY

    async def scenario(rig, namespace):
        await rig.create(inline(subnetSelector=nowhere, securityGroupSelector=found, instanceProfile=None))
        reason, message = await stands(rig, PROVISIONER, "NodeClassReady", "False")
        assert reason == "NodeClassNotReady"
        assert "subnetSelector" in message

        provider = {"spec": {"provider": {"subnetSelector": {"no": None, **found}}}}
        await asyncio.to_thread(rig.api.patch, PROVISIONER.path("default"), provider)
        await stands(rig, PROVISIONER, "Ready", "True", generation=2)

    scene(scenario)


def test_what_keeps_a_claim_from_its_instance_stands_on_the_claim_until_it_is_gone(
    scene, aws, network, generation
):
    """Whoever asks for no dry runs has claims that are refused."""
    aws.set_faults(errors={"CreateFleet": {"code": "UnauthorizedOperation", "message": "not you"}})
    cloud = AwsProvider(replace(AWS_SETTINGS, dry_runs=False), structlog.get_logger())

    async def scenario(rig, namespace):
        large = requirement("node.kubernetes.io/instance-type", "In", "m5.large")
        await rig.create(a_class(generation), a_pool(generation, large), a_pod("web", namespace))

        def refused(claims):
            return bool(claims) and told(claims[0], "Launched")[0] == "False"

        (claim,) = await rig.until(lambda: rig.api.list(NODE_CLAIM.path()), refused)
        _, reason, message, _ = told(claim, "Launched")
        assert reason == "Unauthorized"
        assert "hint: allow ec2:CreateFleet" in message
        assert told(claim, "Ready")[:3] == ("False", "LaunchedFalse", message)

        aws.set_faults()

        def ready(claims):
            return bool(claims) and told(claims[0], "Ready")[0] == "True"

        (after,) = await rig.until(lambda: rig.api.list(NODE_CLAIM.path()), ready)
        assert after["metadata"]["uid"] == claim["metadata"]["uid"]
        assert told(after, "Launched")[0] == "True"

    scene(scenario, cloud=cloud)


def test_a_class_whose_launches_are_forbidden_says_so_and_its_pool_makes_no_claims(scene, aws):
    aws.set_faults(errors={"RunInstances": {"code": "UnauthorizedOperation", "message": "not you"}})

    async def scenario(rig, namespace):
        large = requirement("node.kubernetes.io/instance-type", "In", "m5.large")
        await rig.create(a_class("v1"), a_pool("v1", large))
        reason, message = await stands(rig, EC2_NODE_CLASS, "ValidationSucceeded", "False")
        assert reason == "RunInstancesAuthCheckFailed"
        assert "hint: allow ec2:RunInstances" in message
        assert (await stands(rig, EC2_NODE_CLASS, "Ready", "False"))[1] == message
        assert (await stands(rig, EC2_NODE_CLASS, "SubnetsReady", "True"))[1] == ""
        assert "not you" in (await stands(rig, NODE_POOL, "NodeClassReady", "False"))[1]

        await rig.create(a_pod("web", namespace))
        await rig.event(namespace, "web", "FailedScheduling", "not you")
        assert await asyncio.to_thread(rig.api.list, NODE_CLAIM.path()) == []

        aws.set_faults()
        # A class that is another one is asked about at once.
        changed = {"spec": {"tags": {"team": "a"}}}
        await asyncio.to_thread(rig.api.patch, EC2_NODE_CLASS.path("default"), changed)
        await stands(rig, EC2_NODE_CLASS, "Ready", "True", generation=2)
        await stands(rig, NODE_POOL, "Ready", "True")
        await rig.running(namespace, "web")

    scene(scenario)


def test_a_role_that_does_not_exist_is_asked_for_again_with_pauses_and_written_once(scene, aws):
    """Each refusal of IAM has another request id, and a status that differs would start the next round."""

    async def scenario(rig, namespace):
        path = EC2_NODE_CLASS.path("lost")
        lost = ec2_node_class(amiSelectorTerms=[{"alias": "al2@latest"}], instanceProfile=None, role="nobody")
        await rig.create(named(lost, "lost"), of_class("lost"))

        def told_of_role(found):
            return told(found, "InstanceProfileReady")[:2] == ("False", "RoleNotFound")

        first = await rig.until(lambda: rig.api.get(path), told_of_role)
        # Time in which other things happen: a class, a pool, a node and a pod on it.
        await rig.create(a_class("v1"), of_class("default"), a_pod("web", namespace))
        await rig.running(namespace, "web")

        asked = [call for call in aws.calls() if call["action"] == "AddRoleToInstanceProfile"]
        assert 1 <= len(asked) <= 6
        last = await asyncio.to_thread(rig.api.get, path)
        assert last["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
        assert "request" not in told(last, "InstanceProfileReady")[2]

    scene(scenario)


#: Faults of a node class: the members that make it, the condition, and what its message says.
FAULTS = {
    "subnets": (
        {"subnetSelectorTerms": [{"tags": {"no": "such"}}]},
        ("SubnetsReady", "SubnetsNotFound", "no subnets match subnetSelectorTerms no=such"),
    ),
    "groups": (
        {"securityGroupSelectorTerms": [{"tags": {"no": "such"}}]},
        (
            "SecurityGroupsReady",
            "SecurityGroupsNotFound",
            "no security groups match securityGroupSelectorTerms no=such",
        ),
    ),
    "images": (
        {"amiFamily": "AL2", "amiSelectorTerms": [{"name": "no-such-image"}]},
        ("AMIsReady", "AMINotFound", "no-such-image"),
    ),
    "architecture": (
        {"amiFamily": "AL2", "amiSelectorTerms": [{"name": "amazon-eks-arm64-node-1.29-*"}]},
        ("AMIsReady", "AMINotFound", "no image fits the instance types of NodePool/architecture (amd64)"),
    ),
    "mime": (
        {"userData": "MIME-Version: 1.0\n\nplain"},
        ("ValidationSucceeded", "UserDataInvalid", "multipart/mixed"),
    ),
    "toml": (
        {"amiSelectorTerms": [{"alias": "bottlerocket@latest"}], "userData": "[settings"},
        ("ValidationSucceeded", "UserDataInvalid", "is not TOML"),
    ),
    "yaml": (
        {
            "amiSelectorTerms": [{"alias": "al2023@latest"}],
            "userData": "apiVersion: node.eks.aws/v1alpha1\nspec: [",
        },
        ("ValidationSucceeded", "UserDataInvalid", "is not YAML"),
    ),
}


def named(document, name):
    return {**document, "metadata": {"name": name}}


def of_class(name):
    """A pool of x86 nodes of a node class, both of one name."""
    reference = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": name}
    entries = [
        requirement("kubernetes.io/arch", "In", "amd64"),
        requirement("karpenter.sh/capacity-type", "In", "on-demand"),
        requirement("node.kubernetes.io/instance-type", "In", "m5.large"),
    ]
    return named(node_pool(template={"nodeClassRef": reference, "requirements": entries}), name)


def test_each_fault_of_a_node_class_is_named_and_other_pools_go_on(scene, eks):
    good = {"amiSelectorTerms": [{"alias": "al2@latest"}]}

    async def scenario(rig, namespace):
        for name, (members, _) in FAULTS.items():
            await rig.create(named(ec2_node_class(**{**good, **members}), name), of_class(name))
        await rig.create(ec2_node_class(**good), of_class("default"), a_pod("web", namespace))

        for name, (_, (type_, reason, text)) in FAULTS.items():
            path = EC2_NODE_CLASS.path(name)
            found = await rig.until(
                lambda path=path: rig.api.get(path), lambda seen, type_=type_: told(seen, type_)[0] == "False"
            )
            assert told(found, type_)[1] == reason
            assert text in told(found, type_)[2]
            assert told(found, "Ready")[0] == "False"
            pool = await rig.until(
                lambda name=name: rig.api.get(NODE_POOL.path(name)),
                lambda seen: told(seen, "NodeClassReady")[0] == "False",
            )
            assert text in told(pool, "NodeClassReady")[2]

        await rig.running(namespace, "web")
        assert (await rig.claim())["metadata"]["labels"]["karpenter.sh/nodepool"] == "default"

    scene(scenario)
