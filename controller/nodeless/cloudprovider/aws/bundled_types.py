"""What this distribution knows of instance types without asking anyone: the labels in its catalog.

For warnings and offline checks only. What is launched is decided by what EC2 says.
"""

from functools import cache

from nodeless.api.known_types import KnownTypes


@cache
def bundled_types() -> KnownTypes:
    """The labels of the types that EC2 described when the catalog was written."""
    # Imported here: most commands ask nothing of types.
    from nodeless.cloudprovider.aws.catalog_file import bundled_catalog, known_types  # noqa: PLC0415

    return known_types(bundled_catalog())
