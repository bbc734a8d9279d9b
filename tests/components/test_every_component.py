"""What holds of each component when it is used alone, as in a stack that has the rest from elsewhere."""

from functools import cache
from typing import Any

import pulumi
import pytest

import pulumi_nodeless
from localenv.pulumi.aws.replacement import FORCE_NEW
from localenv.pulumi.input_check import arguments_class
from localenv.pulumi.kubernetes.releases import Release
from localenv.pulumi.kubernetes.replacement import BY_KIND, LOOKED_UP
from pulumi_nodeless import ArgumentError
from tests.components.recorder import ACCOUNT, Recorder, run
from tests.components.test_package import COMPONENTS

ROLE = f"arn:aws:iam::{ACCOUNT}:role/nodes"
OIDC = {"oidc_provider_arn": f"arn:aws:iam::{ACCOUNT}:oidc-provider/x", "oidc_issuer": "oidc.example/id/1"}
DEMO = {"cluster_name": "demo"}
SUBNETS = {"vpc_id": "vpc-1", "private_subnet_ids": ["subnet-1", "subnet-2"]}
#: The least that each needs, as plain values.
ARGS: dict[str, dict[str, Any]] = {
    "AdoptedNetwork": {**DEMO, **SUBNETS},
    "Capacity": {
        **DEMO,
        "node_classes": [{"name": "default", "instance_profile": "nodes"}],
        "node_pools": [{"name": "default", "node_class": "default"}],
        "node_templates": [{"name": "default"}],
        "provisioners": [{"name": "default", "node_template": "default"}],
    },
    "Cluster": {**DEMO, **SUBNETS, "authentication_mode": "API"},
    "Controller": {**DEMO, "cluster_endpoint": "https://demo.eks", "default_instance_profile": "nodes"},
    "ControllerIdentity": {**DEMO, **OIDC, "node_role_arn": ROLE},
    "ControllerImage": DEMO,
    "Environment": DEMO,
    "FargateProfiles": {**DEMO, "pod_execution_role_arn": ROLE, "subnet_ids": ["subnet-1"]},
    "InterruptionQueue": DEMO,
    "LoadBalancerController": {**DEMO, **OIDC, "vpc_id": "vpc-1"},
    "Network": DEMO,
    "NodeAccess": {**DEMO, "node_role_arn": ROLE},
    "NodeIdentity": DEMO,
    "PodExecutionRole": DEMO,
    "TeardownGuard": {"namespace": "karpenter"},
}


#: The providers of the program; an environment makes one more, for its cluster.
OWN = {"own-aws", "own-cluster", "own-builder"}


def alone(component: str, made: list[Any] | None = None, **opts: Any) -> Recorder:
    """What one component registers with the least of arguments, and these options."""

    def program() -> None:
        import pulumi_aws as aws  # noqa: PLC0415 - the SDKs are slow to import
        import pulumi_docker_build as docker_build  # noqa: PLC0415
        import pulumi_kubernetes as k8s  # noqa: PLC0415

        providers: list[pulumi.ProviderResource] = [
            aws.Provider("own-aws", region="us-east-1"),
            k8s.Provider("own-cluster"),
            docker_build.Provider("own-builder"),
        ]
        given = {**ARGS[component], **opts.pop("args", {})}
        options = pulumi.ResourceOptions(providers=providers, **opts)
        one = getattr(pulumi_nodeless, component)("one", given, options)
        if made is not None:
            made.append(one)

    return run(program)


@cache
def usual(component: str) -> tuple[Recorder, Any]:
    """The same with nothing else given, made once for all who only look at it; and the component itself."""
    made: list[Any] = []
    recorder = alone(component, made)
    return recorder, made[0]


def children(recorder: Recorder) -> list[Any]:
    """All that is below the component."""
    return [resource for resource in recorder.resources.values() if not resource.name.startswith("own-")]


@pytest.mark.parametrize("component", COMPONENTS)
def test_of_everything_that_a_component_makes_it_is_known_what_replaces_it(component: str) -> None:
    """A rule of the real providers' lists, of which each is told with its source."""
    for made in children(usual(component)[0]):
        if made.token.startswith("aws:"):
            assert made.token in FORCE_NEW
        elif made.token.startswith("kubernetes:") and made.token != Release.token:
            kind = (made.inputs["apiVersion"], made.inputs["kind"])
            ours = kind[0].startswith(("karpenter.sh/", "karpenter.k8s.aws/"))
            assert ours or kind in BY_KIND or kind in LOOKED_UP


def test_every_component_is_looked_at() -> None:
    assert sorted(ARGS) == COMPONENTS


@pytest.mark.parametrize("component", COMPONENTS)
def test_alone_it_is_made_under_its_name_with_the_providers_that_are_given(component: str) -> None:
    recorder, _ = usual(component)
    assert recorder.faults == []
    (top,) = [
        resource
        for resource in recorder.resources.values()
        if resource.token == f"nodeless:index:{component}"
    ]
    assert top.name == "one"
    below = [child for child in children(recorder) if child is not top]
    assert below
    for each in below:
        assert each.name.startswith(f"{recorder.resources[each.parent].name}-"), "an alias of it covers them"
        if each.custom and not each.token.startswith("pulumi:providers:"):
            assert each.provider.split("::")[-2] in {*OWN, "one-kubernetes"}, each.name


@pytest.mark.parametrize("component", COMPONENTS)
def test_without_what_it_needs_it_says_so_before_anything_is_registered(component: str) -> None:
    needed = next(iter(ARGS[component]))
    recorder = Recorder()
    given = {**ARGS[component], needed: None}
    with pytest.raises(ArgumentError) as caught:
        run(lambda: getattr(pulumi_nodeless, component)("one", given), recorder=recorder)
    assert f"{needed}: required argument is missing" in str(caught.value)
    assert recorder.resources == {}


@pytest.mark.parametrize(
    "component", [component for component in COMPONENTS if "cluster_name" in ARGS[component]]
)
@pytest.mark.parametrize("name", ["c" * 101, "under.way", "-dash", ""])
def test_a_name_that_eks_refuses_is_refused_before_anything_is_registered(component: str, name: str) -> None:
    recorder = Recorder()
    given = {**ARGS[component], "cluster_name": name}
    with pytest.raises(ArgumentError) as caught:
        run(lambda: getattr(pulumi_nodeless, component)("one", given), recorder=recorder)
    (problem,) = [problem for problem in caught.value.problems if problem.path == "cluster_name"]
    assert str(problem).startswith(
        f"cluster_name: {name!r} is not a name that EKS accepts (hint: up to 100 letters"
    )
    assert recorder.resources == {}


@pytest.mark.parametrize("component", ["FargateProfiles", "NodeAccess"])
def test_a_name_that_is_known_only_later_passes_where_it_is_handed_on(component: str) -> None:
    made = alone(component, args={"cluster_name": pulumi.Output.from_input("demo")})
    names = {each.inputs["clusterName"] for each in made.custom() if "clusterName" in each.inputs}
    assert names == {"demo"}


@pytest.mark.parametrize("component", COMPONENTS)
def test_its_outputs_are_those_that_it_declares(component: str) -> None:
    _, one = usual(component)
    cls = getattr(pulumi_nodeless, component)
    for name in cls.__annotations__:
        assert isinstance(getattr(one, name), pulumi.Output), f"{component}.{name}"


@pytest.mark.parametrize("component", COMPONENTS)
def test_what_is_protected_is_protected_whole(component: str) -> None:
    unprotected = [child.name for child in children(alone(component, protect=True)) if not child.protect]
    assert unprotected == []


def taken(component: str) -> bool:
    """Whether the component takes tags."""
    arguments = getattr(pulumi_nodeless, f"{component}Args")
    return "tags" in arguments.__annotations__


@pytest.mark.parametrize("component", [component for component in COMPONENTS if taken(component)])
def test_tags_reach_every_resource_that_takes_tags(component: str) -> None:
    recorder = alone(component, args={"tags": {"team": "web"}})
    takes_tags = [
        child
        for child in children(recorder)
        if child.token.startswith(("aws:", "eks:")) and hasattr(arguments_class(child.token), "tags")
    ]
    assert takes_tags
    assert [
        takes_tag.name
        for takes_tag in takes_tags
        if (takes_tag.inputs.get("tags") or {}).get("team") != "web"
    ] == []


@pytest.mark.parametrize("component", [component for component in COMPONENTS if not taken(component)])
def test_without_tags_it_makes_nothing_of_its_own_that_takes_them(component: str) -> None:
    made = [child for child in children(usual(component)[0]) if child.token.startswith(("aws:", "eks:"))]
    assert {each.token for each in made} <= {"aws:ec2/tag:Tag"}
