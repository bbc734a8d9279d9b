"""A program inside this process, and the engines that come one after another."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import grpc
import pytest
from pulumi.runtime.proto import resource_pb2, resource_pb2_grpc
from pulumi.runtime.settings import Settings

from localenv.pulumi.program import InlineProgram


class _Engine(resource_pb2_grpc.ResourceMonitorServicer):
    def SupportsFeature(self, request: object, context: object) -> Any:  # noqa: N802 - of the SDK
        return resource_pb2.SupportsFeatureResponse(hasSupport=True)


@contextmanager
def an_engine(port: int = 0) -> Iterator[int]:
    with ThreadPoolExecutor(1) as threads:
        server = grpc.server(threads)
        resource_pb2_grpc.add_ResourceMonitorServicer_to_server(_Engine(), server)
        bound = server.add_insecure_port(f"127.0.0.1:{port}")
        server.start()
        yield bound
        server.stop(None).wait()


def connect(port: int) -> Settings:
    return Settings("shop", "local", f"127.0.0.1:{port}")


def has_support(settings: Settings) -> bool:
    answer = settings.monitor.SupportsFeature(resource_pb2.SupportsFeatureRequest(id="secrets"))
    return bool(answer.hasSupport)


def test_an_engine_on_the_port_of_one_that_ended_is_reached_at_once() -> None:
    with InlineProgram(lambda: None):
        with an_engine() as port:
            first = connect(port)
            assert has_support(first)
        with pytest.raises(grpc.RpcError):
            has_support(first)
        with an_engine(port):
            assert has_support(connect(port))
