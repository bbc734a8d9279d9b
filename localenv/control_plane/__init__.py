"""A Kubernetes control plane on this machine: etcd, kube-apiserver, kube-scheduler, kube-controller-manager.

`running` starts it, watches it and takes it down; `flags` has the command lines,
`state` the folder in memory, and `source/` the Go module that the four programs are built
from when none are installed (`localenv.binaries`); certificates are `localenv.certificates`'.
"""

from localenv.control_plane.running import ControlPlane

__all__ = ["ControlPlane"]
