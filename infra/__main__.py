"""The full environment on AWS, from a stack's configuration.

Reads every key that Pulumi.yaml declares and hands it to `pulumi_nodeless.Environment`. Defaults live with
the component and are repeated in Pulumi.yaml for its readers; a key that is not set is not handed on. Members
of objects are written in camelCase, as the keys are.
"""

import pulumi
import pulumi_aws as aws

from pulumi_nodeless import Environment
from pulumi_nodeless.configuration import environment_args, faults_by_key, require_provider_key

NAMESPACE = "nodeless"

args = environment_args(NAMESPACE, f"nodeless-{pulumi.get_stack()}")
region = require_provider_key("aws", "region", "set AWS_PROFILE or the like in the environment")
provider = aws.Provider("aws", region=region)
with faults_by_key(NAMESPACE):
    environment = Environment("nodeless", args, pulumi.ResourceOptions(providers=[provider]))
for name, output in environment.outputs().items():
    pulumi.export(name, output)
