"""The page of rules: every code of `nodeless validate` and of the webhook, with an example and what to do."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import yaml

from nodeless.api.errors import FieldError
from nodeless.api.kinds import EC2_NODE_CLASS, NODE_POOL
from nodeless.api.kinds import PROVISIONER as PROVISIONER_KIND
from nodeless.api.rule_codes import RuleCode
from nodeless.api.validation import validate
from nodeless.api.validation_v1beta1 import as_v1
from nodeless.cli.manifests.documents import BadManifests, Document, FaultLine, readable_documents
from nodeless.cli.manifests.reading import read_documents
from nodeless.cli.offline import faults_of
from nodeless.cli.reference_text import page
from nodeless.cli.rule_index import CLASS, POOL, PROVISIONER, RULES, Rule

_INTRODUCTION = """`nodeless validate` checks files by these rules, and the webhook checks objects by them. The meaning of a code never changes.
`validate` writes the code at the end of a line, `FILE:LINE:COL: error|warning: message [CODE]`, and into each of its other
formats (`-o json`, `-o github`, `-o sarif`). The webhook writes it after each error and each warning.

An error prevents an object from being accepted. A warning does not. The codes of events, conditions and plans are in
[messages](messages.md)."""

#: Objects without a fault or a warning, of which the examples change a part.
_BASES: Mapping[str, Mapping[str, Any]] = {
    POOL: {
        "apiVersion": NODE_POOL.api_version,
        "kind": NODE_POOL.kind,
        "metadata": {"name": "general"},
        "spec": {
            "template": {
                "spec": {
                    "nodeClassRef": {"group": EC2_NODE_CLASS.group, "kind": CLASS, "name": "general"},
                    "requirements": [],
                }
            }
        },
    },
    CLASS: {
        "apiVersion": EC2_NODE_CLASS.api_version,
        "kind": EC2_NODE_CLASS.kind,
        "metadata": {"name": "general"},
        "spec": {
            "role": "nodes",
            "amiSelectorTerms": [{"alias": "al2023@latest"}],
            "subnetSelectorTerms": [{"id": "subnet-0123456789abcdef0"}],
            "securityGroupSelectorTerms": [{"id": "sg-0123456789abcdef0"}],
        },
    },
    PROVISIONER: {
        "apiVersion": PROVISIONER_KIND.api_version,
        "kind": PROVISIONER_KIND.kind,
        "metadata": {"name": "general"},
        "spec": {"providerRef": {"name": "general"}, "ttlSecondsAfterEmpty": 30},
    },
}


def rule_pages() -> dict[str, str]:
    """The page by its file name."""
    parts = [_INTRODUCTION]
    for level, title in (("error", "Errors"), ("warning", "Warnings")):
        parts.append(f"## {title}")
        for code in sorted(code for code, rule in RULES.items() if rule.level == level):
            parts += _paragraphs(code, RULES[code])
    return {"rules.md": page("Rules", *parts)}


def messages_of(rule: Rule) -> Iterator[tuple[RuleCode, str]]:
    """The code and the line of each fault and warning of a rule's example."""
    if rule.kind:
        manifest = _merged(_BASES[rule.kind], yaml.safe_load(rule.example))
        documents, _ = readable_documents("example", yaml.safe_dump(manifest))
        if rule.before:
            before = _merged(_BASES[rule.kind], yaml.safe_load(rule.before))
            yield from map(_said, validate(manifest, before))
            return
    else:
        documents, problems = readable_documents("example", rule.example)
        yield from ((problem.code, problem.message) for problem in problems)
        yield from _said_by_plans(documents)
    for document, faults in faults_of(documents):
        yield from map(_said, faults)
        yield from map(_said, as_v1(document.value).changes)


def _said_by_plans(documents: Sequence[Document]) -> Iterator[tuple[RuleCode, str]]:
    """What only commands say that read objects of other APIs."""
    try:
        read_documents(documents)
    except BadManifests as error:
        for line in error.faults:
            if not isinstance(line, FaultLine):
                yield RuleCode.INVALID_OBJECT, line.partition(" ")[2]


def _said(fault: FieldError) -> tuple[RuleCode, str]:
    return fault.code, str(fault).removeprefix("warning: ")


def _paragraphs(code: RuleCode, rule: Rule) -> Iterator[str]:
    yield f"### {code}"
    yield f"{rule.meaning} **What to do:** {rule.remedy}"
    part = f" (part of {'an' if rule.kind == CLASS else 'a'} {rule.kind})" if rule.kind else ""
    yield f"Example{part}:"
    yield f"```yaml\n{rule.example.rstrip().removesuffix('---').rstrip()}\n```"
    said = next((text for found, text in messages_of(rule) if found == code), None)
    if said is not None:
        yield f"```text\n{rule.level}: {said} [{code}]\n```"


def _merged(base: Any, change: Any) -> Any:
    """An object with a change as in a merge patch: null removes a member."""
    if not (isinstance(base, Mapping) and isinstance(change, Mapping)):
        return change
    merged = {name: _merged(base.get(name), value) for name, value in change.items() if value is not None}
    kept = {name: value for name, value in base.items() if name not in change}
    return {**kept, **merged}
