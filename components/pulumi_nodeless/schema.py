"""The package's schema: what other languages see of the components.

Derived from the components' classes and documented argument types by Pulumi's own analyzer, the same that
answers `GetSchema` in the component host, so that file and host cannot disagree. A change of it is a change
of the package's interface.
"""

import json
from inspect import cleandoc
from typing import Any

import pulumi
from pulumi.provider.experimental.component import ComponentProvider

import pulumi_nodeless

#: Name of the package, and first part of every type token.
PACKAGE = "nodeless"
#: What stands before the name in the SDKs: `@nodeless/nodeless`, however the package is added.
NAMESPACE = "nodeless"


def components() -> list[type[pulumi.ComponentResource]]:
    """The components that the package exports, by name."""
    exported = (getattr(pulumi_nodeless, name) for name in pulumi_nodeless.__all__)
    return [each for each in exported if issubclass(each, pulumi.ComponentResource)]


def package_version() -> str:
    """Version of the package, which is that of its distribution."""
    return pulumi_nodeless.__version__


def package_schema() -> dict[str, Any]:
    """The package's schema as Pulumi's code generators read it.

    Returns:
        The document that https://www.pulumi.com/docs/iac/extending-pulumi/schema/ describes.
    """
    provider = ComponentProvider(components(), PACKAGE, NAMESPACE, package_version())
    return with_plain_descriptions(provider.schema)


def with_plain_descriptions(text: str | None) -> dict[str, Any]:
    """A schema of the analyzer, whose descriptions keep the indentation of docstrings, without that.

    Markdown would render an indented paragraph as code.
    """
    schema: dict[str, Any] = json.loads(text or "{}")
    for resource in schema["resources"].values():
        resource["description"] = cleandoc(resource["description"])
    return schema
