"""What all commands share: remarks, the end with an exit code, reading saved situations."""

from collections.abc import Callable
from typing import TYPE_CHECKING, NoReturn

import typer

from nodeless.cli.bounded_files import UnreadableFileError, read_bytes

if TYPE_CHECKING:
    from nodeless.cli.live_cluster import Offline
    from nodeless.explain.decisions import Saved, Situation
    from nodeless.model.instance_types import Catalog

_GIVE = "hint: give a file or a folder, or - for stdin"


def remark(text: str) -> None:
    """A line for the person, not for the pipe."""
    typer.echo(text, err=True)


def refuse(message: str, code: int = 2) -> NoReturn:
    """End with a message on stderr."""
    remark(f"nodeless: {message}")
    raise typer.Exit(code)


def content_of(file: str) -> bytes:
    """The bytes of a file, or of stdin for `-`, uncompressed. Ends with exit code 2 when there are none."""
    try:
        return read_bytes(file, _GIVE)
    except UnreadableFileError as error:
        refuse(str(error))


def saved_situation(file: str) -> "Saved":
    """What a file of `nodeless snapshot` or a recorded decision holds; ends the command when it is none."""
    from nodeless.explain.decisions import read  # noqa: PLC0415 - the solver is loaded where it is used
    from nodeless.state.saving import SavedFormatError  # noqa: PLC0415

    try:
        return read(content_of(file))
    except SavedFormatError as error:
        refuse(f"{file}: {error}")


def from_cluster(
    kubeconfig: str,
    namespace: str,
    region: str,
    offline: "Offline | None" = None,
    offered: "Callable[[Catalog], None] | None" = None,
) -> "Situation":
    """The situation of a running cluster; ends the command when it cannot be read.

    `offline` and `offered` are those of `live_situation`.
    """
    # Imported here: commands on files need neither AWS nor the cluster.
    import asyncio  # noqa: PLC0415

    from nodeless.cli.kubeconfig import ClusterUnreadable, use_kubeconfig  # noqa: PLC0415
    from nodeless.cli.live_cluster import live_situation  # noqa: PLC0415
    from nodeless.cloudprovider import CloudError  # noqa: PLC0415
    from nodeless.kube import ApiError, ApiUnavailable  # noqa: PLC0415
    from nodeless.operator import logs  # noqa: PLC0415

    logs.only_errors()
    try:
        use_kubeconfig(kubeconfig)
        return asyncio.run(live_situation(namespace, region, remark, offline, offered))
    except (ApiUnavailable, ApiError, ClusterUnreadable, CloudError) as error:
        refuse(f"{error}; or give manifests or --snapshot, which need no cluster" if offline else str(error))
