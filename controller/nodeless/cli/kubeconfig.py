"""Which cluster a command is about."""

import os
from pathlib import Path


class ClusterUnreadable(Exception):
    """The cluster cannot be read; the text says what was in the way."""


def use_kubeconfig(path: str) -> None:
    """Which kubeconfig to use: the one given, else $KUBECONFIG, else the user's own if there is one.

    Raises:
        ClusterUnreadable: There is no such file, or nothing that names a cluster.
    """
    if path and not Path(path).is_file():
        raise ClusterUnreadable(f"--kubeconfig {path}: there is no such file")
    usual = Path.home() / ".kube" / "config"
    if path:
        os.environ["KUBECONFIG"] = path
    elif not os.environ.get("KUBECONFIG") and usual.exists():
        os.environ["KUBECONFIG"] = str(usual)
    elif not os.environ.get("KUBECONFIG") and "KUBERNETES_SERVICE_HOST" not in os.environ:
        raise ClusterUnreadable(
            f"no cluster is named: KUBECONFIG is not set, and there is no {usual}"
            "; hint: set KUBECONFIG, or give --kubeconfig FILE"
        )
