"""Traces of pods' ways to a node (docs/observability.md); nothing of it runs where no collector is named."""
