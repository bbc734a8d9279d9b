"""What the Helm charts take from the component's tables: rights, webhooks, settings, logging and definitions.

The charts' templates lay out objects; what those say is written here, so that an installation by Helm has
the same rights and answers the same requests as one by Pulumi.
"""

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from nodeless.api.crds import crd_files
from pulumi_nodeless import rbac, settings, webhooks

CHART: Final = Path("charts/nodeless")
DEFINITIONS: Final = Path("charts/nodeless-crd/templates")
_METADATA: Final = re.compile(r"^metadata:\n  name: .+\n", re.MULTILINE)
_KEEP: Final = """\
  annotations:
    helm.sh/resource-policy: keep
    {{- with .Values.additionalAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
"""
"""An uninstall of the definitions would delete every pool and claim, and so end every node."""
_CERTIFICATE: Final = "CERTIFICATE"
"""Stands for the name of the certificate's Secret, which follows from the release's values."""


def chart_files() -> dict[Path, str]:
    """Every derived file of the charts, relative to the repository, with its text."""
    documents = {
        "rules": {
            "core": _rules(rbac.CORE_RULES),
            "cloud": _rules(rbac.CLOUD_RULES),
            "admin": _rules(rbac.ADMIN_RULES),
            "namespace": _rules(rbac.namespace_rules(_CERTIFICATE)),
            "dns": _rules(rbac.DNS_RULES),
            "holds": _rules(rbac.HOLD_RULES),
        },
        "webhooks": {
            "mutating": [_webhook(name) for name in webhooks.MUTATING_NAMES],
            "validating": [_webhook(name) for name in webhooks.VALIDATING_NAMES],
        },
        "logging": settings.zap_config("info"),
    }
    made = {CHART / "files" / f"{name}.json": _json(document) for name, document in documents.items()}
    for name, text in crd_files().items():
        if "{{" in text:
            raise ValueError(f"{name} has {{{{, which Helm would take for a template")
        kept = _METADATA.sub(lambda found: found[0] + _KEEP, text, count=1)
        if kept == text:
            raise ValueError(f"{name} does not begin as a definition does")
        made[DEFINITIONS / name] = kept
    return made


def _rules(rules: Iterable[rbac.Rule]) -> list[dict[str, Any]]:
    found = []
    for rule in rules:
        document: dict[str, Any] = {
            "apiGroups": [*rule.groups],
            "resources": [*rule.resources],
            "verbs": [*rule.verbs],
        }
        if rule.names:
            document["resourceNames"] = [*rule.names]
        found.append(document)
    return found


def _webhook(name: str) -> Mapping[str, Any]:
    """A webhook without its client's Service, which the release names."""
    document: dict[str, Any] = {
        "name": name,
        "path": webhooks.path(name),
        "failurePolicy": webhooks.failure_policy(name),
        "rules": [
            {
                "apiGroups": [group],
                "apiVersions": [version],
                "resources": [resource],
                "operations": [*webhooks.OPERATIONS],
                "scope": scope,
            }
            for group, version, resource, scope in webhooks.requests(name)
        ],
    }
    if name == webhooks.SETTINGS_NAME:
        document["objectSelector"] = {"matchLabels": {webhooks.PART_OF_LABEL: webhooks.PART_OF}}
    return document


def _json(document: object) -> str:
    return json.dumps(document, indent=2) + "\n"
