"""AWS behind the door of room `cloud`, one module a noun.

`provider` puts them together: `instance_types` and `pricing` make the catalogue,
`subnets`, `security_groups` and `images` resolve a node class, `launching` with
`launch_templates` makes instances, `instances` finds and ends them. `session` holds the
clients, `errors` speaks for them, `caching` and `batching` keep calls few.

`type_facts`, `instance_type_math`, `instance_type_labels`, `price_list`, `selectors`,
`image_parameters` and `instance_records` are pure.
"""

from nodeless.cloud.aws.provider import AwsProvider
from nodeless.cloud.aws.settings import AwsSettings

__all__ = ["AwsProvider", "AwsSettings"]
