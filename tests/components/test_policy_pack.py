"""The policy pack as a process, spoken to as the engine does."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import grpc
import pytest
import yaml
from google.protobuf import empty_pb2, json_format, struct_pb2
from pulumi.runtime.proto import analyzer_pb2, analyzer_pb2_grpc

from localenv.pulumi.wire import UNKNOWN
from pulumi_nodeless.checks import ALWAYS, PRODUCTION
from pulumi_nodeless.names import DISCOVERY_TAG
from tests.components.conftest import ROOT, program
from tests.components.recorder import Recorder, run
from tests.components.test_project_files import as_config

TEMPLATES = ROOT / "stacks" / "templates"
PROD = TEMPLATES / "Pulumi.prod.yaml"


@contextmanager
def pack(stack: str) -> Iterator[Any]:
    """The pack started for a stack, with the variables that the engine gives it."""
    given = {"PULUMI_PROJECT": "nodeless", "PULUMI_STACK": stack, "PULUMI_DRY_RUN": "true"}
    command = [sys.executable, "-u", str(ROOT / "policy")]
    with subprocess.Popen(command, env={**os.environ, **given}, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            port = int(process.stdout.readline())
            with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
                yield analyzer_pb2_grpc.AnalyzerStub(channel)
        finally:
            process.kill()


def stack_of(recorder: Recorder) -> analyzer_pb2.AnalyzeStackRequest:
    """The resources of a stack, as the engine hands them over before it goes on."""
    resources = []
    for resource in recorder.resources.values():
        properties = json_format.ParseDict(resource.inputs, struct_pb2.Struct())
        resources.append(
            analyzer_pb2.AnalyzerResource(
                type=resource.token, name=resource.name, urn=resource.urn, properties=properties
            )
        )
    return analyzer_pb2.AnalyzeStackRequest(resources=resources)


def violations(analyzer: Any, recorder: Recorder) -> dict[str, str]:
    """What the pack refuses: URN by the name of the policy."""
    found = analyzer.AnalyzeStack(stack_of(recorder)).diagnostics
    assert {each.enforcementLevel for each in found} <= {analyzer_pb2.MANDATORY}
    return {each.policyName: each.urn for each in found}


def test_the_pack_passes_the_production_stack_and_refuses_one_whose_api_server_answers_the_internet(
    environment: Recorder,
) -> None:
    production = run(program, config=as_config(yaml.safe_load(PROD.read_text())["config"]))
    with pack("prod") as analyzer:
        info = analyzer.GetAnalyzerInfo(empty_pb2.Empty())
        assert info.name == "nodeless"
        assert {policy.name for policy in info.policies} == {*ALWAYS, *PRODUCTION}
        assert all(policy.description for policy in info.policies)
        assert violations(analyzer, production) == {}
        cluster = environment.one("eks:index:Cluster")
        assert violations(analyzer, environment) == {"no-public-endpoint": cluster.urn}


def test_a_tag_on_what_is_not_known_yet_ends_no_check(environment: Recorder) -> None:
    """In the first preview of a stack nobody knows the cluster's security group."""
    request = stack_of(environment)
    (tag,) = [resource for resource in request.resources if resource.type == "aws:ec2/tag:Tag"]
    tag.properties["resourceId"] = UNKNOWN
    for name in ("one", "another"):
        group = request.resources.add(
            type="aws:ec2/securityGroup:SecurityGroup", name=name, urn=f"urn:{name}"
        )
        group.properties["tags"] = {DISCOVERY_TAG: "demo"}
    with pack("dev") as analyzer:
        reported = analyzer.AnalyzeStack(request).diagnostics
    assert [(each.policyName, each.urn) for each in reported] == [
        ("one-discoverable-security-group", "urn:another")
    ]


@pytest.mark.parametrize("stack", ["dev", "local"])
def test_what_production_needs_is_not_asked_of_other_stacks(stack: str) -> None:
    settings = yaml.safe_load((TEMPLATES / f"Pulumi.{stack}.yaml").read_text())["config"]
    made = run(program, config=as_config(settings))
    with pack(stack) as analyzer:
        assert violations(analyzer, made) == {}
