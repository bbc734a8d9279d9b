"""Simulated kubelets and what EKS itself does around them, in one child process.

Instances of the local AWS become Nodes; pods run and end; Fargate; the controller's pods are really executed;
the pods' mutating webhook; the way from the API server to the pods. Start it with `Kubelets.start`.
"""

from localenv.kubelets.launcher import Kubelets

__all__ = ["Kubelets"]
