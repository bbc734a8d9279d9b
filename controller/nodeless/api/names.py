"""Kubernetes' syntax of names, label keys and label values (apimachinery, `util/validation`)."""

import re

_LABEL_1123 = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = re.compile(rf"{_LABEL_1123}(\.{_LABEL_1123})*")
_NAME_PART = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_LABEL_1035 = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")


def qualified_name_defects(text: str) -> list[str]:
    """What keeps a text from being a qualified name (`name`, `example.com/name`); nothing when it is one."""
    prefix, slash, name = text.rpartition("/")
    if "/" in prefix:
        return ["must have at most one /, between an optional prefix and the name"]
    defects = []
    if slash:
        if not prefix:
            defects.append("has an empty prefix before the /")
        elif len(prefix) > 253:
            defects.append("has a prefix of more than 253 characters")
        elif not _SUBDOMAIN.fullmatch(prefix):
            defects.append("has a prefix that is not a DNS name (lower-case letters, digits, - and .)")
    if not name:
        defects.append("has an empty name part")
    else:
        if len(name) > 63:
            defects.append("has a name part of more than 63 characters")
        if not _NAME_PART.fullmatch(name):
            defects.append(
                "has an invalid name part: use letters, digits, -, _ and ., with a letter or digit at both "
                "ends"
            )
    return defects


def label_value_defects(text: str) -> list[str]:
    """What keeps a text from being a label value; nothing when it is one."""
    defects = []
    if len(text) > 63:
        defects.append("is longer than the 63 characters of a label value")
    if text and not _NAME_PART.fullmatch(text):
        defects.append(
            "is not a label value: use letters, digits, -, _ and ., with a letter or digit at both ends"
        )
    return defects


def object_name_defect(text: str, *, prefix: bool = False) -> str:
    """What keeps a text from being an object's name (DNS-1035 label) or a prefix of one; empty if nothing."""
    checked = text.removesuffix("-") if prefix else text
    if len(text) > 63:
        return "is longer than 63 characters"
    if not _LABEL_1035.fullmatch(checked):
        return "must be lower-case letters, digits and -, with a letter first and a letter or digit last"
    return ""


def label_object_name_defect(text: str, *, prefix: bool = False) -> str:
    """What keeps a text from being a DNS name that nodes can bear as a label value; empty if nothing."""
    checked = text.removesuffix("-") if prefix else text
    if len(text) > 63:
        return "is longer than the 63 characters of a label value, which it becomes on nodes"
    if not _SUBDOMAIN.fullmatch(checked):
        return "must be lower-case letters, digits, - and ., with a letter or digit at both ends"
    return ""


def dns_name_defect(text: str, most: int) -> str:
    """What keeps a text from being a DNS name (DNS-1123 subdomain) of `most` characters; empty if nothing."""
    if len(text) > most:
        return f"is longer than {most} characters"
    if not _SUBDOMAIN.fullmatch(text):
        return "must be lower-case letters, digits, - and ., with a letter or digit at both ends"
    return ""


def dns_label_defect(text: str) -> str:
    """What keeps a text from being a part of a DNS name (DNS-1123 label); empty if nothing."""
    if "." in text:
        return "must be lower-case letters, digits and -, with a letter or digit at both ends"
    return dns_name_defect(text, 63)
