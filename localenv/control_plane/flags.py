"""Command lines and configuration files of the four programs, as data.

No file is written and nothing is started here; `control_plane` does both. Flags stand
here only where the default will not do on one machine; the reason is beside each.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: Of the two address ranges that EKS gives Services, the one it takes when the VPC lies in 10.0.0.0/8.
SERVICE_RANGE = "172.20.0.0/16"
#: First address of that range: the Service `default/kubernetes`.
KUBERNETES_SERVICE = "172.20.0.1"
#: Tokens asked for without an audience get the first; tokens with either are accepted. As on EKS.
API_AUDIENCE = "https://kubernetes.default.svc"
#: etcd's client address. etcd wants host:port even of a socket, so the socket file is called
#: `client:1` in the working directory that etcd and the API server share.
_ETCD_CLIENT = "unix://client:1"
_ETCD_PEER = "unix://peer:1"
#: Seconds without a heartbeat until a node is Unknown; Kubernetes' 50 s, shortened.
NODE_GRACE_SECONDS = 20


@dataclass(frozen=True, slots=True)
class Files:
    """Where the pieces that the command lines name are.

    Attributes:
        state: Working directory of etcd and the API server; data lies below it.
        authority: Certificate of the cluster's authority.
        authority_key: Its key, with which certificate signing requests are signed.
        server: The API server's certificate.
        server_key: Its key.
        token_public_key: Verifies service account tokens.
        token_key: Signs them.
        scheduler_configuration: The file with `scheduler_configuration`.
        controller_manager_kubeconfig: How kube-controller-manager finds the API server.
        egress_configuration: The file with `egress_configuration`; None without a proxy.
        audit: The file with `audit_policy`, and the log that it fills; None: nothing is audited.
        streaming_lists: Whether the API server streams lists; Kubernetes before 1.32, and 1.33, does not.
    """

    state: Path
    authority: Path
    authority_key: Path
    server: Path
    server_key: Path
    token_public_key: Path
    token_key: Path
    scheduler_configuration: Path
    controller_manager_kubeconfig: Path
    egress_configuration: Path | None
    audit: tuple[Path, Path] | None = None
    streaming_lists: bool = True


def etcd(files: Files) -> list[str]:
    """Arguments of etcd: on a unix socket, for it knows no authentication; not flushed to disk."""
    return [
        "--name=local",
        f"--data-dir={files.state / 'etcd'}",
        "--unsafe-no-fsync",  # the cluster does not outlive the machine
        "--log-level=warn",
        "--quota-backend-bytes=4294967296",
        f"--listen-client-urls={_ETCD_CLIENT}",
        f"--advertise-client-urls={_ETCD_CLIENT}",
        f"--listen-peer-urls={_ETCD_PEER}",
        f"--initial-advertise-peer-urls={_ETCD_PEER}",
        f"--initial-cluster=local={_ETCD_PEER}",
    ]


def api_server(files: Files, port: int) -> list[str]:
    """Arguments of kube-apiserver, which listens on 127.0.0.1:`port` alone."""
    arguments = [
        f"--etcd-servers={_ETCD_CLIENT}",
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        f"--secure-port={port}",
        "--endpoint-reconciler-type=none",  # loopback is no valid endpoint address
        f"--tls-cert-file={files.server}",
        f"--tls-private-key-file={files.server_key}",
        f"--client-ca-file={files.authority}",
        f"--cert-dir={files.state / 'certificates'}",
        f"--service-account-issuer={issuer(port)}",
        f"--service-account-key-file={files.token_public_key}",
        f"--service-account-signing-key-file={files.token_key}",
        f"--api-audiences={API_AUDIENCE},{issuer(port)}",
        f"--service-cluster-ip-range={SERVICE_RANGE}",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        "--allow-privileged=true",
        "--profiling=false",
        "--max-requests-inflight=1000",
        "--max-mutating-requests-inflight=500",
    ]
    if files.egress_configuration is not None:
        arguments.append(f"--egress-selector-config-file={files.egress_configuration}")
    if not files.streaming_lists:
        arguments.append("--feature-gates=WatchList=false")
    if files.audit is not None:
        policy, log = files.audit
        # One file for all: the log is given up for another at 100 MB by default.
        arguments += [f"--audit-policy-file={policy}", f"--audit-log-path={log}", "--audit-log-maxsize=4096"]
    return arguments


def scheduler(files: Files) -> list[str]:
    """Arguments of kube-scheduler; port 0 spares it an HTTPS server of its own."""
    return [f"--config={files.scheduler_configuration}", "--bind-address=127.0.0.1", "--secure-port=0"]


def controller_manager(files: Files) -> list[str]:
    """Arguments of kube-controller-manager: each controller under its own service account, as on EKS."""
    return [
        f"--kubeconfig={files.controller_manager_kubeconfig}",
        "--leader-elect=false",
        "--secure-port=0",
        f"--root-ca-file={files.authority}",
        f"--service-account-private-key-file={files.token_key}",
        f"--cluster-signing-cert-file={files.authority}",
        f"--cluster-signing-key-file={files.authority_key}",
        "--use-service-account-credentials=true",
        "--allocate-node-cidrs=false",
        "--kube-api-qps=1000",
        "--kube-api-burst=2000",
        "--node-monitor-period=1s",
        f"--node-monitor-grace-period={NODE_GRACE_SECONDS}s",
        "--profiling=false",
    ]


def issuer(port: int) -> str:
    """Issuer of service account tokens; its OpenID discovery is served by the API server itself."""
    return f"https://127.0.0.1:{port}"


def scheduler_configuration(kubeconfig: Path) -> dict[str, Any]:
    """KubeSchedulerConfiguration: alone, not throttled, soon trying again a pod that did not fit."""
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "clientConnection": {"kubeconfig": str(kubeconfig), "qps": 1000, "burst": 2000},
        "podInitialBackoffSeconds": 1,
        "podMaxBackoffSeconds": 2,
    }


def egress_configuration(proxy_socket: Path) -> dict[str, Any]:
    """EgressSelectorConfiguration: traffic to pods and Services goes by HTTP CONNECT to a unix socket."""
    return {
        "apiVersion": "apiserver.k8s.io/v1beta1",
        "kind": "EgressSelectorConfiguration",
        "egressSelections": [
            {
                "name": "cluster",
                "connection": {
                    "proxyProtocol": "HTTPConnect",
                    "transport": {"uds": {"udsName": str(proxy_socket)}},
                },
            }
        ],
    }


def audit_policy(users: Sequence[str]) -> dict[str, Any]:
    """Policy: what some users ask for is written down when it is answered, and nothing else.

    A watch is written down when it begins, too: its end may never be seen.
    """
    return {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "rules": [{"level": "Metadata", "users": [*users]}, {"level": "None"}],
    }


def base64_text(content: bytes) -> str:
    """`content` in base64, as kubeconfig's `*-data` fields hold it."""
    return base64.b64encode(content).decode()
