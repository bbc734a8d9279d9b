"""The command line: commands, the manifests that they read, and what runs without a cluster."""
