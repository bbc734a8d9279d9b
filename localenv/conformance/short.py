"""The short list: a few specs of Karpenter's suites that every run of the tests goes through.

One environment, one process for each suite. Results are not kept: docs/conformance.md is of whole suites.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from localenv.conformance.binaries import suite_binary
from localenv.conformance.cluster import cluster, node_class_arguments, variables
from localenv.conformance.modules import DEFAULT_RELEASE, SUITES, go_command, homes_of
from localenv.conformance.specs import Result, Spec, SuiteFailed, run_specs, specs_of
from localenv.progress import Report
from nodeless.model.packing import LOWEST_PRICE

#: By suite: what users of the API lean on most, each in seconds.
SHORT_LIST: Mapping[str, tuple[str, ...]] = {
    "integration": (
        "NodeClass IAM Permissions should succeed with all required permissions",
        "CapacityBuffer should provision buffer capacity with podTemplateRef",
        "MetadataOptions should use specified metadata options",
        "InstanceProfile Generation should generate the InstanceProfile when setting the role",
        "Validation EC2NodeClass should error when tags contains a restricted key",
        "SecurityGroups should update the EC2NodeClass status security groups",
        "BlockDeviceMappings should use specified block device mappings",
        "Tags Tagging Controller should tag with karpenter.sh/nodeclaim and Name tag",
    ),
    "regression": (
        "Integration Validation NodePool should error when a requirement uses In but has no values",
        "NodeClaim StandaloneNodeClaim should create a standard NodeClaim",
        "Termination should terminate the node and the instance on deletion",
    ),
}
_SPEC_SECONDS = 60.0


def run_short_list(folder: Path, report: Report) -> dict[Spec, Result]:
    """Run it; each spec with what became of it.

    Args:
        folder: Where the suites' output is kept.
        report: Hears of what is built and started.

    Raises:
        ModuleUnusable: A module cannot be fetched, or differs from what was published.
        BuildFailed: A suite does not build.
        SuiteFailed: A suite does not have a spec that is listed.
    """
    release = DEFAULT_RELEASE
    go = go_command(release, report)
    homes = homes_of(release, go, report)
    provider = homes[release.provider.suites[0]]
    binaries = {suite: suite_binary(homes[suite], suite, go, report) for suite in SHORT_LIST}
    results: dict[Spec, Result] = {}
    with cluster(release, provider, go, LOWEST_PRICE, report) as environment:
        given = {release.provider: (), release.core: node_class_arguments(environment, provider)}
        for suite, texts in SHORT_LIST.items():
            place = homes[suite].folder / SUITES / suite
            specs = select_specs(specs_of(binaries[suite], suite, place), texts)
            told = run_specs(
                binaries[suite],
                specs,
                place,
                variables(environment),
                _SPEC_SECONDS * len(specs),
                folder / f"{suite}.log",
                given[homes[suite].module],
            )
            results |= dict(zip(specs, told, strict=True))
    return results


def select_specs(specs: Iterable[Spec], texts: Iterable[str]) -> list[Spec]:
    """The specs with these names. Raises SuiteFailed when one is not there."""
    by_text = {spec.text: spec for spec in specs}
    if missing := [text for text in texts if text not in by_text]:
        raise SuiteFailed(
            f"no spec is called {missing[0]!r}; hint: the short list names specs of the pinned version"
        )
    return [by_text[text] for text in texts]
