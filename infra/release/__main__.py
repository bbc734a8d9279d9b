"""Make a release: versions, changelog, dry run, and the steps that publish.

python -m infra.release check [--tag TAG]      every place names the same version (and the tag does)
python -m infra.release set [VERSION] [--image REPOSITORY] [--charts FOLDER]
python -m infra.release cut VERSION            the version everywhere, and its section in CHANGELOG.md
python -m infra.release show NAME              version, image, charts, or notes (of the version)
python -m infra.release dry-run                everything of a release that can run here, into dist/
python -m infra.release publish WHAT           image, charts or github; for the workflow
"""

import argparse
import sys
from datetime import UTC, datetime
from pathlib import Path

from infra.release import changelog, publishing
from infra.release.commands import NotHere
from infra.release.cutting import CHANGELOG, cut, set_everywhere
from infra.release.dry_run import DIST, DryRun, Tools
from infra.release.settings import ROOT, ReleaseError, read_settings
from infra.release.versions import differences


def main(arguments: list[str] | None = None) -> int:
    """Run a command; give its exit code: 0 well, 1 something differs or failed, 2 it could not run."""
    options = _parser().parse_args(arguments)
    try:
        return int(options.run(options))
    except (ReleaseError, NotHere) as error:
        print(f"release: {error}", file=sys.stderr)
        return 2


def _check(options: argparse.Namespace) -> int:
    settings, found = read_settings(), differences()
    for difference in found:
        print(difference, file=sys.stderr)
    if found:
        print(f"hint: python -m infra.release set {settings.version}", file=sys.stderr)
        return 1
    if options.tag is not None:
        check_tag(options.tag)
    return 0


def check_tag(tag: str, root: Path = ROOT) -> None:
    """Refuses a tag that is not that of the checkout's version, and a version that is not cut.

    Raises:
        ReleaseError: The tag is another one, or the changelog has no section of the version.
    """
    settings = read_settings(root)
    if tag != settings.tag:
        raise ReleaseError(
            f"the tag {tag} is not {settings.tag}, the version of this commit; hint: "
            f"python -m infra.release cut {tag.removeprefix('v')}, commit, and tag that commit"
        )
    changelog.section((root / CHANGELOG).read_text(), settings.version)


def _set(options: argparse.Namespace) -> int:
    for path in set_everywhere(options.version, options.image, options.charts):
        print(path)
    return 0


def _cut(options: argparse.Namespace) -> int:
    if not cut(options.version, datetime.now(UTC).date()):
        print(f"{options.version} is cut already: nothing to do")
        return 0
    print(
        f"{options.version} is cut. Look at git diff; then:\n"
        f"  git commit --all --message 'Release {options.version}'\n"
        f"  make release-dry-run\n"
        f"  git tag v{options.version} && git push origin HEAD v{options.version}"
    )
    return 0


def _show(options: argparse.Namespace) -> int:
    settings = read_settings()
    if options.name == "notes":
        print(changelog.section((ROOT / CHANGELOG).read_text(), settings.version))
    else:
        print(getattr(settings, options.name))
    return 0


def _dry_run(options: argparse.Namespace) -> int:
    tools = Tools(options.helm, options.pulumi, options.hosts)
    run = DryRun(tools, lambda line: print(line, flush=True))
    return 0 if run.run(options.only, options.require) else 1


def _publish(options: argparse.Namespace) -> int:
    print(publishing.PARTS[options.what](DIST))
    return 0


def _names(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m infra.release", description=__doc__.partition("\n")[0])
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    check = commands.add_parser("check", help="compare every place that names the version or the addresses")
    check.add_argument("--tag", help="must be the version's, and the changelog must have its section")
    check.set_defaults(run=_check)
    setting = commands.add_parser("set", help="write another version or address into every place")
    setting.add_argument("version", nargs="?", metavar="VERSION", help="X.Y.Z")
    setting.add_argument("--image", metavar="REPOSITORY", help="repository of the controller's image")
    setting.add_argument("--charts", metavar="FOLDER", help="folder of the charts in an OCI registry")
    setting.set_defaults(run=_set)
    cutting = commands.add_parser("cut", help="set the version and cut its section in CHANGELOG.md")
    cutting.add_argument("version", metavar="VERSION", help="X.Y.Z, greater than the last one")
    cutting.set_defaults(run=_cut)
    show = commands.add_parser("show", help="print one of the settings, or what the changelog says")
    show.add_argument("name", choices=["version", "image", "charts", "notes"])
    show.set_defaults(run=_show)
    trying = commands.add_parser(
        "dry-run", help="do everything of a release that can be done here, into dist/"
    )
    trying.add_argument("--helm", type=Path, help="the program; that on PATH by default")
    trying.add_argument("--pulumi", type=Path, help="the program; that on PATH by default")
    trying.add_argument("--hosts", type=Path, help="folder of language hosts, for those not on PATH")
    trying.add_argument("--only", type=_names, default=(), metavar="STEP,...", help="these steps")
    trying.add_argument("--require", type=_names, default=(), metavar="STEP,...", help="may not be skipped")
    trying.set_defaults(run=_dry_run)
    publish = commands.add_parser("publish", help="publish what a dry run has made; for the workflow")
    publish.add_argument("what", choices=[*publishing.PARTS])
    publish.set_defaults(run=_publish)
    return parser


if __name__ == "__main__":
    sys.exit(main())
