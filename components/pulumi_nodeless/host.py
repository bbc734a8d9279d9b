"""The component host: serves the components to programs in any Pulumi language.

What the SDK's host does, with one thing more: an argument that cannot work is told as a property of the
resource, by the name that it has in those languages, instead of with a traceback of this package.
"""

import json
import sys
from inspect import signature

import pulumi
from pulumi.errors import InputPropertiesError, InputPropertyErrorDetails
from pulumi.provider import main
from pulumi.provider.experimental.component import ComponentProvider
from pulumi.provider.provider import ConstructResult

from pulumi_nodeless.arguments import ArgumentError
from pulumi_nodeless.schema import NAMESPACE, PACKAGE, components, package_version, with_plain_descriptions
from pulumi_nodeless.wire_names import wire_problems


class ComponentHost(ComponentProvider):
    """The package's components, their faults told as the engine tells those of resources."""

    def __init__(self) -> None:
        exported = components()
        super().__init__(exported, PACKAGE, NAMESPACE, package_version())
        self.schema = json.dumps(with_plain_descriptions(self.schema))
        self._shapes = {each.__name__: signature(each).parameters["args"].annotation for each in exported}

    def construct(
        self,
        name: str,
        resource_type: str,
        inputs: pulumi.Inputs,
        options: pulumi.ResourceOptions | None = None,
    ) -> ConstructResult:
        """Makes a component.

        Raises:
            InputPropertiesError: with every argument that cannot work.
        """
        try:
            return super().construct(name, resource_type, inputs, options)
        except Exception as error:
            # The SDK wraps what a constructor raises.
            cause = getattr(error, "inner", error)
            if not isinstance(cause, ArgumentError):
                raise
            shape = self._shapes[resource_type.rpartition(":")[2]]
            raise InputPropertiesError("invalid arguments", _details(cause, shape)) from None


def _details(error: ArgumentError, shape: type) -> list[InputPropertyErrorDetails]:
    return [
        {
            "property_path": wire_problem.path,
            "reason": wire_problem.message + (f" (hint: {wire_problem.hint})" if wire_problem.hint else ""),
        }
        for wire_problem in wire_problems(error, shape)
    ]


def serve() -> None:
    """Serves the components until the engine ends the process."""
    main(ComponentHost(), sys.argv[1:])
