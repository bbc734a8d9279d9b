"""From node groups of Cluster Autoscaler to pools and node classes: what is proposed, what is not, and how.

`answers` takes in what the AWS CLI prints, `groups` and its neighbors read a group, `proposals` writes
its pool and node class, `behavior` names the pods that would behave differently, `steps` says how to get
there and back, `report` has it all. Every member of the input is accounted for in a `ledger`.
"""
