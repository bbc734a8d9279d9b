"""Whether the package `nodeless` that is imported here is that of the distribution nodeless-provisioner.

On the Python package index the distribution `nodeless` is another product, whose folder is called `nodeless`,
too. Installed after ours it overwrites `nodeless/__init__.py`; earlier on the path it hides ours.
Without this check either is seen only later, as a module or a name that is missing.
"""

from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import distributions
from importlib.util import find_spec
from pathlib import Path
from typing import Final

DISTRIBUTION: Final = "nodeless-provisioner"
"""What brings the package `nodeless`; `nodeless.DISTRIBUTION` has the same value."""


def check_installation(version: str) -> None:
    """Refuses a package `nodeless` that is not ours or not of the same release.

    Args:
        version: version of pulumi-nodeless, which needs the same one of nodeless-provisioner.

    Raises:
        ImportError: another package is imported, or none; one line, with its place and a command that helps.
    """
    failure: Exception | None = None
    try:
        imported = import_module("nodeless")
    except Exception as error:  # what another product raises when it is imported is its own affair
        failure = error
    else:
        if getattr(imported, "DISTRIBUTION", None) == DISTRIBUTION:
            if imported.__version__ == version:
                return
            raise ImportError(
                f"pulumi-nodeless {version} needs {DISTRIBUTION} {version}, but {imported.__version__} is "
                f"installed ({imported.__file__}); hint: {_install(version)}"
            )
    raise ImportError(_fault(version)) from failure


def _fault(version: str) -> str:
    needed = f"pulumi-nodeless {version} needs the package nodeless of {DISTRIBUTION} {version}"
    place = _place()
    if place is None:
        return f"{needed}, which is not installed; hint: {_install(version)}"
    owners = dict(_owners(place))
    install = _install(version, "--force-reinstall ")
    if foreign := sorted(owners.keys() - {DISTRIBUTION}):
        named = ", ".join(f"{name} {owners[name]}" for name in foreign)
        return f"{needed}, but {place} is of {named}; hint: pip uninstall {' '.join(foreign)} && {install}"
    if DISTRIBUTION in owners:
        return f"{needed}, but files are missing in {place}; hint: {install}"
    return (
        f"{needed}, but {place} is something else; hint: rename it or remove it from the path, then {install}"
    )


def _install(version: str, options: str = "") -> str:
    command = f"pip install {options}{DISTRIBUTION}=={version}"
    return f"{command} (from a checkout: CHECKOUT/controller instead of name and version)"


def _place() -> Path | None:
    """The folder or the file that `import nodeless` finds."""
    spec = find_spec("nodeless")
    if spec is None:
        return None
    if spec.submodule_search_locations:
        return Path(next(iter(spec.submodule_search_locations)))
    return Path(str(spec.origin))


def _owners(place: Path) -> Iterator[tuple[str, str]]:
    """Name and version of the distributions that have installed something at `place`."""
    for each in distributions(path=[str(place.parent)]):
        if any(file.parts[0] == place.name for file in each.files or ()):
            yield each.name, each.version
