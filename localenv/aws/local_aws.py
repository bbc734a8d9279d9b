"""`LocalAws`: starts the local AWS as a child process and hands out what clients need to reach it.

Neither this module nor what it imports touches moto: the parent process stays light.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Self, cast
from urllib.error import HTTPError, URLError
from urllib.request import ProxyHandler, Request, build_opener

import boto3
from botocore.config import Config

from localenv.aws.keys import ACCESS_KEY, SECRET_KEY
from localenv.ports import free_port, require_free
from localenv.processes import Processes

#: Seconds until the server must answer; importing moto takes a few on a slow machine.
START_TIMEOUT = 180.0
_ROOT = Path(__file__).resolve().parents[2]


class LocalAws:
    """A running local AWS."""

    def __init__(self, processes: Processes, endpoint_url: str, region: str) -> None:
        self.processes = processes
        self.endpoint_url = endpoint_url
        self.region = region
        self._clients: dict[tuple[str, str], Any] = {}
        # urllib honors http_proxy; loopback must not go through one.
        self._opener = build_opener(ProxyHandler({}))

    @classmethod
    def start(cls, directory: Path, *, region: str = "us-east-1", port: int | None = None) -> Self:
        """Start the server and wait until it answers.

        Args:
            directory: Where its log goes (`aws.log`); made when missing.
            region: Region of calls that name none, and of `environment()`.
            port: Port on 127.0.0.1; a free one when left out.

        Raises:
            localenv.ports.PortTaken: Something listens on `port`.
            localenv.processes.ProcessDied: The server ended before it answered.
            localenv.processes.NotReady: It did not answer in time.
        """
        directory.mkdir(parents=True, exist_ok=True)
        chosen = free_port("the local AWS") if port is None else require_free(port, "the local AWS")
        processes = Processes(directory)
        command = [sys.executable, "-m", "localenv.aws", "--port", str(chosen), "--region", region]
        python_path = os.pathsep.join([str(_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
        environment = {**os.environ, "PYTHONPATH": python_path}
        processes.start("aws", command, cwd=directory, environment=environment)
        aws = cls(processes, f"http://127.0.0.1:{chosen}", region)
        try:
            processes.wait_until(aws.answers, what="the local AWS to answer", timeout=START_TIMEOUT)
        except BaseException:
            processes.stop()
            raise
        return aws

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """End the server; what it held is gone."""
        self.processes.stop()

    def answers(self) -> bool:
        """Whether the server serves."""
        with suppress(URLError, OSError):
            return bool(self.control("GET", "health")["status"] == "ok")
        return False

    def environment(self) -> dict[str, str]:
        """Environment variables with which any AWS SDK uses this AWS."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint_url,
            "AWS_REGION": self.region,
            "AWS_DEFAULT_REGION": self.region,
            "AWS_ACCESS_KEY_ID": ACCESS_KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def session(self, region: str | None = None) -> boto3.Session:
        """A boto3 session with the owner's key; give `endpoint_url` to its clients, or use `client`."""
        return boto3.Session(
            aws_access_key_id=ACCESS_KEY, aws_secret_access_key=SECRET_KEY, region_name=region or self.region
        )

    def client(self, name: str, *, region: str | None = None, **options: object) -> Any:
        """A boto3 client of a service, e.g. `client("ec2")`; options go to `boto3.Session.client`."""
        key = (name, region or self.region)
        if not options and key in self._clients:
            return self._clients[key]
        config = Config(retries={"total_max_attempts": 1}, proxies={}, max_pool_connections=100)
        arguments: dict[str, Any] = {"endpoint_url": self.endpoint_url, "config": config, **options}
        client = self.session(region).client(cast("Any", name), **arguments)
        # Making a client reads the service's whole model; a client may be shared by threads.
        return client if options else self._clients.setdefault(key, client)

    def control(self, method: str, name: str, document: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Call a control endpoint, e.g. `control("PUT", "faults", {"unreachable": True})`.

        Raises:
            ValueError: The server refuses the document; the message says why.
        """
        data = None if document is None else json.dumps(document).encode()
        headers = {"Content-Type": "application/json"}
        request = Request(f"{self.endpoint_url}/nodeless/{name}", data=data, method=method, headers=headers)
        try:
            with self._opener.open(request, timeout=30) as answer:
                result: dict[str, Any] = json.load(answer)
        except HTTPError as error:
            with error:
                raise ValueError(f"{method} {name}: {error.read().decode()}") from None
        return result

    def set_cluster(
        self,
        *,
        endpoint: str,
        certificate_authority_data: str,
        issuer: str,
        jwks: Mapping[str, Any] | None = None,
        service_account_key: str | None = None,
    ) -> None:
        """Say which control plane stands behind EKS clusters, and what verifies its service account tokens.

        Args:
            endpoint: URL of the API server.
            certificate_authority_data: Its CA, base64 of the PEM.
            issuer: The service account issuer.
            jwks: The issuer's JSON Web Key Set; or
            service_account_key: its public key as PEM. One of the two is needed for web identities.
        """
        self.control(
            "POST",
            "cluster",
            {
                "endpoint": endpoint,
                "certificateAuthorityData": certificate_authority_data,
                "issuer": issuer,
                "jwks": jwks,
                "serviceAccountKey": service_account_key,
            },
        )

    def set_faults(self, **faults: object) -> None:
        """Switch on the faults of `localenv.aws.control`; those left out go off."""
        self.control("PUT", "faults", faults)

    def reuse_addresses(self, *, at_once: bool = True) -> None:
        """Whether new instances get the addresses of those that have just ended, and nodes their names."""
        self.control("POST", "addresses", {"reusedAtOnce": at_once})

    def interrupt(self, instance_id: str, kind: str = "spot", **details: object) -> dict[str, Any]:
        """Send a warning about an instance (`localenv.aws.control`), e.g. with `after=5.0` seconds.

        Raises:
            ValueError: There is no such instance, or it cannot be interrupted like that.
        """
        return self.control("POST", "interruptions", {"instanceId": instance_id, "kind": kind, **details})

    def reserve(self, instance_type: str, zone: str, **details: object) -> str:
        """Make a capacity block or another reservation (`localenv.aws.control`); its id.

        Raises:
            ValueError: There is no such kind of reservation.
        """
        document = {"instanceType": instance_type, "zone": zone, **details}
        return str(self.control("POST", "capacity-reservations", document)["id"])

    def instances(self) -> list[dict[str, Any]]:
        """Every instance, as DescribeInstances shows it; faults hide none, and no call is recorded."""
        return list(self.control("GET", "instances")["instances"])

    def reboots(self) -> dict[str, int]:
        """How often each instance was rebooted, by id; those that never were are left out."""
        return dict(self.control("GET", "reboots")["reboots"])

    def calls(self) -> list[dict[str, Any]]:
        """The calls made so far; their fields are told in `localenv.aws.control`."""
        return list(self.control("GET", "calls")["calls"])

    def forget_calls(self) -> None:
        """Start recording afresh."""
        self.control("DELETE", "calls")

    def reset(self) -> None:
        """Forget every resource, fault and call."""
        self.control("POST", "reset")
