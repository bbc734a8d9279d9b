"""The component host: serves the components to programs in any Pulumi language.

The engine starts it with PulumiPlugin.yaml. From TypeScript, Go, C#, Java or YAML:
`pulumi package add <this repository>/components/plugin`.
"""

from pulumi_nodeless.host import serve

if __name__ == "__main__":
    serve()
