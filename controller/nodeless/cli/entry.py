"""Where the command `nodeless` begins: a plain installation has the rules, and not what commands need."""

import sys

from nodeless import DISTRIBUTION, __version__


def main() -> None:
    """Run the command; one line and exit code 2 where packages that it needs are not installed."""
    try:
        # Imported here: without the extra there is no library for command lines.
        from nodeless.cli.main import main as run  # noqa: PLC0415

        run()
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package in ("", "nodeless"):
            raise
        hint = f"pip install '{DISTRIBUTION}[controller]=={__version__}'"
        print(f"nodeless: package {package} is not installed; hint: {hint}", file=sys.stderr)  # noqa: T201
        raise SystemExit(2) from None
