"""`python -m localenv`: build, up, demo."""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path
from types import FrameType

from localenv.binaries import (
    actionlint,
    control_plane_binaries,
    helm,
    krew,
    language_hosts,
    opentofu,
    prometheus,
    promtool,
    pulumi_engine,
    tofu_provider,
)
from localenv.environment import Environment, EnvironmentFailed, Options
from localenv.golang import BuildFailed, ToolchainMissing
from localenv.karpenter import karpenter_charts
from localenv.kueue import kueue, provisioning_request_definition
from localenv.progress import StreamReport


def main(arguments: list[str] | None = None) -> int:
    """Run a command of the environment; give its exit code (`run_command`)."""
    return run_command(_parser(), arguments)


#: What `which` finds, by name.
_PROGRAMS = {
    "actionlint": actionlint,
    "helm": helm,
    "krew": krew,
    "language-hosts": language_hosts,
    "prometheus": prometheus,
    "promtool": promtool,
    "pulumi": pulumi_engine,
}

#: What keeps a command from running, told in one line.
FAULTS = (EnvironmentFailed, ToolchainMissing, BuildFailed)


def run_command(
    parser: argparse.ArgumentParser,
    arguments: list[str] | None = None,
    *,
    faults: tuple[type[Exception], ...] = FAULTS,
    interrupted: str = "everything was stopped",
) -> int:
    """Run what the parsed arguments name as `run`; give the exit code.

    Args:
        parser: Its commands set `run`, which takes the parsed arguments and gives an exit code.
        arguments: Those of the process by default.
        faults: What is told in one line instead of a traceback.
        interrupted: What is said of an interrupted run.

    Returns:
        0 well, 1 something that was tried failed, 2 it could not run, 130 interrupted.
    """
    options = parser.parse_args(arguments)
    # Set both: a shell starts background jobs with SIGINT ignored, and this must end by it all the same.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    name = parser.prog.rpartition(" ")[2]
    try:
        return int(options.run(options))
    except faults as error:
        print(f"{name}: {error}", file=sys.stderr)  # noqa: T201
        return 2
    except KeyboardInterrupt:
        print(f"{name}: interrupted; {interrupted}", file=sys.stderr)  # noqa: T201
        return 130


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m localenv", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    build = commands.add_parser(
        "build", help="find the control plane, the Pulumi engine and Helm, or build them"
    )
    build.add_argument(
        "--tests",
        action="store_true",
        help="also build what only the tests need: Prometheus, OpenTofu, actionlint, krew, "
        "Pulumi's language hosts, Karpenter's charts, Kueue",
    )
    build.set_defaults(run=_build)
    which = commands.add_parser("which", help="print the path of a program; it is built first if necessary")
    which.add_argument("program", choices=[*_PROGRAMS])
    which.set_defaults(run=_which)
    up = commands.add_parser("up", help="start the environment and keep it running until Ctrl-C")
    up.add_argument("--boot-seconds", type=float, default=2.0, help="seconds from a launch to a Ready node")
    up.add_argument(
        "--directory", type=Path, help="folder for logs, kubeconfig and state; a temporary one by default"
    )
    up.add_argument("--port", type=int, help="port of the API server; a free one by default")
    up.add_argument("--aws-port", type=int, help="port of the local AWS; a free one by default")
    up.add_argument(
        "--no-stack", action="store_true", help="do not deploy the Pulumi stack, so no controller runs"
    )
    up.set_defaults(run=_up)
    demo = commands.add_parser("demo", help="run the labs in a new environment and stop it afterwards")
    demo.add_argument(
        "--json", action="store_true", help="print the results as JSON on stdout, everything else on stderr"
    )
    demo.add_argument("--boot-seconds", type=float, default=2.0, help="seconds from a launch to a Ready node")
    demo.set_defaults(run=_demo)
    return parser


def _build(options: argparse.Namespace) -> int:
    report = StreamReport()
    control_plane_binaries(report)
    pulumi_engine(report)
    helm(report)
    if options.tests:
        for of_the_tests in (
            prometheus,
            promtool,
            opentofu,
            actionlint,
            krew,
            language_hosts,
            karpenter_charts,
            provisioning_request_definition,
            kueue,
        ):
            of_the_tests(report)
        for name in ("aws", "helm"):
            tofu_provider(name, report)
    return 0


def _which(options: argparse.Namespace) -> int:
    print(_PROGRAMS[options.program](StreamReport()))  # noqa: T201 - for other commands
    return 0


def _up(options: argparse.Namespace) -> int:
    wanted = Options(
        boot_seconds=options.boot_seconds,
        port=options.port,
        aws_port=options.aws_port,
        with_stack=not options.no_stack,
    )
    with Environment.start(options.directory, options=wanted) as environment:
        for name, value in environment.variables().items():
            print(f"export {name}={value}")  # noqa: T201 - to be evaluated by a shell
        sys.stdout.flush()
        environment.report("the environment is running; press Ctrl-C to stop it")
        signal.pause()
    return 0


def _demo(options: argparse.Namespace) -> int:
    from localenv import demo  # noqa: PLC0415 - rich and Pulumi load only where they are needed

    return demo.run(as_json=options.json, boot_seconds=options.boot_seconds)
