"""What this distribution knows of instance types without asking anyone: the labels in its catalogue.

For warnings and offline checks only. What is launched is decided by what EC2 says.
"""

from functools import cache

from nodeless.api.known_types import KnownTypes


@cache
def bundled_types() -> KnownTypes:
    """The labels of the types that EC2 described when the catalogue was written."""
    # Imported here: most commands ask nothing of types.
    from nodeless.cloudprovider.aws.catalogue_file import bundled_catalogue, known_types  # noqa: PLC0415

    return known_types(bundled_catalogue())
