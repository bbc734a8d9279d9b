"""The Helm charts, rendered and installed by the real Helm."""
