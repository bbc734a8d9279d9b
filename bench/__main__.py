"""`python -m bench`: nodes, peer, soak."""

from __future__ import annotations

import argparse
import sys

from localenv.cli import run_command


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    nodes = commands.add_parser("nodes", help="print how much of the way to a node is ours")
    nodes.add_argument("--rounds", type=int, default=5)
    nodes.set_defaults(run=_nodes)
    peer = commands.add_parser("peer", help="the real Karpenter and nodeless on the same work")
    peer.add_argument("--seed", type=int, help="of the work; a new one by default")
    peer.add_argument("--pods", type=int, default=200, help="about how many at the most")
    peer.add_argument("--seconds", type=float, default=180.0, help="for each workload")
    peer.add_argument("--boot-seconds", type=float, default=30.0, help="from a launch to a Ready node")
    peer.add_argument("--controller", action="append", choices=("karpenter", "nodeless"), help="one of both")
    peer.add_argument("--only", action="append", metavar="WORD", help="of a workload's name")
    peer.set_defaults(run=_peer)
    soak = commands.add_parser("soak", help="keep a large cluster busy, and watch the controller")
    soak.add_argument("--minutes", type=float, default=30.0, help="of churn")
    soak.add_argument("--pods", type=int, default=5000, help="ten fill a node")
    soak.set_defaults(run=_soak)
    return parser


def _nodes(options: argparse.Namespace) -> int:
    from bench import nodes  # noqa: PLC0415 - each command loads what it needs

    return nodes.run(options.rounds)


def _peer(options: argparse.Namespace) -> int:
    from bench.peer import comparison  # noqa: PLC0415

    return comparison.run(
        options.seed,
        options.pods,
        options.seconds,
        boot_seconds=options.boot_seconds,
        controllers=options.controller or comparison.CONTROLLERS,
        only=options.only or (),
    )


def _soak(options: argparse.Namespace) -> int:
    from bench import soak  # noqa: PLC0415

    return soak.run(options.minutes, options.pods)


if __name__ == "__main__":
    sys.exit(run_command(_parser()))
