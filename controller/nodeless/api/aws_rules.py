"""Rules for how instances are made in AWS: AWSNodeTemplate and the inline `spec.provider`."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from nodeless.api.aws_node_template import InlineProvider
from nodeless.api.errors import ABSENT, FieldError, at
from nodeless.api.rule_codes import RuleCode
from nodeless.api.schema import schema_of
from nodeless.api.schema_validation import amount_of, check
from nodeless.api.suggestions import did_you_mean

_FAMILIES = ("AL2", "Bottlerocket", "Ubuntu", "Custom")
_VOLUME_TYPES = ("standard", "io1", "io2", "gp2", "sc1", "st1", "gp3")
_SWITCH = ("disabled", "enabled")
_TOKENS = ("optional", "required")
_SMALLEST, _LARGEST = 10**9, 64 * 10**12
_INLINE_TYPE = {"apiVersion": "extensions.karpenter.sh/v1alpha1", "kind": "AWS"}
#: Members that a launch template of the user's own decides, so that they cannot stand beside it.
_DECIDED_BY_TEMPLATE = ("securityGroupSelector", "metadataOptions", "amiFamily", "instanceProfile")
_DISCOVERY = "select by the discovery tag, for example karpenter.sh/discovery: CLUSTER"
_ANY = "use * for any value"


def node_template_errors(manifest: Mapping[str, Any]) -> Iterator[FieldError]:
    """The broken rules of an AWSNodeTemplate."""
    spec = manifest.get("spec")
    if spec is None:
        spec = {}
    if not isinstance(spec, Mapping):
        return
    yield from _shared_errors(spec, "spec")
    template = spec.get("launchTemplate")
    if template is not None:
        for name in ("userData", "amiSelector"):
            if spec.get(name) is not None:
                yield _exclusion_fault(f"spec.{name}", "spec.launchTemplate")
    images = spec.get("amiSelector")
    if images is None:
        if spec.get("amiFamily") == "Custom":
            hint = "select your image, as aws-ids: ami-0123456789abcdef0"
            yield FieldError(
                "spec.amiSelector",
                ABSENT,
                "is required with amiFamily Custom",
                hint,
                code=RuleCode.MISSING_FIELD,
            )
    else:
        yield from _selector_errors(images, "spec.amiSelector", "ami")


def inline_provider_errors(provider: Any, path: str) -> Iterator[FieldError]:
    """The faults of an inline provider: its form, which the API server does not know, and its rules."""
    yield from check(provider, schema_of(InlineProvider), path)
    if not isinstance(provider, Mapping):
        return
    given = {name: provider[name] for name in _INLINE_TYPE if provider.get(name) not in (None, "")}
    for name, value in given.items():
        if value != _INLINE_TYPE[name]:
            yield FieldError(
                at(path, name),
                value,
                f"must be {_INLINE_TYPE[name]}",
                "or leave it out",
                code=RuleCode.UNSUPPORTED_VALUE,
            )
    if len(given) == 1:
        missing = next(name for name in _INLINE_TYPE if name not in given)
        yield FieldError(
            at(path, missing),
            ABSENT,
            f"is required beside {next(iter(given))}",
            "or leave both out",
            code=RuleCode.MISSING_FIELD,
        )
    yield from _shared_errors(provider, path)


def _shared_errors(settings: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    template = settings.get("launchTemplate")
    yield from _required_selector(settings, "subnetSelector", path, "subnet")
    if template is None:
        yield from _required_selector(settings, "securityGroupSelector", path, "sg")
    else:
        disks = ("blockDeviceMappings",) if settings.get("blockDeviceMappings") else ()
        for name in (*_DECIDED_BY_TEMPLATE, *disks):
            if settings.get(name) is not None:
                yield _exclusion_fault(at(path, name), at(path, "launchTemplate"))
    tags = settings.get("tags")
    if isinstance(tags, Mapping) and "" in tags:
        yield FieldError(
            at(path, "tags"), "", "is not a tag key: keys must not be empty", code=RuleCode.INVALID_TAG
        )
    yield from _choice_errors(settings, "amiFamily", _FAMILIES, path)
    yield from _metadata_errors(settings.get("metadataOptions"), at(path, "metadataOptions"))
    devices = settings.get("blockDeviceMappings")
    for position, mapping in enumerate(devices if isinstance(devices, list) else ()):
        if isinstance(mapping, Mapping):
            yield from _device_errors(mapping, at(at(path, "blockDeviceMappings"), position))


def _exclusion_fault(path: str, template: str) -> FieldError:
    hint = "the launch template decides it: leave one of the two out"
    return FieldError(
        path, ABSENT, f"cannot go together with {template}", hint, code=RuleCode.CONFLICTING_FIELDS
    )


def _required_selector(
    settings: Mapping[str, Any], name: str, path: str, prefix: str
) -> Iterator[FieldError]:
    selector = settings.get(name)
    if selector is None:
        yield FieldError(at(path, name), ABSENT, "is required", _DISCOVERY, code=RuleCode.MISSING_FIELD)
    else:
        yield from _selector_errors(selector, at(path, name), prefix)


def _selector_errors(selector: Any, path: str, prefix: str) -> Iterator[FieldError]:
    if not isinstance(selector, Mapping):
        return
    for key, value in selector.items():
        if key == "":
            yield FieldError(
                path, key, "is not a tag key: keys must not be empty", code=RuleCode.INVALID_SELECTOR
            )
        if value == "":
            yield FieldError(
                at(path, str(key)), value, "must not be empty", _ANY, code=RuleCode.INVALID_SELECTOR
            )
        elif key == "aws-ids" and isinstance(value, str):
            for part in value.split(","):
                if not re.search(rf"{prefix}-[0-9a-z]+", part):
                    hint = f"list ids separated by commas, as {prefix}-0123456789abcdef0"
                    yield FieldError(
                        at(path, key), part.strip(), "is not an ID", hint, code=RuleCode.INVALID_SELECTOR
                    )


def _choice_errors(
    settings: Mapping[str, Any], name: str, choices: tuple[str, ...], path: str
) -> Iterator[FieldError]:
    value = settings.get(name)
    if isinstance(value, str) and value not in choices:
        listed = f"use one of {', '.join(choices)}"
        yield FieldError(
            at(path, name),
            value,
            "is not supported",
            did_you_mean(value, choices, listed),
            code=RuleCode.UNSUPPORTED_VALUE,
        )


def _metadata_errors(options: Any, path: str) -> Iterator[FieldError]:
    if not isinstance(options, Mapping):
        return
    yield from _choice_errors(options, "httpEndpoint", _SWITCH, path)
    yield from _choice_errors(options, "httpProtocolIPv6", _SWITCH, path)
    yield from _choice_errors(options, "httpTokens", _TOKENS, path)
    hops = options.get("httpPutResponseHopLimit")
    if isinstance(hops, int) and not 1 <= hops <= 64:
        yield FieldError(
            at(path, "httpPutResponseHopLimit"), hops, "must be from 1 to 64", code=RuleCode.OUT_OF_RANGE
        )


def _device_errors(mapping: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    if not mapping.get("deviceName"):
        yield FieldError(
            at(path, "deviceName"),
            ABSENT,
            "is required",
            "for example /dev/xvda",
            code=RuleCode.MISSING_FIELD,
        )
    ebs, where = mapping.get("ebs"), at(path, "ebs")
    if ebs is None:
        yield FieldError(where, ABSENT, "is required", code=RuleCode.MISSING_FIELD)
        return
    if not isinstance(ebs, Mapping):
        return
    yield from _choice_errors(ebs, "volumeType", _VOLUME_TYPES, where)
    size = ebs.get("volumeSize")
    if size is None:
        if not ebs.get("snapshotID"):
            yield FieldError(
                at(where, "volumeSize"),
                ABSENT,
                "is required without snapshotID",
                "for example 50Gi",
                code=RuleCode.INVALID_BLOCK_DEVICE,
            )
    elif (bytes_ := amount_of(size)) is not None and not _SMALLEST <= bytes_ <= _LARGEST:
        bare = str(size).isdecimal() and 0 < bytes_ <= 64 * 1024
        hint = f"a bare number is bytes; did you mean {size}Gi?" if bare else ""
        yield FieldError(
            at(where, "volumeSize"), size, "must be from 1G to 64T", hint, code=RuleCode.OUT_OF_RANGE
        )
