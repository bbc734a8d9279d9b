"""Write what is derived from the components: schema, pages, files of the charts and of the Terraform module.

    python -m pulumi_nodeless generate [--check]

With `--check` nothing is written; the command fails when a file is not what it would write.
"""

import argparse
import json
import sys
from pathlib import Path

from pulumi_nodeless.chart import chart_files
from pulumi_nodeless.permissions import permissions_page
from pulumi_nodeless.reference import pages
from pulumi_nodeless.schema import package_schema
from pulumi_nodeless.terraform import module_files

_ROOT = Path(__file__).resolve().parents[2]


def generate_files() -> dict[Path, str]:
    """Every derived file, relative to the repository, with its text."""
    schema = package_schema()
    made = {Path("components/schema.json"): json.dumps(schema, indent=2, ensure_ascii=False) + "\n"}
    made[Path("docs/components/permissions.md")] = permissions_page()
    made |= chart_files() | module_files()
    return made | {Path("docs/components") / name: text for name, text in pages(schema).items()}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m pulumi_nodeless", description=__doc__.partition("\n")[0])
    parser.add_argument(
        "command", choices=["generate"], help="write schema, pages, files of charts and module"
    )
    parser.add_argument("--check", action="store_true", help="only compare; exit code 1 on a difference")
    arguments = parser.parse_args()
    stale = 0
    for path, text in generate_files().items():
        file = _ROOT / path
        if file.is_file() and file.read_text() == text:
            continue
        if arguments.check:
            stale = 1
            print(f"{path} is stale; hint: python -m pulumi_nodeless generate", file=sys.stderr)  # noqa: T201
        else:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
    return stale


if __name__ == "__main__":
    sys.exit(main())
