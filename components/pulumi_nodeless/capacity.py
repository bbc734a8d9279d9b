"""Pools and node templates as resources of the stack.

The manifests are computed by `pools`. The resources must depend on everything that the controller needs,
best on the `TeardownGuard`, which does: their deletion waits until the controller has removed their nodes.
A pool goes before its node template, without which its nodes could not be described any more.
"""

from collections.abc import Sequence
from typing import Any, NotRequired, TypedDict

import pulumi
import pulumi_kubernetes as k8s

from pulumi_nodeless import names, pools
from pulumi_nodeless.arguments import ArgumentReader
from pulumi_nodeless.ordering import child_after
from pulumi_nodeless.pools import NodeTemplateArgs, ProvisionerArgs


class CapacityArgs(TypedDict):
    """Which pools a cluster has."""

    cluster_name: str
    """Name of the cluster: the value of the discovery tag that node templates select by."""
    node_templates: Sequence[NodeTemplateArgs]
    """How nodes are made."""
    provisioners: Sequence[ProvisionerArgs]
    """Which nodes may be made."""
    timeout_minutes: NotRequired[int]
    """How long a pool's deletion waits for its nodes. Default 30."""


class Capacity(pulumi.ComponentResource):
    """The pools a stack declares."""

    provisioner_names: pulumi.Output[Sequence[str]]
    """Names of the Provisioners."""

    def __init__(self, name: str, args: CapacityArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("nodeless:index:Capacity", name, {}, opts)
        reader = ArgumentReader("Capacity", args, CapacityArgs)
        cluster = reader.text("cluster_name")
        minutes = reader.integer("timeout_minutes", 30, 1, 24 * 60)
        templates, provisioners = reader.value("node_templates", ()), reader.value("provisioners", ())
        _check_references(reader, templates, provisioners)
        reader.check()
        timeout = f"{minutes}m"
        discovery = {names.DISCOVERY_TAG: cluster}
        made = {
            template["name"]: k8s.apiextensions.CustomResource(
                f"{name}-node-template-{template['name']}",
                api_version=pools.NODE_TEMPLATE_API,
                kind="AWSNodeTemplate",
                metadata=k8s.meta.v1.ObjectMetaArgs(name=template["name"]),
                spec=pools.node_template_spec(template, discovery),
                opts=child_after(self, opts, delete_timeout=timeout),
            )
            for template in templates
        }
        for provisioner in provisioners:
            k8s.apiextensions.CustomResource(
                f"{name}-provisioner-{provisioner['name']}",
                api_version=pools.PROVISIONER_API,
                kind="Provisioner",
                metadata=k8s.meta.v1.ObjectMetaArgs(name=provisioner["name"]),
                spec=pools.provisioner_spec(provisioner),
                opts=child_after(self, opts, [made[provisioner["node_template"]]], delete_timeout=timeout),
            )
        self.provisioner_names = pulumi.Output.from_input([each["name"] for each in provisioners])
        self.register_outputs({"provisionerNames": self.provisioner_names})


def _check_references(
    reader: ArgumentReader, templates: Sequence[dict[str, Any]], provisioners: Sequence[dict[str, Any]]
) -> None:
    for field, shape, items in (
        ("node_templates", NodeTemplateArgs, templates),
        ("provisioners", ProvisionerArgs, provisioners),
    ):
        seen: set[str] = set()
        for index, item in enumerate(items):
            each = ArgumentReader("", item, shape, f"{field}[{index}]")
            if item.get("name") in seen:
                each.report("name", f"{item['name']!r} is used twice")
            seen.add(item.get("name", ""))
            reader.problems.extend(each.problems)
    known = [item.get("name", "") for item in templates]
    for index, item in enumerate(provisioners):
        if item.get("node_template", known[:1]) not in (*known, known[:1]):
            reader.report(
                f"provisioners[{index}].node_template",
                f"{item['node_template']!r} is not declared here",
                f"declared are {', '.join(known) or 'none'}",
            )
