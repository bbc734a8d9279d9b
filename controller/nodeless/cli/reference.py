"""The pages of docs/ that are made from the code: settings, metrics, events, kinds, commands, messages, rules, schemas.

`nodeless reference docs` writes them; `--check`, and a test, keep them equal to the code.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from nodeless.cli.commands.terms import refuse
from nodeless.cli.reference_text import code as _code
from nodeless.cli.reference_text import listed as _listed
from nodeless.cli.reference_text import page as _page
from nodeless.cli.reference_text import table as _table
from nodeless.operator.config_sources import flag_of

reference = typer.Typer()


@reference.command(name="reference", rich_help_panel="For contributors")
def write(
    directory: Annotated[Path, typer.Argument(help="Folder of the pages.")] = Path("docs"),
    check: Annotated[
        bool, typer.Option("--check", help="Compare instead of writing. Exit code 1: there is a difference.")
    ] = False,
) -> None:
    """Write the reference pages: settings, metrics, events, kinds and fields, commands, messages, rules, schemas."""
    stale = []
    for name, text in pages().items():
        file = directory / name
        if not check:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
            typer.echo(file)
        elif not file.is_file() or file.read_text() != text:
            stale.append(str(file))
    if stale:
        hint = f"run `nodeless reference {directory}`"
        refuse(f"not what the code says: {', '.join(stale)}; hint: {hint}", code=1)


def pages() -> dict[str, str]:
    """The pages by file name."""
    # Imported here: the schemas take long to make, and plans need none of them.
    from nodeless.cli.reference_commands import command_pages  # noqa: PLC0415
    from nodeless.cli.reference_fields import field_pages  # noqa: PLC0415
    from nodeless.cli.reference_messages import message_pages  # noqa: PLC0415
    from nodeless.cli.reference_rules import rule_pages  # noqa: PLC0415
    from nodeless.cli.reference_schemas import schema_pages  # noqa: PLC0415

    tables = {"settings.md": _settings(), "metrics.md": _metrics(), "events.md": _events()}
    return {**tables, **field_pages(), **command_pages(), **message_pages(), **rule_pages(), **schema_pages()}


def _settings() -> str:
    from nodeless.operator.process_settings import PROCESS_SETTINGS  # noqa: PLC0415
    from nodeless.operator.settings import SETTINGS, SETTINGS_NAME  # noqa: PLC0415

    cluster = (
        (
            f"`{setting.key}`",
            f"`FEATURE_GATES={setting.gate}=true`" if setting.gate else _code(setting.variable),
            _code(setting.default) or ("required" if setting.required else "empty"),
            "at once" if setting.live else "after a restart",
            setting.meaning,
        )
        for setting in SETTINGS.values()
    )
    process = (
        (
            _code(setting.variable),
            f"`{flag_of(setting.variable)}`" if setting.flag else "",
            _code(setting.default) or ("required" if setting.required else "empty"),
            setting.meaning
            + (f" `{setting.inverse}` is the opposite." if setting.inverse else "")
            + (f" If it is not set, `{setting.fallback}` applies." if setting.fallback else ""),
        )
        for setting in PROCESS_SETTINGS.values()
    )
    return _page(
        "Settings",
        f"""A flag overrides the environment variable of the same name (`--batch-max-duration`, `BATCH_MAX_DURATION`). A variable
overrides the ConfigMap `{SETTINGS_NAME}` in the controller's namespace, and the ConfigMap overrides the default.
If you set `CLUSTER_NAME`, you need no ConfigMap.

nodeless watches the ConfigMap. If a value is invalid, nodeless keeps the last valid one, or the default when it starts,
until you correct it. If there is no default, the process waits. The log names the ConfigMap, the key, the value and what
to write. The event `InvalidSetting` on the ConfigMap and the metric `nodeless_settings_invalid` report it, too. With an
invalid flag or variable, the process does not start, and prints one line that says why.""",
        "## The ConfigMap",
        _table(("Key", "Variable of v1", "Default", "Takes effect", "Meaning"), cluster),
        "## The process",
        _table(("Variable", "Flag", "Default", "Meaning"), process),
        "## Logging",
        """nodeless also watches the optional ConfigMap `config-logging`. If the API server refuses access to it, the defaults apply,
and the log says so. The keys `loglevel.controller` and `loglevel.webhook` override the `level` in `zap-logger-config`. In
`zap-logger-config`, these fields take effect: `level`, `encoding` (`console`, `json`), `sampling`, `disableCaller`,
`outputPaths`, `errorOutputPaths` and `encoderConfig` (`timeKey`, `levelKey`, `nameKey`, `callerKey`, `messageKey`,
`stacktraceKey`, `timeEncoder`, `levelEncoder`). The levels are debug, info, warn, error, dpanic, panic and fatal. If
`POD_NAME` is set, each log line has the field `pod`.""",
    )


def _metrics() -> str:
    from nodeless.operator.cluster_metrics import FAMILIES  # noqa: PLC0415
    from nodeless.operator.metric_types import counters  # noqa: PLC0415
    from nodeless.operator.metrics import Metrics  # noqa: PLC0415
    from nodeless.operator.offering_metrics import OFFERING_FAMILIES  # noqa: PLC0415
    from nodeless.operator.v1_metrics import MIRRORS  # noqa: PLC0415

    # Collectors do not tell their names by public attributes.
    registry = Metrics().registry
    collectors: Iterable[Any] = registry._collector_to_names
    grow = counters(registry)
    rows = sorted(
        (
            f"`{collector._name}`",
            "counter" if collector._name in grow else collector._type,
            _listed(collector._labelnames),
            collector._documentation,
        )
        for collector in collectors
        if hasattr(collector, "_labelnames")
    )
    cluster = ((f"`{name}`", "gauge", _listed(labels), text) for name, (text, labels) in FAMILIES.items())
    offerings = (
        (f"`{name}`", "gauge", _listed(labels), text) for name, (text, labels) in OFFERING_FAMILIES.items()
    )
    mirrors = (
        (f"`{mirror.name}`", mirror.type, _listed(mirror.labels), f"`{mirror.of}`") for mirror in MIRRORS
    )
    return _page(
        "Metrics",
        """The controller serves these metrics on port 8080 at `/metrics`, in Prometheus's text format, together with metrics of its
process (`process_*`, `python_*`). Durations are in seconds, CPU is in cores, and everything else is in base units.
`resource_type` is the name of the resource in lower case, with `_` instead of `-`.""",
        "## The controller",
        _table(("Name", "Type", "Labels", "Meaning"), rows),
        "## Nodes, pods and conditions",
        """nodeless computes these series from the state of the cluster at each scrape, so series of deleted objects disappear. If a node
lacks a label, its value is `N/A`.""",
        _table(("Name", "Type", "Labels", "Meaning"), cluster),
        "## Instance types",
        "These series describe the instance types that the pools allow. The leader updates them once a minute.",
        _table(("Name", "Type", "Labels", "Meaning"), offerings),
        "## Names of Karpenter v1",
        "These metrics have the same values, for dashboards of Karpenter v1.",
        _table(("Name", "Type", "Labels", "Same as"), mirrors),
    )


def _events() -> str:
    from nodeless.operator.event_reasons import EVENT_RULES  # noqa: PLC0415

    rows = (
        (
            f"[`{rule.reason}`](messages.md#{rule.reason.lower()})",
            rule.type,
            _listed(rule.kinds, as_code=False),
            f"once in {rule.silent_seconds / 60:.0f} min"
            + ("" if rule.by_message else " per object")
            + (f", at most {rule.per_second:.0f}/s in bursts of {rule.burst}" if rule.per_second else ""),
            f"{rule.meaning}.",
        )
        for rule in EVENT_RULES
    )
    return _page(
        "Events",
        """`kubectl describe` and `kubectl get events` show these events. Their component is `karpenter`. Events of objects without a
namespace are in the namespace `default`. When the process ends, it still writes the queued events, for up to three seconds.

nodeless does not repeat an equal event within the time in the column *Deduplicated*. Events are equal if they have the same
object, reason and message. With *per object*, the message makes no difference.""",
        _table(("Reason", "Type", "On", "Deduplicated", "Meaning"), rows),
    )
