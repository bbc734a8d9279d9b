"""Values drawn from a schema: mostly allowed by it, many of them at the edge of what anybody foresaw."""

from __future__ import annotations

import base64
import re
from functools import cache
from random import Random
from typing import Any

from tests.fuzz.schemas import Resolved

#: What strings may do to whoever reads them: shells, formats, numbers, widths of text, words with a meaning.
HOSTILE = (
    *("", " ", "a", "x" * 63, "x" * 64, "x" * 253, "x" * 5000, "<" * 3000, "\\" * 500, '"' * 200),
    *("é", "ß" * 40, "\u202eabc", "\u0000", "\ud7ff", "😀" * 30, "a\nb", "a\r\n\r\nb", "\t", "\x1b[31m"),
    *("$(reboot)", "`id`", "'; rm -rf / #", '"$HOME"', "{{ .Values }}", "%s%n", "../../etc/passwd", "a=b,c"),
    *("null", "true", "~", "0", "-0", "1e309", "NaN", "inf", "0x10", "9" * 40, "-1", "٣", "1_000"),
    *("[" * 200, "{" * 200, "&a [*a,*a]", "!!python/object:os.system", "]]>", "<!DOCTYPE x>"),
    *("karpenter.sh/do-not-disrupt", "kubernetes.io/hostname", "topology.kubernetes.io/zone", "us-east-1a"),
    *("spot", "on-demand", "m5.large", "aws:///us-east-1a/i-0", "default", "kube-system", "Exists", "In"),
)
NAMES = ("a", "web", "x-1", "default", "team.example.com", "z" * 63)
LABEL_KEYS = (
    *("app", "team", "example.com/team", "x" * 63, "kubernetes.io/hostname", "kubernetes.io/arch"),
    *("topology.kubernetes.io/zone", "node.kubernetes.io/instance-type", "karpenter.sh/capacity-type"),
    *("karpenter.sh/nodepool", "karpenter.sh/provisioner-name", "karpenter.sh/registered", "a.b/c"),
    *("karpenter.k8s.aws/instance-cpu", "karpenter.k8s.aws/instance-family", "karpenter.sh/do-not-disrupt"),
    *("karpenter.sh/do-not-evict", "controller.kubernetes.io/pod-deletion-cost", "nodeless.dev/x"),
    *("karpenter.sh/nodeclaim-termination-timestamp", "karpenter.sh/disruption", "cluster-autoscaler/x"),
)
DURATIONS = (
    "0s",
    "1s",
    "720h",
    "99999999h",
    "2562047h47m16s",
    "1h1m1s",
    "9" * 15 + "h",
    "Never",
    "0h",
    "1ms",
)
QUANTITIES = (
    *("0", "1", "100m", "1Gi", "1500m", "-1", "1e3", "1E", "9223372036854775807", "9" * 30, "0.0000000001"),
    *("1n", "1u", "1e-9", "8Ei", "100000Ei", "-100Gi", "0.5", "12345678901234567890m", "1e100", "3"),
)
TIMES = (
    *("2026-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "1970-01-01T00:00:00Z"),
    *("2026-01-01T00:00:00.000000Z", "2106-02-07T06:28:16Z", "2038-01-19T03:14:08+14:00"),
)
NUMBERS = (0, 1, -1, 2, 3, 100, 65535, 2**31 - 1, -(2**31), 2**53 + 1, 2**63 - 1, -(2**63))
_DEEPEST = 9


class Drawing:
    """Draws by one source of chance, so that a seed tells the whole story."""

    def __init__(self, random: Random) -> None:
        self.random = random

    def value(self, schema: Resolved, depth: int = 0) -> Any:
        """A value for a schema; now and then one that it does not allow."""
        if "enum" in schema and not self.rarely():
            return self.random.choice(schema["enum"])
        if schema.name.endswith(".Quantity"):
            return self.random.choice(QUANTITIES)
        if schema.get("x-kubernetes-int-or-string") or schema.get("format") == "int-or-string":
            return self.random.choice((*NUMBERS, *QUANTITIES, "50%", "101%", "-5%"))
        type_ = schema.get("type", "")
        if "properties" in schema or type_ == "object" or schema.values_of is not None:
            return self._object(schema, depth)
        if type_ == "array":
            return self._array(schema, depth)
        if type_ in ("integer", "number"):
            return self._number(schema)
        if type_ == "boolean":
            return self.random.random() < 0.5
        if type_ == "string":
            return self._string(schema)
        return self._anything(depth)

    def rarely(self) -> bool:
        return self.random.random() < 0.05

    def text(self) -> str:
        """A hostile string, or a harmless one."""
        return self.random.choice(HOSTILE if self.random.random() < 0.6 else NAMES)

    def labels(self) -> dict[str, str]:
        """Labels or annotations."""
        count = self.random.choice((0, 1, 2, 3, 40))
        return {self.random.choice(LABEL_KEYS): self.text()[:63] for _ in range(count)}

    def _object(self, schema: Resolved, depth: int) -> Any:
        properties, values = schema.properties, schema.values_of
        if values is not None and not properties:
            count = self.random.choice((0, 1, 2, 5))
            return {self.random.choice(LABEL_KEYS): self.value(values, depth + 1) for _ in range(count)}
        if not properties:
            return self._anything(depth) if self.rarely() else {}
        required = schema.get("required", ())
        chance = 0.5 / (1 + depth)
        return {
            name: self.value(member, depth + 1)
            for name, member in properties.items()
            if name in required or (depth < _DEEPEST and self.random.random() < chance)
        }

    def _array(self, schema: Resolved, depth: int) -> list[Any]:
        items = schema.items_of
        if items is None or depth > _DEEPEST:
            return []
        count = (
            self.random.choice((0, 1, 1, 2, 3)) if not self.rarely() else self.random.choice((20, 101, 300))
        )
        return [self.value(items, depth + 1) for _ in range(count)]

    def _number(self, schema: Resolved) -> float:
        low, high = schema.get("minimum"), schema.get("maximum")
        if (low is not None or high is not None) and not self.rarely():
            return self.random.randint(
                int(low if low is not None else high - 9), int(high or (low or 0) + 99)
            )
        number = self.random.choice(NUMBERS)
        return max(min(number, 2**31 - 1), -(2**31)) if schema.get("format") == "int32" else number

    def _string(self, schema: Resolved) -> str:
        format_, pattern = schema.get("format", ""), schema.get("pattern", "")
        if schema.name.endswith((".Time", ".MicroTime")) or format_ == "date-time":
            return self.random.choice(TIMES)
        if format_ == "byte":
            return base64.b64encode(self.random.randbytes(self.random.choice((0, 5, 3000)))).decode()
        if pattern and not self.rarely():
            return self.random.choice(_fitting(pattern) or ("a",))
        return self.text()

    def _anything(self, depth: int) -> Any:
        if depth > _DEEPEST:
            return self.text()
        return self.random.choice(
            (
                None,
                True,
                self.random.choice(NUMBERS),
                1.5,
                self.text(),
                [self.text()],
                {self.random.choice(LABEL_KEYS): self.text()},
            )
        )


@cache
def _fitting(pattern: str) -> tuple[str, ...]:
    return tuple(each for each in (*DURATIONS, *NAMES, *LABEL_KEYS, *HOSTILE) if _fits(pattern, each))


def _fits(pattern: str, text: str) -> bool:
    try:
        return re.search(pattern, text) is not None
    except re.error:
        return False
