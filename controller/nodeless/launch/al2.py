"""User data of Amazon Linux 2 and Ubuntu: a MIME archive whose last part calls EKS's `bootstrap.sh`.

The node class's own text comes before it: a MIME archive part by part, anything else as
a shell script. The last part is Karpenter's to the byte, as v0.27 or v1 writes it, so that an image that
was made for Karpenter finds what it expects.
"""

from nodeless.launch import mime
from nodeless.launch.kubelet_arguments import Bootstrap, extra_arguments
from nodeless.launch.shell import bare, quote_word

_CONTINUED = " \\\n"


def user_data(bootstrap: Bootstrap, *, ubuntu: bool = False) -> str:
    """The whole archive.

    Raises:
        nodeless.launch.mime.MimeError: The custom text begins as an archive but is none.
        nodeless.launch.kubelet_arguments.ArgumentError: Something cannot be told to the kubelet.
        nodeless.launch.shell.ShellError: Something cannot be written into a script.
    """
    parts = custom_parts(bootstrap.custom)
    parts.append(mime.Part(mime.SHELL, bootstrap_script(bootstrap, ubuntu=ubuntu)))
    return mime.archive(parts)


def custom_parts(custom: str) -> list[mime.Part]:
    """The parts of a node class's own user data."""
    if not custom.strip():
        return []
    if mime.is_archive(custom):
        return mime.parts_of(custom)
    return [mime.Part(mime.SHELL, custom)]


def bootstrap_script(bootstrap: Bootstrap, *, ubuntu: bool = False) -> str:
    """The shell script that makes the node join."""
    cluster = bootstrap.cluster
    call = (
        f"/etc/eks/bootstrap.sh {quote_word(cluster.name)} "
        f"--apiserver-endpoint {quote_word(cluster.endpoint)} "
        f"--b64-cluster-ca {quote_word(cluster.certificate_authority)}"
    )
    options = _options_of_v1(bootstrap) if bootstrap.of_v1 else _options(bootstrap, ubuntu=ubuntu)
    if bootstrap.instance_store_raid and not ubuntu:
        options.append("--local-disks raid0")
    return (
        "#!/bin/bash -xe\n"
        "exec > >(tee /var/log/user-data.log|logger -t user-data -s 2>/dev/console) 2>&1\n"
        + _CONTINUED.join([call, *(option for option in options if option)])
    )


def _options(bootstrap: Bootstrap, *, ubuntu: bool) -> list[str]:
    """In v0.27's order; those that do not apply are empty."""
    runtime = bootstrap.kubelet.container_runtime or "containerd"
    arguments = extra_arguments(bootstrap)
    return [
        "--ip-family ipv6" if bootstrap.ipv6 else "",
        "" if bootstrap.max_pods is None else "--use-max-pods false",
        "" if ubuntu else f"--container-runtime {bare(runtime)}",
        f"--kubelet-extra-args {quote_word(arguments)}" if arguments else "",
        f"--dns-cluster-ip {quote_word(bootstrap.cluster_dns)}" if bootstrap.cluster_dns else "",
    ]


def _options_of_v1(bootstrap: Bootstrap) -> list[str]:
    """In v1's order, which leaves the container runtime to the image."""
    arguments = extra_arguments(bootstrap)
    return [
        "--ip-family ipv6" if bootstrap.ipv6 else "",
        f"--dns-cluster-ip {quote_word(bootstrap.cluster_dns)}" if bootstrap.cluster_dns else "",
        "" if bootstrap.max_pods is None else "--use-max-pods false",
        f"--kubelet-extra-args {quote_word(arguments)}" if arguments else "",
    ]
