"""Releases: versions, changelog, artifacts, workflows."""
