"""Zonal shifts of the local AWS."""

from __future__ import annotations

from datetime import timedelta

import pytest
from botocore.exceptions import ClientError

from localenv.aws import LocalAws
from tests.localenv.aws.world import World


def test_a_shift_is_told_until_it_is_cancelled_and_there_is_one_at_a_time(
    aws: LocalAws, world: World
) -> None:
    eks, shifts = aws.client("eks"), aws.client("arc-zonal-shift")
    arn = world.cluster()["arn"]
    with pytest.raises(ClientError, match="ResourceNotFoundException"):
        shifts.get_managed_resource(resourceIdentifier=arn)
    eks.update_cluster_config(name="demo", zonalShiftConfig={"enabled": True})
    assert shifts.get_managed_resource(resourceIdentifier=arn)["zonalShifts"] == []
    asked = {"resourceIdentifier": arn, "awayFrom": "use1-az1", "comment": "ill"}
    with pytest.raises(ClientError, match="ValidationException"):
        shifts.start_zonal_shift(**asked, expiresIn="4d")
    started = shifts.start_zonal_shift(**asked, expiresIn="30m")
    assert started["expiryTime"] - started["startTime"] == timedelta(minutes=30)
    (shift,) = shifts.get_managed_resource(resourceIdentifier=arn)["zonalShifts"]
    assert (shift["awayFrom"], shift["appliedStatus"]) == ("use1-az1", "APPLIED")
    with pytest.raises(ClientError, match="ConflictException"):
        shifts.start_zonal_shift(**asked, expiresIn="1h")
    shifts.cancel_zonal_shift(zonalShiftId=shift["zonalShiftId"])
    assert shifts.get_managed_resource(resourceIdentifier=arn)["zonalShifts"] == []
    with pytest.raises(ClientError, match="ResourceNotFoundException"):
        shifts.cancel_zonal_shift(zonalShiftId=shift["zonalShiftId"])
