"""The component host: serves the components to programs in any Pulumi language.

The engine starts it with PulumiPlugin.yaml. From TypeScript, Go, C#, Java or YAML:
`pulumi package add <this repository>/components`.
"""

from pulumi.provider.experimental import component_provider_host

from pulumi_nodeless.schema import PACKAGE, components, package_version

if __name__ == "__main__":
    component_provider_host(components(), PACKAGE, version=package_version())
