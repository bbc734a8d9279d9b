"""Run the simulated kubelets: `python -m localenv.kubelets --kubeconfig FILE --aws-endpoint URL ...`.

AWS credentials come from the environment, as boto3 finds them. Ends on SIGTERM or SIGINT; its processes end
with it.
"""

import argparse
import asyncio
import contextlib
import logging
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from localenv.kubelets.simulator import Settings, simulate


def parse_arguments(arguments: Sequence[str]) -> Settings:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m localenv.kubelets", description=__doc__)
    parser.add_argument("--kubeconfig", type=Path, required=True, help="administrator's kubeconfig")
    parser.add_argument("--aws-endpoint", required=True, help="URL of the local AWS")
    parser.add_argument("--region", default="us-east-1")
    parser.add_argument("--directory", type=Path, required=True, help="logs and files of executed pods")
    parser.add_argument(
        "--proxy-socket", type=Path, required=True, help="unix socket of the API server's way in"
    )
    parser.add_argument("--boot-seconds", type=float, default=2.0, help="from a launch to a Ready node")
    parser.add_argument(
        "--fargate-boot-seconds", type=float, default=1.0, help="from a Fargate pod to its Node"
    )
    parser.add_argument("--pod-start-seconds", type=float, default=0.2, help="from binding to Running")
    parser.add_argument("--pod-stop-seconds", type=float, default=1.0, help="longest end of a simulated pod")
    parser.add_argument(
        "--execute",
        dest="executed_images",
        action="append",
        default=[],
        metavar="REPOSITORY",
        help="image repository to execute; repeatable",
    )
    given = vars(parser.parse_args(arguments))
    given["directory"] = given["directory"].resolve()
    given["executed_images"] = tuple(given["executed_images"])
    return Settings(**given)


async def _run(settings: Settings) -> None:
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()
    if task is not None:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, task.cancel)
    with contextlib.suppress(asyncio.CancelledError):
        await simulate(settings)


def main() -> None:
    """Run until a signal."""
    logging.basicConfig(
        stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    settings = parse_arguments(sys.argv[1:])
    settings.directory.mkdir(parents=True, exist_ok=True)
    asyncio.run(_run(settings))


if __name__ == "__main__":
    main()
