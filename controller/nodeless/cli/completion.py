"""Names of objects for the shell that completes a command: out of the files given, or of the cluster.

Whatever is in the way, nothing is said: the person is typing. It takes two seconds of the cluster at most.
"""

import io
import os
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import Any

import typer

from nodeless.api.kinds import KIND_OF_NAME
from nodeless.cli.bounded_files import STDIN
from nodeless.model.packing import PACKINGS
from nodeless.model.workloads import kind_called

#: Seconds that the cluster is given.
PATIENCE = 2.0
#: Bytes of files that are read for it.
_MOST_BYTES = 2 * 1024 * 1024
#: Objects of a kind that are asked for.
_MOST_NAMES = "500"
#: Collections of kinds that are not ours; `{}` is for the namespace.
_PATHS = {
    "Pod": "/api/v1{}/pods",
    "Node": "/api/v1/nodes",
    "Deployment": "/apis/apps/v1{}/deployments",
    "StatefulSet": "/apis/apps/v1{}/statefulsets",
    "DaemonSet": "/apis/apps/v1{}/daemonsets",
    "Job": "/apis/batch/v1{}/jobs",
    "CronJob": "/apis/batch/v1{}/cronjobs",
}
_SUFFIXES = (".json", ".yaml", ".yml")
#: What bash parts words at, and the option whose values have it.
_BREAKS, _OPTION = ("=", ":"), "--what-if"
#: Where `join_words` leaves what bash has cut off the word at the cursor.
_BEGUN = "_NODELESS_WORD_BEGUN"
#: What is written for a kind that is completed.
_SHORT = {"Deployment": "deploy", "StatefulSet": "sts", "DaemonSet": "ds"}
POOLS = ("NodePool", "Provisioner")
NODES = ("Node", "NodeClaim", *POOLS)
ANYTHING = ("Pod", "Deployment", "StatefulSet", "Job", "CronJob", *NODES)

Completion = Callable[[typer.Context, str], list[str]]


def object_names(kinds: Sequence[str], *, beside_files: bool = False) -> Completion:
    """What completes an argument that names objects.

    Args:
        kinds: Of objects that may be named.
        beside_files: Whether files may be named, too: kinds are not offered then, the shell offers files.
    """

    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        return _objects(ctx.params, kinds, incomplete, beside_files=beside_files)

    return complete


def _objects(
    given: dict[str, Any], kinds: Sequence[str], incomplete: str, *, beside_files: bool = False
) -> list[str]:
    """`KIND/NAME` of objects; their kinds while none is written."""
    written, slash, _ = incomplete.partition("/")
    if not slash:
        begun = [f"{_SHORT.get(kind, kind.lower())}/" for kind in kinds]
        begun = [] if beside_files else [kind for kind in begun if kind.startswith(incomplete)]
        if len(begun) != 1:
            return begun
        # A shell would put a space behind the only one.
        written = begun[0].removesuffix("/")
    kind = kind_called(written)
    if kind not in kinds:
        return []
    return [f"{written}/{name}" for name in _silently(lambda: _names(given, kind))]


def _silently(look: Callable[[], Iterable[str]]) -> list[str]:
    """What is found, in order; nothing, and no word about it, where something is in the way."""
    with suppress(Exception), redirect_stderr(io.StringIO()), redirect_stdout(io.StringIO()):
        return sorted(set(look()))
    return []


def changes(ctx: typer.Context, incomplete: str) -> list[str]:
    """What completes a change of `--what-if`: its word, and then what it works on."""
    # Bash has cut off what stands before.
    start = os.environ.get(_BEGUN, "")
    word, equals, begun = f"{start}{incomplete}".partition("=")
    if not equals:
        return [
            each for each in (*(f"{name}=" for name in _CHANGED), "without-spot") if each.startswith(word)
        ]
    values = _CHANGED[word](ctx.params, begun) if word in _CHANGED else []
    whole = [f"{word}={value}" for value in values if value.startswith(begun)]
    return [each.removeprefix(start) for each in whole]


def join_words() -> None:
    """Put together in `COMP_WORDS` what bash has parted at `=` and `:` in changes of `--what-if`.

    Of the word at the cursor bash keeps what it has cut off, so that only the rest is completed.
    """
    try:
        words = shlex.split(os.environ["COMP_WORDS"])
        position = int(os.environ["COMP_CWORD"])
    except (KeyError, ValueError):
        return
    before, at_cursor = words[:position], (words[position] if position < len(words) else "")
    if at_cursor in _BREAKS:
        before, at_cursor = [*before, at_cursor], ""
    joined = list[str]()
    for word in before:
        broken = len(joined) > 1 and joined[-2] == _OPTION and (word in _BREAKS or joined[-1][-1:] in _BREAKS)
        if broken:
            joined[-1] += word
        else:
            joined.append(word)
    start = ""
    if len(joined) > 1 and joined[-2] == _OPTION and joined[-1][-1] in _BREAKS:
        start = joined.pop()
    os.environ[_BEGUN] = start
    os.environ["COMP_CWORD"] = str(len(joined))
    behind = words[position + 1 :]
    os.environ["COMP_WORDS"] = shlex.join([*joined, *([at_cursor] if at_cursor or behind else []), *behind])


def _names(given: dict[str, Any], kind: str) -> Iterable[str]:
    """The names of a kind's objects where the command would look for them."""
    namespace = str(given.get("namespace") or "")
    if snapshot := given.get("snapshot"):
        return list(_of_snapshot(str(snapshot), kind, namespace))
    files = [str(file) for file in given.get("files") or ()] or _files_on_line()
    if files:
        return list(_of_files(files, kind, namespace))
    return _of_cluster(given, kind, namespace)


def _files_on_line() -> list[str]:
    """Files and folders on the line, which bash tells whole: those of `why` stand behind the name.

    Files before an option whose value is written are none of the command's yet.
    """
    try:
        words = shlex.split(os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS", ""))
    except ValueError:
        return []
    return [word for word in words[2:] if not word.startswith("-") and Path(word).exists()]


def _of_files(files: Sequence[str], kind: str, namespace: str) -> Iterator[str]:
    # Imported here: most completions need no YAML.
    from nodeless.cli.manifests.files import listed_files, read_files  # noqa: PLC0415

    listed = [name for file in files if file != STDIN for name in listed_files(file)[0]]
    if sum(Path(name).stat().st_size for name in listed) > _MOST_BYTES:
        return
    for document in read_files(listed).documents:
        manifest = document.value
        if isinstance(manifest, dict) and manifest.get("kind") == kind:
            metadata = manifest.get("metadata") or {}
            if namespace in ("", metadata.get("namespace") or namespace):
                yield str(metadata["name"])


def _of_snapshot(file: str, kind: str, namespace: str) -> Iterator[str]:
    # Imported here: the solver's types stand behind a snapshot.
    from nodeless.cli.commands.terms import saved_situation  # noqa: PLC0415
    from nodeless.model.workloads import workload_of  # noqa: PLC0415

    seen = saved_situation(file).situation.snapshot
    if kind == "Node":
        yield from seen.nodes
    elif kind == "NodeClaim":
        yield from seen.claims
    elif kind in POOLS:
        yield from (pool.name for pool in seen.pools.values() if pool.reference.kind == kind)
    else:
        for pod in seen.pods.values():
            workload = workload_of(pod)
            if namespace in ("", pod.namespace):
                if kind == "Pod":
                    yield pod.name
                elif workload.kind == kind:
                    yield workload.name


def _of_cluster(given: dict[str, Any], kind: str, namespace: str) -> list[str]:
    # Imported here: most completions need no cluster. It takes long, so it is done before the time begins.
    import asyncio  # noqa: PLC0415

    from nodeless.cli.kubeconfig import use_kubeconfig  # noqa: PLC0415
    from nodeless.kube import ApiClient  # noqa: PLC0415

    use_kubeconfig(str(given.get("kubeconfig") or ""))
    ours = KIND_OF_NAME.get(kind)
    path = ours.path() if ours else _PATHS[kind].format(f"/namespaces/{namespace}" if namespace else "")

    async def listed() -> list[str]:
        client = await ApiClient.connect()
        try:
            page = await client.request("GET", path, query={"limit": _MOST_NAMES})
        finally:
            await client.close()
        return [str(item["metadata"]["name"]) for item in page.get("items") or ()]

    return asyncio.run(asyncio.wait_for(listed(), PATIENCE))


def _workloads(given: dict[str, Any], begun: str) -> list[str]:
    return _objects(given, ("Deployment", "StatefulSet", "Job", "CronJob"), begun)


def _pools(given: dict[str, Any], _begun: str) -> list[str]:
    return _silently(lambda: [name for kind in POOLS for name in _names(given, kind)])


def _nodes(given: dict[str, Any], _begun: str) -> list[str]:
    return _silently(lambda: _names(given, "Node"))


def _types(_given: dict[str, Any], begun: str) -> list[str]:
    """Instance types; their families while none is written. Several may stand in a row."""
    # Imported here: it reads the labels of all types.
    from nodeless.cloudprovider.aws.bundled_types import bundled_types  # noqa: PLC0415

    before, comma, last = begun.rpartition(",")
    names = bundled_types().names
    families = sorted({f"{name.partition('.')[0]}.*" for name in names})
    return [f"{before}{comma}{name}" for name in (names if "." in last else families)]


def _zones(given: dict[str, Any], _begun: str) -> list[str]:
    """Those in which a snapshot sells types, or that the command is given."""
    if snapshot := given.get("snapshot"):
        return _silently(lambda: _zones_of_snapshot(str(snapshot)))
    return [zone for zone in str(given.get("zones") or "").split(",") if zone]


def _zones_of_snapshot(file: str) -> Iterator[str]:
    # Imported here: the solver's types stand behind a snapshot.
    from nodeless.cli.commands.terms import saved_situation  # noqa: PLC0415

    for kinds in saved_situation(file).situation.catalog.values():
        yield from (offering.zone for kind in kinds for offering in kind.offerings)


def _packings(_given: dict[str, Any], _begun: str) -> list[str]:
    return list(PACKINGS)


def _manifests(_given: dict[str, Any], begun: str) -> list[str]:
    """Files of manifests, and folders, beside what is written."""
    folder, slash, _ = begun.rpartition("/")
    return _silently(
        lambda: [
            f"{folder}{slash}{path.name}{'/' if path.is_dir() else ''}"
            for path in Path(f"{folder}{slash}" or ".").iterdir()
            if path.is_dir() or path.suffix in _SUFFIXES
        ]
    )


def _nothing(_given: dict[str, Any], _begun: str) -> list[str]:
    """A number, which is for the person to say."""
    return []


#: By the word of a change, what it works on: a test holds that none is missing.
_CHANGED: dict[str, Callable[[dict[str, Any], str], list[str]]] = {
    "add": _manifests,
    "limit": _pools,
    "node-fee": _nothing,
    "only-type": _types,
    "packing": _packings,
    "price": _types,
    "remove": _workloads,
    "scale": _workloads,
    "with-zone": _nothing,
    "without-node": _nodes,
    "without-pool": _pools,
    "without-type": _types,
    "without-zone": _zones,
}
