"""Answers of AWS as nobody expects them: parts missing, null, unknown or of another type, HTML for data.

An answer is changed on the wire, after what was asked for has been done: so a client meets it as it would
meet a proxy that breaks answers, or a field that AWS added yesterday.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from typing import Any
from xml.etree import ElementTree

from localenv.aws.moto_internals import WireResponse

_HTML = b"<!DOCTYPE html><html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>"
_LONG = "x" * 200_000
_STRANGE = ("", "null", "-1", "NaN", "not-known-yet", "9" * 30, "true", "1970-01-01T00:00:00Z", "\u202e", " ")


def garble(answer: WireResponse, random: Random) -> WireResponse:
    """The answer with one or more defects."""
    change: Callable[[bytes, Random], bytes] = random.choice((_page, _cut, _parts, _parts, _parts, _parts))
    status = random.choice((200, 502, 503)) if change is _page else answer.status
    kind = "text/html" if change is _page else _content_type(answer)
    headers = tuple((name, value) for name, value in answer.headers if name.lower() != "content-type")
    return WireResponse(status, (*headers, ("Content-Type", kind)), change(answer.body, random))


def _content_type(answer: WireResponse) -> str:
    found = (value for name, value in answer.headers if name.lower() == "content-type")
    return next(found, "text/xml")


def _page(_body: bytes, _random: Random) -> bytes:
    return _HTML


def _cut(body: bytes, random: Random) -> bytes:
    return body[: random.randrange(len(body) + 1)]


def _parts(body: bytes, random: Random) -> bytes:
    """Some members changed, by the format that the answer has; one that has none is cut short."""
    times = random.choice((1, 1, 2, 5, 30))
    try:
        if body.lstrip().startswith((b"{", b"[")):
            document = json.loads(body)
            for _ in range(times):
                _change_json(document, random)
            return json.dumps(document).encode()
        root = ElementTree.fromstring(body)
    except (ValueError, ElementTree.ParseError):
        return _cut(body, random)
    for _ in range(times):
        _change_xml(root, random)
    return ElementTree.tostring(root)


def _change_json(document: Any, random: Random) -> None:
    place = document
    while True:
        keys: list[Any] = list(place) if isinstance(place, dict) else list(range(len(place)))
        if not keys:
            return
        key = random.choice(keys)
        if isinstance(place[key], dict | list) and place[key] and random.random() < 0.7:
            place = place[key]
            continue
        if random.random() < 0.3:
            del place[key]
        else:
            place[key] = random.choice((None, [], {}, 0, -1, True, random.choice(_STRANGE), _LONG, [None]))
        return


def _change_xml(root: ElementTree.Element, random: Random) -> None:
    parents = [each for each in root.iter() if len(each)]
    if not parents:
        return
    parent = random.choice(parents)
    child = random.choice(list(parent))
    action = random.randrange(4)
    if action == 0:
        parent.remove(child)
    elif action == 1:
        for each in list(child):
            child.remove(each)
        child.text = None
    elif action == 2:
        child.text = _LONG if random.random() < 0.05 else random.choice(_STRANGE)
    else:
        parent.append(child)
