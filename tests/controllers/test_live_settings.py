"""Settings that change while the controller runs."""

import math

import pytest
import structlog

from nodeless.kube import ConfigMapGone, ConfigMapSeen
from nodeless.manager.live_settings import LiveSettings
from nodeless.operator.config_sources import ConfigSources
from nodeless.operator.settings import SETTINGS, GlobalSettings
from tests.controllers.process import leads, lines, scrape
from tests.controllers.test_settings import TABLE
from tests.fuzz.drawing import DURATIONS, HOSTILE, QUANTITIES

NAME = "karpenter-global-settings"
BASE = {"aws.clusterName": "demo"}


class Running:
    """A process's settings, what they were heard to become, and what was complained of."""

    def __init__(self, given=ConfigSources(), **data):  # noqa: B008 - a frozen value
        self.data = {**BASE, **data}
        self.heard, self.complaints = [], []
        started = GlobalSettings.from_config_map(self.data, given)
        self.live = LiveSettings(started, self.data, given, lambda *told: self.complaints.append(told))
        self.live.listen(self.heard.append)

    def change(self, **data):
        self.data = {key: text for key, text in {**self.data, **data}.items() if text is not None}
        with structlog.testing.capture_logs() as logs:
            self.live.handle(ConfigMapSeen(NAME, "u-1", self.data))
        return logs


@pytest.mark.parametrize(
    ("key", "name", "default", "text", "value", "bad"), TABLE, ids=[row[0] for row in TABLE]
)
def test_a_change_takes_effect_at_once_or_says_that_it_needs_a_restart(key, name, default, text, value, bad):
    running = Running()
    (line,) = running.change(**{key: text})
    assert f"setting {key} changed from {default!r} to {value!r}" in line["event"]
    assert (line["key"], line["old"], line["new"]) == (key, default, value)
    if SETTINGS[name].live:
        assert getattr(running.live.current, name) == getattr(running.heard[-1], name) == value
    else:
        assert "restart the controller" in line["event"]
        assert getattr(running.live.current, name) == default
        assert len(running.heard) == 1


@pytest.mark.parametrize(
    ("key", "name", "default", "text", "value", "bad"),
    [row for row in TABLE if row[5] is not None],
    ids=[row[0] for row in TABLE if row[5] is not None],
)
def test_a_bad_value_leaves_the_last_good_one_and_is_told_once_until_it_is_corrected(
    key, name, default, text, value, bad
):
    running = Running(**{key: text})
    (line,) = running.change(**{key: bad})
    assert f"key {key}={bad!r}" in line["event"]
    assert "the last good value stays in force" in line["event"]
    assert getattr(running.live.current, name) == value
    (_, uid, faults) = running.complaints[-1]
    assert uid == "u-1"
    assert list(faults) == [key]
    assert running.change(**{key: bad}) == []
    (line,) = running.change(**{key: text})
    assert line["event"] == f"setting {key} can be used again"
    assert running.complaints[-1][2] == {}


@pytest.mark.parametrize("key", [setting.key for setting in SETTINGS.values()])
def test_no_text_of_a_setting_keeps_a_good_change_of_another_out(key):
    other, name = ("batchMaxDuration", "batch_max_seconds")
    if key == other:
        other, name = ("batchIdleDuration", "batch_idle_seconds")
    for text in (*HOSTILE, *DURATIONS, *QUANTITIES, "9" * 5000, "9" * 400 + "h", "v" + "9" * 5000 + ".1"):
        running = Running()
        running.change(**{key: text, other: "25s"})
        assert getattr(running.live.current, name) == 25.0, text[:40]
        taken = getattr(running.live.current, next(each for each, of in SETTINGS.items() if of.key == key))
        assert not isinstance(taken, float) or math.isfinite(taken), text[:40]


def test_a_good_change_beside_a_bad_one_takes_effect():
    running = Running()
    running.change(batchIdleDuration="soon", batchMaxDuration="20s")
    assert running.live.current.batch_max_seconds == 20.0
    assert running.live.current.batch_idle_seconds == 1.0


def test_a_setting_that_a_variable_decides_does_not_follow_the_config_map():
    running = Running(ConfigSources({"BATCH_MAX_DURATION": "7s"}))
    (line,) = running.change(batchMaxDuration="20s")
    assert "has no effect: environment variable BATCH_MAX_DURATION decides it" in line["event"]
    assert running.live.current.batch_max_seconds == 7.0


def test_a_config_map_that_is_deleted_leaves_everything_as_it_is():
    running = Running(batchMaxDuration="20s")
    running.live.handle(ConfigMapGone(NAME))
    assert running.live.current.batch_max_seconds == 20.0
    assert running.change() == []


@pytest.mark.cluster
def test_the_process_takes_changes_in_and_survives_a_bad_value(replicas, api, namespace):
    path = f"/api/v1/namespaces/{namespace}/configmaps/{NAME}"
    process = replicas("first")
    leads(api, namespace, "first")

    def said(part):
        return [line for line in lines(process) if part in line["message"]]

    api.wait(lambda: said("cluster state is in sync"), what="the watches")
    api.patch(path, {"data": {"batchMaxDuration": "20s", "aws.clusterName": "other"}})
    api.wait(lambda: said("setting batchMaxDuration changed from 10.0 to 20.0"), what="the change")
    assert said("setting aws.clusterName changed from 'demo' to 'other'; restart the controller")
    api.patch(path, {"data": {"batchMaxDuration": "soon", "aws.clusterName": "demo"}})
    api.wait(lambda: said("key batchMaxDuration='soon': is not a duration"), what="the complaint")
    series = f'nodeless_settings_invalid{{config_map="{NAME}",key="batchMaxDuration"}}'
    assert scrape(process)[series] == 1
    event = api.wait(
        lambda: [e for e in api.events(namespace, NAME) if e["reason"] == "InvalidSetting"], what="the event"
    )[0]
    assert event["type"] == "Warning"
    assert "batchMaxDuration='soon'" in event["message"]
    assert event["involvedObject"]["uid"] == api.get(path)["metadata"]["uid"]
    api.patch(path, {"data": {"batchMaxDuration": "5s"}})
    api.wait(lambda: said("setting batchMaxDuration changed from 20.0 to 5.0"), what="the correction")
    assert series not in scrape(process)
    assert process.poll() is None
