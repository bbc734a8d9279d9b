"""Settings from the user's side: what the webhook says to a ConfigMap, and what a process makes of it."""

import json

import pytest

from tests.controllers.process import leads, lines
from tests.controllers.test_settings import TABLE

pytestmark = pytest.mark.cluster

CONFIG_MAPS = "/api/v1/namespaces/{}/configmaps"
ROWS = pytest.mark.parametrize(
    ("key", "good", "bad"),
    [(row[0], row[3], row[5]) for row in TABLE],
    ids=[f"9.4 {row[0]}" for row in TABLE],
)


def asked(api, namespace, data, name="karpenter-global-settings"):
    """What a user is told who creates the ConfigMap: the refusal and the warnings."""
    manifest = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {"app.kubernetes.io/part-of": "karpenter"},
        },
        "data": data,
    }
    path = CONFIG_MAPS.format(namespace)
    answer = api.connection.exchange("POST", path, body=manifest, query={"dryRun": "All"})
    return (answer.content["message"] if answer.status >= 400 else ""), answer.warnings


def with_cluster(**data):
    return {"aws.clusterName": "demo", **data}


@ROWS
def test_a_key_of_the_settings_missing_good_empty_or_malformed(api, admission, namespace, key, good, bad):
    assert asked(api, namespace, with_cluster()) == ("", ())
    assert asked(api, namespace, with_cluster(**{key: good})) == ("", ())

    refusal, _ = asked(api, namespace, with_cluster(**{key: ""}))
    assert (f"key {key}=''" in refusal) is key.startswith("batch")

    if bad is not None:
        refusal, _ = asked(api, namespace, with_cluster(**{key: bad}))
        assert f"key {key}={bad!r}: " in refusal
        assert "; hint: " in refusal


def test_9_4_the_name_of_the_cluster_is_needed_and_all_faults_come_at_once(api, admission, namespace):
    refusal, _ = asked(api, namespace, {"batchMaxDuration": "soon", "aws.isolatedVPC": "maybe"})

    for fault in ("aws.clusterName=None: is required", "batchMaxDuration='soon'", "aws.isolatedVPC='maybe'"):
        assert fault in refusal


def test_9_4_an_unknown_key_is_taken_with_a_warning_that_names_the_one_that_was_meant(
    api, admission, namespace
):
    data = with_cluster(**{"batchMaxDurations": "1s", "aws.tags.team": "x"})

    assert asked(api, namespace, data) == (
        "",
        (
            "data: unknown key aws.tags.team (did you mean aws.tags?) is ignored",
            "data: unknown key batchMaxDurations (did you mean batchMaxDuration?) is ignored",
        ),
    )


@pytest.mark.parametrize(
    ("written", "accepted"),
    [(None, True), ({}, True), ({"team": "platform"}, True), ({"team": 1}, False), (["team"], False)],
    ids=["9.4 tags null", "9.4 tags {}", "9.4 tags map", "9.4 tags with a number", "9.4 tags list"],
)
def test_tags_as_the_chart_flattens_them(api, admission, namespace, written, accepted):
    """The chart drops what is null, and writes a map named `tags` as JSON."""
    flattened = {} if written is None else {"aws.tags": json.dumps(written)}

    refusal, _ = asked(api, namespace, with_cluster(**flattened))

    assert (refusal == "") is accepted


def test_3_1_the_logging_configuration_is_checked_and_other_config_maps_are_not(api, admission, namespace):
    bad = {"loglevel.webhook": "loud"}

    assert (
        'data["loglevel.webhook"]: "loud" is not a level' in asked(api, namespace, bad, "config-logging")[0]
    )
    assert asked(api, namespace, bad, "some-others") == ("", ())


def test_8_2_an_endpoint_in_literal_quotes_is_named_and_the_cluster_s_own_holds(replicas, api, namespace):
    """Karpenter stops; a process that data stops would never start again."""
    path = f"{CONFIG_MAPS.format(namespace)}/karpenter-global-settings"
    api.patch(path, {"data": {"aws.clusterEndpoint": '"https://a.example"'}})

    process = replicas("first")
    leads(api, namespace, "first")

    line = next(each for each in lines(process) if each.get("key") == "aws.clusterEndpoint")
    assert line["level"] == "ERROR"
    assert "aws.clusterEndpoint='\"https://a.example\"'" in line["message"]
    assert "hint:" in line["message"]
    assert "the default holds until it is corrected" in line["message"]


def test_8_3_8_4_values_of_old_charts_are_ignored_aloud_and_the_endpoint_is_found_out(
    replicas, api, namespace
):
    """No endpoint, no queue, and keys that only charts before v0.19 knew."""
    path = f"{CONFIG_MAPS.format(namespace)}/karpenter-global-settings"
    old = {"clusterName": "demo", "controller.clusterEndpoint": "https://a.example"}
    api.patch(path, {"data": {"aws.clusterEndpoint": None, **old}})

    process = replicas("first")
    leads(api, namespace, "first")
    api.wait(lambda: "cluster state is in sync" in process.log.read_text(), what="the watches")

    said = "\n".join(line["message"] for line in lines(process))
    assert "keys that mean nothing and are ignored: clusterName" in said
    assert "controller.clusterEndpoint (did you mean aws.clusterEndpoint?)" in said
    api.wait(lambda: "hint: set aws.interruptionQueueName" in process.log.read_text(), what="the warning")
    assert "cannot be used" not in process.log.read_text()
