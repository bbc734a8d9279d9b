"""The cloud's warnings about instances, and their status checks."""
