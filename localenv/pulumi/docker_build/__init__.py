"""Stands in for the provider `docker-build` where there is no BuildKit: all but the running of steps."""
