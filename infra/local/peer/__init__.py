"""nodeless beside the real Karpenter controller, in turn and on the same work: `make bench ARGS=--peer`.

- `karpenter`: the peer, built from its Go module, in the place of the stack's controller
- `workloads`: what is done to a cluster, drawn from a seed
- `meter`: what that cost: money over the time, seconds, evictions, calls, processor, memory
- `bench`: both in turn, and the table
"""
