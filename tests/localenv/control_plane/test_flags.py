from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from localenv.control_plane import flags

FILES = flags.Files(
    state=Path("/state"),
    authority=Path("/pki/ca.crt"),
    authority_key=Path("/pki/ca.key"),
    server=Path("/pki/server.crt"),
    server_key=Path("/pki/server.key"),
    token_public_key=Path("/pki/sa.pub"),
    token_key=Path("/pki/sa.key"),
    scheduler_configuration=Path("/state/scheduler.yaml"),
    controller_manager_kubeconfig=Path("/state/kcm"),
    egress_configuration=None,
)


def test_the_api_server_enforces_roles_and_restricts_nodes() -> None:
    arguments = flags.api_server(FILES, 6443)

    assert "--authorization-mode=Node,RBAC" in arguments
    assert "--enable-admission-plugins=NodeRestriction" in arguments


def test_nothing_listens_outside_loopback() -> None:
    assert "--bind-address=127.0.0.1" in flags.api_server(FILES, 6443)
    assert "--secure-port=0" in flags.scheduler(FILES)
    assert "--secure-port=0" in flags.controller_manager(FILES)
    assert all("unix://" in one for one in flags.etcd(FILES) if "urls" in one)


def test_the_issuer_is_where_its_discovery_is_served() -> None:
    assert flags.issuer(7000) == "https://127.0.0.1:7000"
    assert "--service-account-issuer=https://127.0.0.1:7000" in flags.api_server(FILES, 7000)


def test_traffic_to_services_goes_through_the_proxy_when_there_is_one() -> None:
    with_proxy = replace(FILES, egress_configuration=Path("/state/egress.yaml"))

    assert "--egress-selector-config-file=/state/egress.yaml" in flags.api_server(with_proxy, 6443)
    assert not any("egress" in one for one in flags.api_server(FILES, 6443))
    [selection] = flags.egress_configuration(Path("/run/proxy"))["egressSelections"]
    assert selection["name"] == "cluster"
    assert selection["connection"]["transport"] == {"uds": {"udsName": "/run/proxy"}}


def test_controllers_run_under_their_own_service_accounts() -> None:
    assert "--use-service-account-credentials=true" in flags.controller_manager(FILES)
