"""Loops, queues and calls as metrics show them."""

import asyncio

import pytest
from aiohttp.test_utils import TestClient, TestServer

from nodeless.kube import ApiError
from nodeless.kube.workqueue import KeyedQueue
from nodeless.operator.metrics import Metrics
from nodeless.operator.work_metrics import CLAIM_LIFECYCLE, DEPROVISIONING
from nodeless.webhook.server import application
from tests.controllers.test_metrics import collected


def test_a_reconciliation_counts_with_its_result_and_time():
    metrics = Metrics()
    with metrics.work.measure_reconciliation(DEPROVISIONING):
        label = f'controller_runtime_active_workers{{controller="{DEPROVISIONING}"}}'
        assert collected(metrics)[label] == 1
    with metrics.work.measure_reconciliation(DEPROVISIONING) as outcome:
        outcome.again_later()
    for failure in (ValueError(), ApiError(409, "Conflict", "changed meanwhile")):
        with pytest.raises(type(failure)), metrics.work.measure_reconciliation(DEPROVISIONING):
            raise failure
    shown = collected(metrics)
    assert shown[label] == 0
    for result in ("success", "requeue_after", "requeue", "error"):
        name = f'controller_runtime_reconcile_total{{controller="{DEPROVISIONING}",result="{result}"}}'
        assert shown[name] == 1
    assert shown[f'controller_runtime_reconcile_errors_total{{controller="{DEPROVISIONING}"}}'] == 1
    assert shown[f'controller_runtime_reconcile_time_seconds_count{{controller="{DEPROVISIONING}"}}'] == 4


def test_a_queue_shows_what_waits_what_is_worked_on_and_what_comes_again():
    metrics = Metrics()

    def shown(family):
        return collected(metrics)[f'workqueue_{family}{{name="{CLAIM_LIFECYCLE}"}}']

    async def scenario():
        queue = KeyedQueue(metrics.work.queue(CLAIM_LIFECYCLE, 7))
        for key in ("a", "b", "a"):
            queue.add(key)
        assert (shown("depth"), shown("adds_total")) == (2, 2)
        key = await queue.get()
        assert shown("depth") == shown("queue_duration_seconds_count") == 1
        assert shown("unfinished_work_seconds") == pytest.approx(
            shown("longest_running_processor_seconds"), abs=60
        )
        assert shown("longest_running_processor_seconds") > 0
        queue.add_in(key, 60)
        queue.done(key)
        assert shown("retries_total") == shown("work_duration_seconds_count") == 1
        assert shown("unfinished_work_seconds") == 0

    asyncio.run(scenario())
    workers = f'controller_runtime_max_concurrent_reconciles{{controller="{CLAIM_LIFECYCLE}"}}'
    assert collected(metrics)[workers] == 7


def test_reviews_are_counted_by_path_and_status_and_unknown_paths_as_one():
    metrics = Metrics()

    async def scenario():
        app = application(watcher=metrics.work.measure_review)
        async with TestClient(TestServer(app)) as client:
            for path in ("/validate/karpenter.sh", "/some/path", "/another"):
                await client.post(path, data=b"{", headers={"Content-Type": "application/json"})

    asyncio.run(scenario())
    shown = collected(metrics)
    counted = {name: value for name, value in shown.items() if "webhook_requests_total" in name}
    family = "controller_runtime_webhook_requests_total"
    assert counted == {
        f'{family}{{code="400",webhook="/validate/karpenter.sh"}}': 1,
        f'{family}{{code="400",webhook="unknown"}}': 2,
    }
    assert shown['controller_runtime_webhook_latency_seconds_count{webhook="unknown"}'] == 2
    assert shown['controller_runtime_webhook_requests_in_flight{webhook="unknown"}'] == 0
