"""From a plan to what the cloud is asked for. Pure: data in, data out, `now` is an argument.

Modules, in the order in which a new node passes them:

- `claims`: the plan's new nodes as NodeClaims, with names that never change
- `resolved`: what a node class selects at this moment: subnets, security groups, images
- `unavailable`: the memory of offerings that failed a short while ago
- `candidates`: the instance types that a claim may become, cheapest first
- `user_data`, and below it `kubelet_arguments`, `mime`, `al2`, `al2023`, `bottlerocket`, `toml_writer`: what
  an instance runs at its first boot
- `images`: which image fits which instance type
- `tags`, `templates`: launch templates, named by a digest of their content
- `fleet`: the CreateFleet request
- `results`: what its answer means

`cloudprovider` carries the requests out.
"""
