"""What time it is, is what the API server says."""

import asyncio
import time
from datetime import UTC, datetime
from email.utils import format_datetime

import pytest
from aiohttp import web
from cryptography import x509
from hypothesis import given
from hypothesis import strategies as st

from nodeless.api.times import parse_time
from nodeless.kube.event_recorder import Recorder
from nodeless.model.instructions import PublishEvent
from nodeless.operator.clock import SLACK_SECONDS, Clock, sync_from_date_header
from nodeless.webhook.certificates import ensure
from tests.kube.test_lanes import served

NOON = 1_700_000_000.0


class Machine:
    """Clocks of a machine that the test commands."""

    def __init__(self):
        self.wall, self.steady = NOON, 50.0

    def passes(self, seconds):
        self.wall += seconds
        self.steady += seconds

    def clock(self):
        return Clock(lambda: self.wall, lambda: self.steady)


def date(seconds):
    return format_datetime(datetime.fromtimestamp(int(seconds), UTC), usegmt=True)


def test_a_machine_clock_that_jumps_changes_nothing():
    machine = Machine()
    clock = machine.clock()
    machine.passes(10)
    machine.wall += 7200
    assert clock.now() == NOON + 10


@pytest.mark.parametrize("wrong_by", [-86_400, -60, 60, 86_400])
def test_a_machine_clock_that_is_wrong_from_the_start_is_set_by_the_first_answer(wrong_by):
    machine = Machine()
    machine.wall += wrong_by
    clock = machine.clock()
    assert clock.sync(date(NOON), 0.2)
    assert abs(clock.now() - NOON) <= 1.5
    machine.passes(30)
    assert not clock.sync(date(NOON + 30), 0.2)


@given(st.floats(0, 3600), st.floats(0, 30), st.floats(-SLACK_SECONDS / 2, SLACK_SECONDS / 2))
def test_answers_that_come_late_and_servers_that_differ_a_little_do_not_move_the_clock(later, took, drift):
    machine = Machine()
    clock = machine.clock()
    machine.passes(later)
    answered = NOON + later + drift
    machine.passes(took)
    assert not clock.sync(date(answered), took)
    assert clock.now() == pytest.approx(NOON + later + took)


@pytest.mark.parametrize("wrong_by", [-3 * 86_400, 3 * 86_400])
def test_certificate_and_events_bear_the_api_servers_time_not_that_of_a_wrong_machine(
    wrong_by, tmp_path, monkeypatch
):
    """The API server is one of our own, for the real one cannot live at another time."""
    servers_time = time.time() - wrong_by
    written = []

    async def answer(request):
        headers = {"Date": date(servers_time)}
        if request.method == "POST":
            written.append(await request.json())
            return web.json_response(written[-1], status=201, headers=headers)
        return web.json_response({}, status=404, headers=headers)

    async def scenario():
        async with served(answer, tmp_path, monkeypatch) as client:
            client.observe_time(sync_from_date_header)
            material = await ensure(client, "karpenter")
            recorder = Recorder(client, "here")
            recorder.publish(PublishEvent("a", "NodePool", "a", "Warning", "NotReady", "why"))
            await recorder.flush(10)
        return x509.load_pem_x509_certificate(material.certificate)

    try:
        certificate = asyncio.run(scenario())
    finally:
        sync_from_date_header(date(time.time()), 0.0)
    assert (
        certificate.not_valid_before_utc.timestamp()
        < servers_time
        < certificate.not_valid_after_utc.timestamp()
    )
    assert abs(parse_time(written[-1]["firstTimestamp"]) - servers_time) < 60


@pytest.mark.parametrize("text", [None, "", "yesterday"])
def test_an_answer_without_a_date_moves_nothing(text):
    clock = Machine().clock()
    assert not clock.sync(text, 0.1)
    assert clock.now() == NOON
