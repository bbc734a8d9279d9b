"""AWS behind the protocol of `cloudprovider`, one module a noun.

`provider` puts them together: `instance_types` and `pricing` make the catalog,
`subnets`, `security_groups` and `images` resolve a node class, `launching` with
`launch_templates` makes instances, `instances` finds and ends them. `session` holds the
clients, `errors` speaks for them, `caching` and `batching` keep calls few.

`type_facts`, `node_shape`, `instance_type_math`, `instance_type_labels`, `instance_type_compatibility`,
`instance_type_builder`, `catalog_file`, `offline_catalogs`, `price_list`, `selectors`, `image_parameters` and
`instance_records` are pure: they can be imported where boto3 is not installed, so the provider is imported
when it is first asked for.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nodeless.cloudprovider.aws.provider import AwsProvider
    from nodeless.cloudprovider.aws.settings import AwsSettings

__all__ = ["AwsProvider", "AwsSettings"]


def __getattr__(name: str) -> Any:
    if name == "AwsSettings":
        from nodeless.cloudprovider.aws.settings import AwsSettings  # noqa: PLC0415

        return AwsSettings
    if name != "AwsProvider":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from nodeless.cloudprovider.aws.provider import AwsProvider  # noqa: PLC0415

    return AwsProvider
