"""What an executed container is made of: rewritten paths, variables, files, probes, back-off."""

from __future__ import annotations

import base64
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from localenv.kubelets.containers import backoff_seconds
from localenv.kubelets.downward import field_value, resource_value
from localenv.kubelets.execution import is_executed
from localenv.kubelets.mounts import Mounts
from localenv.kubelets.probes import Threshold, port_number
from localenv.kubelets.variables import (
    MissingReferenceError,
    container_variables,
    expand,
    references,
    values_of,
)
from localenv.kubelets.volumes import object_bytes, write_files

POD: dict[str, Any] = {
    "metadata": {"name": "web-1", "namespace": "shop", "uid": "u", "labels": {"tier": "front", "app": "web"}},
    "spec": {"nodeName": "n", "serviceAccountName": "web"},
    "status": {"podIP": "10.0.1.23", "hostIP": "10.0.1.23"},
}


@pytest.mark.parametrize(
    ("text", "rewritten"),
    [
        ("/etc/tls/cert.pem", "/here/tls/cert.pem"),
        ("--cert=/etc/tls/cert.pem", "--cert=/here/tls/cert.pem"),
        ("file:///etc/tls", "file:///here/tls"),
        ("/etc/tls:/etc/tls/deep/x", "/here/tls:/here/deep/sub/x"),
        ("/etc/tls-other/x", "/etc/tls-other/x"),
        ("/host/etc/tls", "/host/etc/tls"),
        ("no path", "no path"),
    ],
)
def test_mounted_paths_are_rewritten_and_nothing_else(text: str, rewritten: str) -> None:
    container = {
        "volumeMounts": [
            {"name": "tls", "mountPath": "/etc/tls/"},
            {"name": "deep", "mountPath": "/etc/tls/deep", "subPath": "sub"},
        ]
    }
    mounts = Mounts(container, {"tls": Path("/here/tls"), "deep": Path("/here/deep")})

    assert mounts.rewrite(text) == rewritten


def test_variables_expand_those_before_them() -> None:
    container = {
        "envFrom": [{"prefix": "CFG_", "configMapRef": {"name": "settings"}}],
        "env": [
            {"name": "HOST", "value": "db"},
            {"name": "URL", "value": "pg://$(HOST):$(CFG_port)/$(LATER)$$(HOST)"},
            {"name": "LATER", "value": "x"},
            {"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "db", "key": "password"}}},
            {
                "name": "NOT_THERE",
                "valueFrom": {"secretKeyRef": {"name": "db", "key": "no", "optional": True}},
            },
            {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        ],
    }
    secret = {"kind": "Secret", "data": {"password": base64.b64encode(b"open").decode()}}
    objects = {("ConfigMap", "settings"): {"port": "5432"}, ("Secret", "db"): values_of(secret)}

    found = container_variables(container, POD, objects, {})

    assert references(container) == set(objects)
    assert found == {
        "CFG_port": "5432",
        "HOST": "db",
        "URL": "pg://db:5432/$(LATER)$(HOST)",
        "LATER": "x",
        "PASSWORD": "open",
        "IP": "127.0.1.23",
    }


@pytest.mark.parametrize("objects", [{}, {("ConfigMap", "settings"): {"other": "x"}}])
def test_a_missing_reference_names_what_is_missing(objects: dict[tuple[str, str], dict[str, str]]) -> None:
    container = {
        "env": [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "level"}}}]
    }

    with pytest.raises(MissingReferenceError, match="settings"):
        container_variables(container, POD, objects, {})


def test_an_unknown_variable_stays_as_it_is_written() -> None:
    assert expand("$(A) $(B) $$ $C", {"A": "1"}) == "1 $(B) $ $C"


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("metadata.name", "web-1"),
        ("metadata.labels['tier']", "front"),
        ("metadata.labels", 'app="web"\ntier="front"'),
        ("metadata.annotations['none']", ""),
        ("spec.serviceAccountName", "web"),
        ("status.hostIP", "127.0.1.23"),
    ],
)
def test_fields_of_the_pod(path: str, value: str) -> None:
    assert field_value(POD, path) == value


def test_resources_of_the_container_in_units_of_the_divisor() -> None:
    container = {"resources": {"limits": {"cpu": "1500m"}, "requests": {"memory": "1Gi"}}}

    assert resource_value(container, {"resource": "limits.cpu"}, {}) == "2"
    assert resource_value(container, {"resource": "requests.memory", "divisor": "1Mi"}, {}) == "1024"
    node = {"memory": Decimal(2**31)}
    assert resource_value(container, {"resource": "limits.memory", "divisor": "1Gi"}, node) == "2"


def test_a_directory_holds_exactly_the_files_written(tmp_path: Path) -> None:
    write_files(tmp_path / "v", {"a": b"1", "deep/b": b"2"})
    write_files(tmp_path / "v", {"a": b"3", "c": b"4"})

    found = {
        str(p.relative_to(tmp_path / "v")): p.read_bytes() for p in (tmp_path / "v").rglob("*") if p.is_file()
    }
    assert found == {"a": b"3", "c": b"4"}


def test_binary_data_of_config_maps_and_secrets() -> None:
    encoded = base64.b64encode(b"\xff").decode()

    assert object_bytes("secrets", {"data": {"k": encoded}}) == {"k": b"\xff"}
    assert object_bytes("configmaps", {"data": {"t": "x"}, "binaryData": {"k": encoded}}) == {
        "t": b"x",
        "k": b"\xff",
    }


def test_a_verdict_turns_only_at_its_threshold() -> None:
    threshold = Threshold(success=2, failure=3, verdict=False)
    outcomes = [True, True, False, False, True, False, False, False]

    verdicts = []
    for outcome in outcomes:
        threshold.observe(outcome)
        verdicts.append(threshold.verdict)

    assert verdicts == [False, True, True, True, True, True, True, False]


def test_ports_are_found_by_name() -> None:
    ports = [{"name": "http", "containerPort": 8081}]

    assert (port_number("http", ports), port_number(9, ports), port_number("9", ports)) == (8081, 9, 9)
    with pytest.raises(ValueError, match="'grpc' is none of the container's"):
        port_number("grpc", ports)


def test_restarts_wait_longer_and_longer() -> None:
    assert [backoff_seconds(n) for n in (0, 1, 2, 3, 10, 99)] == [0, 1, 2, 4, 300, 300]


@pytest.mark.parametrize(
    ("image", "executed"),
    [
        ("reg.example/app:1", True),
        ("reg.example/app@sha256:0", True),
        ("reg.example/app", True),
        ("reg.example/app/part:1", True),
        ("reg.example/application:1", False),
        ("pause", False),
    ],
)
def test_images_are_executed_by_repository(image: str, executed: bool) -> None:
    assert is_executed(image, ["reg.example/app"]) is executed
