"""The controller may do what it does: what it watches, it may watch."""

from nodeless.kube import watched_kinds
from nodeless.kube.buffers import watched_buffers
from nodeless.kube.gangs import watched_gang_sizes
from nodeless.kube.provisioning_requests import watched_requests
from nodeless.kube.vertical_autoscaling import watched_vertical_autoscalers
from pulumi_nodeless.rbac import CLOUD_RULES, CORE_RULES


def group_and_resource(path: str) -> tuple[str, str]:
    """Of `/api/v1/pods` and `/apis/apps/v1/daemonsets`."""
    parts = path.strip("/").split("/")
    return ("", parts[2]) if parts[0] == "api" else (parts[1], parts[3])


def test_every_kind_that_the_controller_watches_is_granted() -> None:
    granted = {
        (group, resource)
        for rule in (*CORE_RULES, *CLOUD_RULES)
        if "watch" in rule.verbs
        for group in rule.groups
        for resource in rule.resources
    }
    kinds = (*watched_kinds(lambda *_: None), *watched_buffers(), *watched_gang_sizes(), watched_requests())
    watched = {group_and_resource(kind.path) for kind in (*kinds, *watched_vertical_autoscalers())}
    assert watched <= granted
