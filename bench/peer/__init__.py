"""nodeless beside the real Karpenter controller, in turn and on the same work: `make bench ARGS=--peer`.

- `workloads`: what is done to a cluster, drawn from a seed
- `meter`: what that cost: money over the time, seconds, evictions, calls, processor, memory
- `comparison`: both in turn (the peer is `localenv.karpenter`), and the table
"""
