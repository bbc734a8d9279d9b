"""Commands to go on with once an environment is up; pure texts."""

from pulumi_nodeless.kubeconfig import region_of


def next_steps(cluster: str, arn: str, namespace: str) -> list[str]:
    """Commands that reach the cluster, look at the controller and watch nodes come, in this order.

    Args:
        cluster: the cluster's name.
        arn: the cluster's ARN, which names its region.
        namespace: the controller's namespace; its Deployment is called `karpenter` anywhere.

    Raises:
        ValueError: the ARN names no region.
    """
    return [
        f"aws eks update-kubeconfig --region {region_of(arn)} --name {cluster}",
        f"kubectl -n {namespace} get deployment,pods",
        f"kubectl -n {namespace} logs deployment/karpenter",
        "kubectl get nodeclaims -w",
    ]
