"""nodeless: the node provisioner.

Read the rooms downwards: api, model, watch, state, solve, launch, lifecycle, cloud,
explain, admission, app. docs/architecture.md draws how they hang together.
"""

__version__ = "0.1.0"
