"""Many claims of one shape are one fleet request, and each still gets one instance, whatever happens."""

import asyncio
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

import pytest

from localenv.aws import LocalAws
from nodeless.cloudprovider import CloudError, InsufficientCapacity
from nodeless.cloudprovider.aws import AwsProvider
from nodeless.cloudprovider.aws.session import AwsSession
from nodeless.launch.groups import group_claims
from nodeless.model.nodes import Instance, NodeClaim
from nodeless.model.pools import Pool
from tests.cloudprovider.conftest import World, a_provider
from tests.cloudprovider.test_provider import NODE_CLASS, POOL, made_by, the_claim, the_pool
from tests.cloudprovider.test_sweep import states


def some_claims(count: int, pool: Pool = POOL, prefix: str = "default") -> tuple[NodeClaim, ...]:
    return group_claims([the_claim(f"{prefix}-{number:05}", pool) for number in range(count)])


async def launched_together(
    provider: AwsProvider,
    claims: Sequence[NodeClaim],
    pool: Pool = POOL,
    *,
    first: bool = True,
    claimed: Collection[str] = (),
) -> dict[str, Any]:
    """By claim its instance, or the error."""
    outcomes = await asyncio.gather(
        *(provider.launch(claim, pool, NODE_CLASS, first=first, claimed=claimed) for claim in claims),
        return_exceptions=True,
    )
    return dict(zip((claim.name for claim in claims), outcomes, strict=True))


def ids(outcomes: dict[str, Any]) -> list[str]:
    return [outcome.id for outcome in outcomes.values() if isinstance(outcome, Instance)]


async def living(provider: AwsProvider) -> set[str]:
    return {instance.id for instance in await provider.instances()}


async def test_a_thousand_instances_take_as_many_calls_as_there_are_shapes(
    aws: LocalAws, world: World
) -> None:
    shapes = {"large": the_pool("m5.large"), "xlarge": the_pool("m5.xlarge"), "older": the_pool("m4.large")}
    async with a_provider() as provider:
        for pool in shapes.values():
            await provider.warm(pool, NODE_CLASS)
        aws.forget_calls()
        made = await asyncio.gather(
            *(
                launched_together(provider, some_claims(count, pool, name), pool)
                for (name, pool), count in zip(shapes.items(), (334, 333, 333), strict=True)
            )
        )
    assert len({each for outcomes in made for each in ids(outcomes)}) == 1000
    assert Counter(call["action"] for call in aws.calls()) == {"CreateFleet": len(shapes)}


async def test_claims_that_differ_in_more_than_their_names_go_alone(aws: LocalAws, world: World) -> None:
    claims = [the_claim("a"), replace(the_claim("b"), labels={"team": "x"})]
    async with a_provider() as provider:
        made = await launched_together(provider, group_claims(claims))
        tags = {instance.id: instance.tags for instance in await provider.instances()}
    assert len(made_by(aws, "CreateFleet")) == 2
    assert {name: tags[each.id]["karpenter.sh/nodeclaim"] for name, each in made.items()} == {
        "a": "a",
        "b": "b",
    }


async def test_three_claims_and_two_instances_leave_one_claim_without(aws: LocalAws, world: World) -> None:
    elsewhere = [{"zone": "us-east-1b"}, {"zone": "us-east-1c"}, {"instanceType": "m5.xlarge"}]
    here = {"instanceType": "m5.large", "zone": "us-east-1a", "remaining": 2}
    aws.set_faults(capacity=[here, *elsewhere])
    claims = some_claims(3)
    async with a_provider() as provider:
        made = await launched_together(provider, claims)
        assert len(set(ids(made))) == 2
        lacking = made[claims[2].name]
        assert isinstance(lacking, InsufficientCapacity)
        assert f"claim {claims[2].name}: InsufficientInstanceCapacity" in str(lacking)
        assert await living(provider) == set(ids(made))


async def test_instances_that_nobody_asked_for_are_ended(
    aws: LocalAws, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = AwsSession.call

    async def generous(self: AwsSession, service: str, method: str, request: Any, **options: Any) -> Any:
        if method == "create_fleet":
            wanted = {**request["TargetCapacitySpecification"], "TotalTargetCapacity": 4}
            request = {**request, "TargetCapacitySpecification": wanted}
        return await call(self, service, method, request, **options)

    monkeypatch.setattr(AwsSession, "call", generous)
    async with a_provider() as provider:
        made = await launched_together(provider, some_claims(1))
        assert await living(provider) == set(ids(made))
    assert Counter(states(aws).values()).keys() <= {"pending", "running", "shutting-down", "terminated"}
    assert len(states(aws)) == 4


async def test_a_refused_batch_is_told_to_each_claim_and_launched_when_asked_for_again(
    aws: LocalAws, world: World
) -> None:
    claims = some_claims(3)
    async with a_provider() as provider:
        await provider.warm(POOL, NODE_CLASS)
        aws.set_faults(errors={"CreateFleet": {"code": "MaxFleetCountExceeded"}})
        refused = await launched_together(provider, claims)
        assert all("MaxFleetCountExceeded" in str(each) for each in refused.values())
        aws.set_faults()
        made = await launched_together(provider, claims, first=False)
        assert await living(provider) == set(ids(made))
        assert len(set(ids(made))) == 3


async def test_a_throttled_batch_loses_none(aws: LocalAws, world: World) -> None:
    async with a_provider() as provider:
        await provider.warm(POOL, NODE_CLASS)
        aws.set_faults(errors={"CreateFleet": {"code": "RequestLimitExceeded", "status": 503, "times": 2}})
        made = await launched_together(provider, some_claims(50))
        assert len(set(ids(made))) == 50
    assert [bool(call.get("error")) for call in made_by(aws, "CreateFleet")] == [True, True, False]


async def test_killed_before_the_request_the_next_leader_sends_one(aws: LocalAws, world: World) -> None:
    async with a_provider() as successor:
        made = await launched_together(successor, some_claims(4), first=False)
        assert len(set(ids(made))) == 4
    assert len(made_by(aws, "CreateFleet")) == 1


async def test_killed_before_the_answer_is_noted_the_next_leader_finds_every_instance(
    aws: LocalAws, world: World
) -> None:
    claims = some_claims(4)
    async with a_provider() as provider:
        made = await launched_together(provider, claims)
    async with a_provider() as successor:
        again = await launched_together(successor, claims, first=False)
        assert sorted(ids(again)) == sorted(ids(made))
        assert {each.labels["node.kubernetes.io/instance-type"] for each in again.values()} == {"m5.large"}
    assert len(made_by(aws, "CreateFleet")) == 1


async def test_killed_while_claims_are_noted_the_others_get_what_is_left(aws: LocalAws, world: World) -> None:
    claims = some_claims(4)
    async with a_provider() as provider:
        made = await launched_together(provider, claims)
    noted = {made[claim.name].provider_id for claim in claims[:2]}
    async with a_provider() as successor:
        rest = await launched_together(successor, claims[2:], first=False, claimed=noted)
        assert sorted(ids(rest)) == sorted(made[claim.name].id for claim in claims[2:])
        assert len(await living(successor)) == 4


async def test_killed_while_claims_are_written_the_written_ones_alone_are_launched(
    aws: LocalAws, world: World
) -> None:
    async with a_provider() as successor:
        made = await launched_together(successor, some_claims(5)[:3], first=False)
        assert await living(successor) == set(ids(made))
        assert len(set(ids(made))) == 3


async def test_reads_that_lag_behind_make_no_second_batch(aws: LocalAws, world: World) -> None:
    """Neither the group's tag nor an id finds them: the client token of the same claims does."""
    claims = some_claims(3)
    async with a_provider() as provider:
        made = await launched_together(provider, claims)
    aws.set_faults(consistency=3600)
    async with a_provider() as successor:
        again = await launched_together(successor, claims, first=False)
        assert {name: each.id for name, each in again.items()} == {
            name: each.id for name, each in made.items()
        }
        aws.set_faults()
        assert await living(successor) == set(ids(made))


async def test_a_batch_whose_request_has_changed_since_finds_its_instances(
    aws: LocalAws, world: World
) -> None:
    claims = some_claims(3)
    async with a_provider() as provider:
        made = await launched_together(provider, claims)
        # as if the look-up before the launch had missed them
        order = await provider._launch_request(claims, the_pool("m5.xlarge"), NODE_CLASS)
        again = await provider._launcher.launch(order, lambda answer: None)
        assert sorted(ids(again)) == sorted(ids(made))
    assert made_by(aws, "CreateFleet")[-1]["error"] == "IdempotentParameterMismatch"


async def test_a_claim_that_could_not_be_noted_gets_its_own_instance_again(
    aws: LocalAws, world: World
) -> None:
    claims = some_claims(3)
    async with a_provider() as provider:
        made = await launched_together(provider, claims)
        again = await launched_together(provider, claims[1:2], first=False)
        assert ids(again) == [made[claims[1].name].id]
        tags = {instance.id: instance.tags for instance in await provider.instances()}
        assert tags[ids(again)[0]]["karpenter.sh/nodeclaim"] == claims[1].name


async def test_ids_are_described_together_and_an_unknown_one_harms_no_other(
    aws: LocalAws, world: World
) -> None:
    async with a_provider() as provider:
        made = ids(await launched_together(provider, some_claims(20)))
        aws.forget_calls()
        found = await asyncio.gather(*(provider.find(each) for each in made))
        assert [each.id for each in found if each] == made
        assert len(made_by(aws, "DescribeInstances")) == 1
        odd = await asyncio.gather(provider.find("i-0123456789abcdef0"), provider.find(made[0]))
        assert odd[0] is None
        assert odd[1] is not None


@pytest.mark.parametrize("code", ["InternalError", "UnauthorizedOperation"])
async def test_terminations_that_fail_together_are_told_to_each(
    aws: LocalAws, world: World, code: str
) -> None:
    async with a_provider() as provider:
        made = ids(await launched_together(provider, some_claims(2)))
        aws.set_faults(errors={"TerminateInstances": {"code": code, "status": 403}})
        ended = await asyncio.gather(*(provider.terminate(each) for each in made), return_exceptions=True)
        assert all(isinstance(each, CloudError) for each in ended)
        aws.set_faults()
        assert await asyncio.gather(*(provider.terminate(each) for each in made)) == [True, True]


async def test_what_a_hundred_claims_may_have_launched_is_asked_for_in_one_call(
    aws: LocalAws, world: World
) -> None:
    """They end without a known instance, as after a zone ran dry: one answer says so for all."""
    async with a_provider() as provider:
        launched = await provider.launch(the_claim("mine"), POOL, NODE_CLASS)
        ending = await provider.launch(the_claim("ending"), POOL, NODE_CLASS)
        await provider.terminate(ending.id)
        aws.forget_calls()
        names = ["mine", "ending", *(f"never-{number}" for number in range(98))]
        found = await asyncio.gather(*(provider.instances_of(name) for name in names))
    assert [instance.id for instance in found[0]] == [launched.id]
    assert found[2:] == [()] * 98
    assert Counter(call["action"] for call in aws.calls()) == {"DescribeInstances": 1}
