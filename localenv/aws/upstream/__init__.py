"""What moto lacks, one module a gap, in the shape of patches that could go upstream.

A module says what moto does, what AWS does instead, and where AWS says so; its tests stand in
tests/localenv/aws/upstream under its name. Two forms:

* `patch()` replaces methods of moto's own classes, and can be taken over as it is;
* `HANDLERS` answers calls: a handler is what a method of moto's response class would be, with its parameters
  parsed; `Call.forward` is the answer of the method that it replaces, and `Call.state` holds what moto's
  backend would hold.

Nothing in here knows of clusters or of this environment; the faults that tests switch on are asked for where
EC2 would have them. What is specific to us stays in `localenv.aws`.
"""

from __future__ import annotations


def replace_method(owner: type, name: str, method: object) -> None:
    """Put a method in the place of moto's."""
    setattr(owner, name, method)
