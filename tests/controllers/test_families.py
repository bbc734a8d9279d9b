"""Summaries with quantiles."""

import math

from prometheus_client import CollectorRegistry

from nodeless.operator.metric_types import WINDOW_SECONDS, Quantiles


def shown(summary, now):
    (metric,) = summary.collect(now)
    return {sample.labels.get("quantile", sample.name): sample.value for sample in metric.samples}


def test_quantiles_are_of_what_was_observed_of_late_and_sum_and_count_of_all():
    summary = Quantiles("seconds", "Time", registry=CollectorRegistry())
    for value in range(1, 101):
        summary.observe(float(value), now=0.0)
    assert shown(summary, 1.0) == {
        "0": 1,
        "0.5": 51,
        "0.9": 91,
        "0.99": 100,
        "1": 100,
        "seconds_sum": 5050,
        "seconds_count": 100,
    }
    summary.observe(7.0, now=WINDOW_SECONDS)
    later = shown(summary, WINDOW_SECONDS + 1)
    assert (later["0"], later["1"], later["seconds_count"]) == (7, 7, 101)


def test_a_quantile_of_nothing_is_not_a_number():
    summary = Quantiles("seconds", "Time", registry=CollectorRegistry())
    found = shown(summary, 0.0)
    assert math.isnan(found["0.5"])
    assert found["seconds_count"] == 0
