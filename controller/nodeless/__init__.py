"""nodeless: the node provisioner.

Read the packages in this order: model, api, state, scheduling, launch, nodeclaim, disruption, explain,
then operator, kube, cloudprovider, webhook, controllers, manager, cli. docs/architecture.md draws them.
"""

__version__ = "0.1.0"
#: Name on the Python package index, where `nodeless` is another product; pulumi_nodeless looks for it.
DISTRIBUTION = "nodeless-provisioner"
