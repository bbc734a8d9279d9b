"""A Prometheus server that scrapes what runs on this machine, and answers queries."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode
from urllib.request import ProxyHandler, build_opener

import yaml

from localenv.binaries import prometheus
from localenv.ports import free_port
from localenv.processes import Processes
from localenv.progress import Report

_START_SECONDS = 60.0
#: Loopback must not go through a proxy.
_OPENER = build_opener(ProxyHandler({}))


class QueryRefused(ValueError):
    """Prometheus cannot read an expression, or not evaluate it; says why."""


class Prometheus:
    """A running server. Use `scraping`."""

    def __init__(self, endpoint: str) -> None:
        self.endpoint = endpoint

    def query(self, expression: str) -> list[dict[str, Any]]:
        """The series that an expression gives now: each has `metric` (labels) and `value` (time and text).

        Raises:
            QueryRefused: The expression is not PromQL.
        """
        return list(self._get("query", {"query": expression})["result"])

    def rules(self) -> list[dict[str, Any]]:
        """Every rule that was loaded, with its `health` and `lastError`."""
        return [rule for group in self._get("rules")["groups"] for rule in group["rules"]]

    def is_ready(self) -> bool:
        try:
            with _OPENER.open(f"{self.endpoint}/-/ready", timeout=5):
                return True
        except (URLError, ConnectionError):
            return False

    def _get(self, path: str, parameters: Mapping[str, str] | None = None) -> dict[str, Any]:
        url = f"{self.endpoint}/api/v1/{path}?{urlencode(parameters or {})}"
        try:
            with _OPENER.open(url, timeout=30) as answer:
                return dict(json.load(answer)["data"])
        except HTTPError as error:
            raise QueryRefused(json.load(error)["error"]) from error


@contextmanager
def scraping(
    targets: Mapping[str, list[str]],
    directory: Path,
    *,
    rules: Path | None = None,
    seconds: float = 1.0,
    report: Report | None = None,
) -> Iterator[Prometheus]:
    """Run a server.

    Args:
        targets: Addresses (HOST:PORT) by the name of their job; `/metrics` of each is scraped.
        directory: For its files.
        rules: A file of rules that it evaluates.
        seconds: Between two scrapes, and two evaluations.
        report: Hears of a build.

    Raises:
        ToolchainMissing, BuildFailed: There is no program (`localenv.binaries.prometheus`).
        ProcessDied, NotReady: It does not come up.
    """
    program, port = prometheus(report), free_port("Prometheus")
    directory.mkdir(parents=True, exist_ok=True)
    every = f"{int(seconds * 1000)}ms"
    configuration = {
        "global": {"scrape_interval": every, "scrape_timeout": every, "evaluation_interval": every},
        "rule_files": [str(rules)] if rules is not None else [],
        "scrape_configs": [
            {"job_name": job, "static_configs": [{"targets": addresses}]}
            for job, addresses in targets.items()
        ],
    }
    file = directory / "prometheus.yaml"
    file.write_text(yaml.safe_dump(configuration))
    processes, server = Processes(directory / "logs"), Prometheus(f"http://127.0.0.1:{port}")
    try:
        processes.start(
            "prometheus",
            [
                program,
                f"--config.file={file}",
                f"--storage.tsdb.path={directory / 'data'}",
                f"--web.listen-address=127.0.0.1:{port}",
                "--log.level=warn",
            ],
            cwd=directory,
        )
        processes.wait_until(server.is_ready, what="Prometheus to be ready", timeout=_START_SECONDS)
        yield server
    finally:
        processes.stop()
