"""`python -m infra.local`: build, up, demo, bench, soak."""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path
from types import FrameType

from infra.local.binaries import control_plane_binaries, pulumi_engine
from infra.local.environment import Environment, EnvironmentFailed, Options
from infra.local.golang import BuildFailed, ToolchainMissing
from infra.local.progress import StreamReport


def main(arguments: list[str] | None = None) -> int:
    """Run a command; give its exit code: 0 well, 1 a lab failed, 2 it could not run, 130 interrupted."""
    options = _parser().parse_args(arguments)
    # Set both: a shell starts background jobs with SIGINT ignored, and this must end by it all the same.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    try:
        return int(options.run(options))
    except (EnvironmentFailed, ToolchainMissing, BuildFailed) as error:
        print(f"infra.local: {error}", file=sys.stderr)  # noqa: T201
        return 2
    except KeyboardInterrupt:
        print("infra.local: interrupted; everything is taken down", file=sys.stderr)  # noqa: T201
        return 130


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m infra.local", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    build = commands.add_parser("build", help="find the control plane and the Pulumi engine, or build them")
    build.set_defaults(run=_build)
    up = commands.add_parser("up", help="bring the environment up and leave it running until Ctrl-C")
    up.add_argument("--boot-seconds", type=float, default=2.0, help="from an instance's launch to its node")
    up.add_argument(
        "--directory", type=Path, help="for logs, kubeconfig and state; a temporary one by default"
    )
    up.add_argument("--port", type=int, help="of the API server; a free one by default")
    up.add_argument("--aws-port", type=int, help="of the local AWS; a free one by default")
    up.add_argument("--no-stack", action="store_true", help="without the Pulumi stack: no controller")
    up.set_defaults(run=_up)
    demo = commands.add_parser("demo", help="run the labs on a new environment and take it down")
    demo.add_argument("--json", action="store_true", help="results as JSON on stdout, the rest on stderr")
    demo.add_argument("--boot-seconds", type=float, default=2.0, help="from an instance's launch to its node")
    demo.set_defaults(run=_demo)
    bench = commands.add_parser("bench", help="print how much of the way to a node is ours")
    bench.add_argument("--rounds", type=int, default=5)
    bench.add_argument("--peer", action="store_true", help="the real Karpenter and nodeless on the same work")
    bench.add_argument("--seed", type=int, help="with --peer: of the work; a new one by default")
    bench.add_argument("--pods", type=int, default=200, help="with --peer: about how many at the most")
    bench.add_argument("--seconds", type=float, default=180.0, help="with --peer: for each workload")
    bench.add_argument("--boot-seconds", type=float, default=30.0, help="with --peer: from launch to node")
    bench.add_argument("--controller", action="append", choices=("karpenter", "nodeless"), help="with --peer")
    bench.add_argument("--only", action="append", metavar="WORD", help="with --peer: of a workload's name")
    bench.set_defaults(run=_bench)
    soak = commands.add_parser("soak", help="keep a large cluster busy, and watch the controller")
    soak.add_argument("--minutes", type=float, default=30.0, help="of churn")
    soak.add_argument("--pods", type=int, default=5000, help="ten fill a node")
    soak.set_defaults(run=_soak)
    return parser


def _build(_options: argparse.Namespace) -> int:
    report = StreamReport()
    control_plane_binaries(report)
    pulumi_engine(report)
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
        environment.report("the environment is up; Ctrl-C takes it down")
        signal.pause()
    return 0


def _demo(options: argparse.Namespace) -> int:
    from infra.local import demo  # noqa: PLC0415 - rich and Pulumi load only where they are needed

    return demo.run(as_json=options.json, boot_seconds=options.boot_seconds)


def _bench(options: argparse.Namespace) -> int:
    from infra.local import bench  # noqa: PLC0415
    from infra.local.peer import bench as peer  # noqa: PLC0415

    if options.peer:
        return peer.run(
            options.seed,
            options.pods,
            options.seconds,
            boot_seconds=options.boot_seconds,
            controllers=options.controller or peer.CONTROLLERS,
            only=options.only or (),
        )
    return bench.run(options.rounds)


def _soak(options: argparse.Namespace) -> int:
    from infra.local import soak  # noqa: PLC0415 - only this command needs it

    return soak.run(options.minutes, options.pods)
