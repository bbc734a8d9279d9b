"""A process starts although the API server refuses to give its ConfigMaps: with defaults, and it says so."""

import asyncio
import itertools

import pytest

from nodeless.api.logging_config import LoggingConfig
from nodeless.kube import ApiError, ApiUnavailable
from nodeless.manager.live_logging import LiveLogging
from nodeless.manager.live_settings import read_global_settings
from nodeless.operator.config_sources import ConfigSources
from nodeless.operator.settings import SettingsError

GIVEN = ConfigSources({"CLUSTER_NAME": "demo", "CLUSTER_ENDPOINT": "https://demo"})
THERE = {"data": {"aws.clusterName": "from-the-map", "batchIdleDuration": "3s"}}


class Server:
    """Gives its answers one after the other, the last one for ever."""

    def __init__(self, *answers):
        self.answers = itertools.chain(answers, itertools.repeat(answers[-1]))
        self.asked = 0

    async def get(self, _path):
        self.asked += 1
        answer = next(self.answers)
        if isinstance(answer, Exception):
            raise answer
        return answer


def refused(status):
    return ApiError(status, "Refused", f"the API server said {status}")


def settings(given, *answers):
    server = Server(*answers)
    return asyncio.run(asyncio.wait_for(read_global_settings(server, "karpenter", given, poll=0.0), 10))[
        0
    ], server


@pytest.mark.parametrize("status", [401, 403])
def test_settings_that_may_not_be_read_are_those_that_the_process_was_given(status, capsys):
    found, server = settings(GIVEN, refused(status))
    assert found.cluster_name == "demo"
    assert server.asked == 1
    assert f"the API server said {status}" in capsys.readouterr().out


@pytest.mark.parametrize("status", [429, 500, 503])
def test_settings_that_the_api_server_fails_to_give_are_waited_for_and_then_done_without(status):
    found, server = settings(GIVEN, *[refused(status)] * 3, THERE)
    assert found.batch_idle_seconds == 3
    found, server = settings(GIVEN, refused(status))
    assert found.batch_idle_seconds == 1
    assert server.asked == 60


def test_of_a_value_that_cannot_be_used_the_default_holds_and_the_others_count(capsys):
    data = {
        "aws.clusterName": "demo",
        "batchIdleDuration": "soon",
        "batchMaxDuration": "20s",
        "nodeless.timeBox": "-1",
    }
    found, server = settings(ConfigSources(), {"data": data})
    assert (found.batch_idle_seconds, found.batch_max_seconds, found.time_box) == (1.0, 20.0, 1.0)
    assert server.asked == 1
    told = capsys.readouterr().out
    assert all(
        text in told for text in ("batchIdleDuration='soon'", "nodeless.timeBox='-1'", "the default holds")
    )


def test_a_cluster_without_a_name_is_waited_for_and_told_once(capsys):
    nameless = {"data": {"aws.clusterName": "", "batchMaxDuration": "soon"}}
    found, server = settings(ConfigSources(), *[nameless] * 9, THERE)
    assert (found.cluster_name, server.asked) == ("from-the-map", 10)
    told = capsys.readouterr().out
    assert told.count("aws.clusterName") == 1
    assert "batchMaxDuration='soon'" in told


@pytest.mark.parametrize("variables", [{"BATCH_IDLE_DURATION": "soon"}, {"FEATURE_GATES": "CapacityBuffer"}])
def test_what_the_process_was_given_must_be_right_for_nobody_can_correct_it_meanwhile(variables):
    with pytest.raises(SettingsError):
        settings(ConfigSources({"CLUSTER_NAME": "demo", **variables}), THERE)


def test_without_a_name_of_the_cluster_a_process_waits_until_it_may_read_it():
    found, server = settings(ConfigSources(), *[refused(403)] * 50, THERE)
    assert found.cluster_name == "from-the-map"
    assert server.asked == 51


@pytest.mark.parametrize("error", [refused(403), refused(500), ApiUnavailable("nobody answers")], ids=str)
def test_logging_has_its_defaults_where_its_config_map_cannot_be_read(error, capsys):
    told = []
    logging = LiveLogging(lambda *fields: told.append(fields))
    asyncio.run(logging.read(Server(error), "karpenter", "config-logging"))
    assert logging._good == LoggingConfig()
    assert "config-logging cannot be read" in capsys.readouterr().out
    assert not told
