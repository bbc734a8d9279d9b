"""A leader that lost its lease does nothing any more, whatever it was about to do."""

from __future__ import annotations

import os
import signal
import time

import pytest

from localenv.aws import LocalAws
from tests.chaos.link import Link
from tests.chaos.supervisor import LOST
from tests.chaos.world import World
from tests.controllers.process import lease_path

pytestmark = [pytest.mark.cluster, pytest.mark.long, pytest.mark.drawn("leaders that lost their lease")]

#: Calls to AWS that change something begin with one of these.
CHANGING = ("Create", "Terminate", "Run", "Delete", "Modify", "Put")


def own_credentials(aws: LocalAws, name: str) -> tuple[str, dict[str, str]]:
    """A user of AWS by this name: its ARN, and the environment that makes calls as it."""
    iam = aws.client("iam")
    arn = iam.create_user(UserName=name)["User"]["Arn"]
    key = iam.create_access_key(UserName=name)["AccessKey"]
    return arn, {
        "AWS_ACCESS_KEY_ID": key["AccessKeyId"],
        "AWS_SECRET_ACCESS_KEY": key["SecretAccessKey"],
    }


def changes(aws: LocalAws, principal: str) -> list[tuple[float, str]]:
    """When a principal asked AWS to change what."""
    return [
        (each["time"], each["action"])
        for each in aws.calls()
        if each["principal"] == principal and str(each["action"]).startswith(CHANGING)
    ]


def leads(world: World, identity: str) -> float:
    """Wait until a replica holds the lease; since when, by the clock."""

    def holder() -> bool:
        lease = world.api.find(lease_path(world.namespace))
        return lease is not None and lease["spec"].get("holderIdentity") == identity

    world.until(holder, f"{identity} leads")
    return time.time()


def test_a_leader_cut_off_from_the_api_server_ends_before_another_one_acts(world: World) -> None:
    world.pools()
    arn, key = own_credentials(world.aws, "first")
    link = Link(world.plane, world.namespace, world.directory)
    key["KUBECONFIG"] = str(link.kubeconfig)
    with world.leaders(name="first", LEADER_ELECT="true", **key) as first:
        leads(world, "first")
        world.deploy("before", 1, cpu="1100m")
        world.runs(before=1)
        assert changes(world.aws, arn)
        with world.leaders(name="second", LEADER_ELECT="true") as second:
            link.cut()
            world.deploy("after", 1, cpu="1100m")
            # Ten seconds without a renewal, then it ends by itself; the other may lead after fifteen.
            world.until(lambda: first.process.poll() is not None, "the first to end by itself", 60)
            since = leads(world, "second")
            assert first.process.poll() == LOST
            assert "lost the lease" in first.log.read_text()
            world.runs(before=1, after=1)
            assert not [each for each in changes(world.aws, arn) if each[0] > since]
            second.check()
    link.close()
    world.story.append("a leader cut off from the API server")


@pytest.mark.parametrize("place", ["before LaunchInstance", "before CreateClaim"])
def test_a_leader_that_was_suspended_beyond_its_lease_does_not_go_on(world: World, place: str) -> None:
    world.pools()
    arn, key = own_credentials(world.aws, "first")
    with world.leaders(name="first", stop_at=place, LEADER_ELECT="true", **key) as first:
        leads(world, "first")
        world.deploy("web", 1, cpu="1100m")
        world.until(lambda: first.died_at == [place], f"the first to stop {place}")
        with world.leaders(name="second", LEADER_ELECT="true") as second:
            since = leads(world, "second")
            world.runs(web=1)
            os.kill(first.pid, signal.SIGCONT)
            world.until(lambda: first.process.poll() is not None, "the first to end by itself", 60)
            assert first.process.poll() == LOST
            assert not [each for each in changes(world.aws, arn) if each[0] > since]
            assert len(world.claims()) == len(world.aws.instances()) == 1
            second.check()
    world.story.append(f"a leader suspended {place}")


def test_a_leader_that_was_suspended_between_two_tries_of_a_call_does_not_try_again(world: World) -> None:
    arn, key = own_credentials(world.aws, "first")
    refused = {"code": "InternalError", "status": 500}
    # Late, so that the leader is suspended while it waits for a refusal and not as it sends the next try.
    world.aws.set_faults(errors={"CreateLaunchTemplate": refused}, delay={"CreateLaunchTemplate": 5.0})
    with world.leaders(name="first", LEADER_ELECT="true", **key) as first:
        leads(world, "first")
        world.pools()
        world.until(lambda: changes(world.aws, arn), "the first to try")
        os.kill(first.pid, signal.SIGSTOP)
        world.aws.set_faults()
        with world.leaders(name="second", LEADER_ELECT="true") as second:
            since = leads(world, "second")
            world.deploy("web", 1, cpu="1100m")
            world.runs(web=1)
            os.kill(first.pid, signal.SIGCONT)
            world.until(lambda: first.process.poll() is not None, "the first to end by itself", 60)
            assert first.process.poll() == LOST
            assert not [each for each in changes(world.aws, arn) if each[0] > since]
            second.check()
    world.story.append("a leader suspended between two tries")
