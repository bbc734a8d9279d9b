"""One object that is too large, nested too deeply or not what it should be, among those that are in order.

Whatever it is, the others come through and the watch goes on; of the object itself, what is certain is known.
"""

import asyncio
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeless.kube.decoding import MOST_POD_BYTES
from nodeless.kube.heads import head_of
from nodeless.kube.kinds import watched_kinds
from nodeless.kube.lines import CutLine, lines_of
from nodeless.model import events
from tests.kube.test_reflector import BOOKMARK, Streams, added, events_from, events_of, node, page


def a_pod(name, *, ready=True, **spec):
    scheduled = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"name": name, "namespace": "ns", "uid": f"uid-{name}", "resourceVersion": "5"},
        "spec": {"containers": [{"name": "c"}], **spec},
        "status": {"phase": "Pending", "conditions": [scheduled]},
    }


def pods_of(found):
    return {event.pod.name: event.pod for event in found if isinstance(event, events.PodSeen)}


def escaped(size):
    """An environment of so many bytes that JSON writes six times as long, as the API server does."""
    return [{"name": "c", "env": [{"name": "X", "value": "\x01" * size}]}]


def test_a_pod_too_large_is_known_and_refused_a_plan_and_the_others_come_through():
    large = a_pod("large", containers=escaped(MOST_POD_BYTES // 6 + 1), nodeName="node-1")
    pods = pods_of(events_of("pods", [added(large), added(a_pod("web")), BOOKMARK]))
    assert set(pods) == {"large", "web"}
    assert not pods["web"].shape.invalid
    assert "MiB" in pods["large"].shape.invalid
    assert "hint: " in pods["large"].shape.invalid
    assert pods["large"].node_name == "node-1", "its node must not pass for empty"
    assert pods["large"].unschedulable


def test_a_large_pod_within_the_bound_is_planned_for():
    pods = pods_of(
        events_of("pods", [added(a_pod("large", containers=escaped(MOST_POD_BYTES // 8))), BOOKMARK])
    )
    assert not pods["large"].shape.invalid


class Bytes(Streams):
    """Lines as they are, for what `json` would not write; notes from where each watch begins."""

    def __init__(self, *streams):
        super().__init__(*streams)
        self.asked = []

    def stream(self, path, query):
        self.asked.append(query.get("resourceVersion"))
        return super().stream(path, query)

    async def _lines(self, entries):
        if entries is None:
            self.finished.set()
            await asyncio.Event().wait()
        for entry in entries:
            yield entry if isinstance(entry, bytes) else json.dumps(entry).encode()


def test_a_line_of_which_only_the_beginning_was_read_stops_nothing():
    whole = json.dumps(added(a_pod("endless"))).encode()
    cut = CutLine.of(whole[: whole.index(b'"spec"')], 10**9)
    reported = []

    class Failures:
        def record_unread(self, kind, metadata, error):
            reported.append((kind, metadata["name"], str(error)))

        def record_read(self, kind, metadata):
            reported.append((kind, metadata["name"], ""))

    found = []

    async def scenario():
        from nodeless.kube.reflector import Reflector  # noqa: PLC0415

        watched = next(each for each in watched_kinds(print) if each.name == "pods")
        client = Bytes([cut, added(a_pod("web")), BOOKMARK, added(a_pod("endless"))])
        task = asyncio.create_task(Reflector(client, watched, found.append, failures=Failures()).run())
        await asyncio.wait_for(client.finished.wait(), 10)
        task.cancel()

    asyncio.run(scenario())
    assert list(pods_of(found)) == ["web", "endless"]
    assert [each[:2] for each in reported] == [("pods", "endless"), ("pods", "endless")]
    assert "953.7 MiB" in reported[0][2]
    assert reported[1][2] == "", "readable again"


KINDS = [each.name for each in watched_kinds(print)]
API_VERSIONS = {
    "nodeclaims": ("karpenter.sh/v1", "NodeClaim"),
    "nodepools": ("karpenter.sh/v1", "NodePool"),
    "provisioners": ("karpenter.sh/v1alpha5", "Provisioner"),
    "awsnodetemplates": ("karpenter.k8s.aws/v1alpha1", "AWSNodeTemplate"),
    "ec2nodeclasses": ("karpenter.k8s.aws/v1", "EC2NodeClass"),
}
DEEP = b"[" * 100_000 + b"]" * 100_000


def of_kind(kind, name, body):
    """The line of an object with a body that may be anything."""
    version, word = API_VERSIONS.get(kind, ("v1", kind.removesuffix("s").capitalize()))
    metadata = {"name": name, "namespace": "ns", "uid": f"uid-{name}", "resourceVersion": "5"}
    head = json.dumps({"apiVersion": version, "kind": word, "metadata": metadata}).encode()
    return b'{"type":"ADDED","object":' + head[:-1] + b"," + body + b"}}"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "body",
    [
        b'"spec":' + DEEP,
        b'"spec":7,"status":[1],"data":false,"provisioner":{}',
        b'"spec":{"provider":' + DEEP + b"}",
        b'"spec":{"limits":{"resources":{"cpu":"' + b"9" * 100_000 + b'"}}}',
        b'"spec":{"template":{"spec":{"requirements":[{"key":"a","operator":"Gt"}]}}}',
        b'"spec":"\xed\xa0\x80"',
        b'"status":{"conditions":[{"type":"Ready","status":"True","lastTransitionTime":"0000-01-01T00:00:00Z"}]}',
    ],
    ids=["deep", "types", "deep provider", "digits", "no values", "no unicode", "year zero"],
)
def test_whatever_stands_in_an_object_the_watch_of_its_kind_goes_on(kind, body):
    last = {
        "type": "ADDED",
        "object": {"metadata": {"name": "last", "namespace": "ns", "resourceVersion": "8"}},
    }
    end = json.loads(json.dumps(BOOKMARK))
    end["object"]["metadata"]["resourceVersion"] = "11"
    client = Bytes([of_kind(kind, "poison", body), last, end])
    found = events_from(kind, client, reported=[])
    # Whatever became of the one object: the end of the list was reached, and the watch went on from there.
    assert client.asked == [None, "11"]
    for event in found:
        assert "poison" in str(event) or "last" in str(event)


@pytest.mark.parametrize("kind", sorted(API_VERSIONS))
def test_ours_are_seen_with_their_names_whatever_they_say(kind):
    client = Bytes([of_kind(kind, "poison", b'"spec":' + DEEP), BOOKMARK])
    (event,) = events_from(kind, client, reported=[])
    seen = next(iter(vars_of(event)))
    assert seen.invalid
    assert "poison" in str(event)


def vars_of(event):
    return [getattr(event, name) for name in event.__slots__]


def test_large_objects_beside_each_other_are_listed_in_smaller_pages():
    from nodeless.kube.errors import AnswerTooLarge  # noqa: PLC0415
    from tests.kube.test_reflector import Pages  # noqa: PLC0415

    class Heavy(Pages):
        async def ask(self, method, path, *, query):
            self.asked.append(query["limit"])
            if int(query["limit"]) > 40:
                raise AnswerTooLarge("too much")
            return await super().ask(method, path, query=query)

    pages = {"": [page("7", node("a"), then="more")], "more": [page("7", node("b"))]}
    server = Heavy(pages)
    found = events_from("nodes", server)
    assert [each.node.name for each in found if isinstance(each, events.NodeSeen)] == ["a", "b"]
    assert [each for each in server.asked if isinstance(each, str)] == ["500", "125", "31", "31"]


def cut_into(data, sizes):
    """The same bytes in pieces of these sizes, over and over."""
    pieces, at = [], 0
    while at < len(data):
        for size in sizes:
            pieces.append(data[at : at + size])
            at += size
    return pieces


async def collected(pieces, most):
    async def stream():
        for piece in pieces:
            yield piece

    return [line async for line in lines_of(stream(), most)]


@given(
    st.lists(st.binary(max_size=12).filter(lambda each: b"\n" not in each), max_size=8),
    st.binary(max_size=5).filter(lambda each: b"\n" not in each),
    st.lists(st.integers(1, 7), min_size=1, max_size=4),
    st.integers(1, 10),
)
def test_lines_come_whole_in_order_and_long_ones_cut_however_the_bytes_arrive(lines, rest, sizes, most):
    data = b"".join(line + b"\n" for line in lines) + rest
    found = asyncio.run(collected(cut_into(data, sizes), most))
    expected = [line for line in lines if line]
    assert [bytes(each) for each in found] == [line[:most] for line in expected]
    assert [isinstance(each, CutLine) for each in found] == [len(line) > most for line in expected]
    assert [each.size for each in found if isinstance(each, CutLine)] == [
        len(line) for line in expected if len(line) > most
    ]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=5), JSON, max_size=4), st.data())
def test_the_beginning_of_a_document_says_what_it_says(document, data):
    raw = json.dumps(document).encode()
    head = head_of(raw[: data.draw(st.integers(0, len(raw)))])
    assert all(document[key] == value for key, value in head.items())
    assert head_of(raw) == document


@given(st.binary(max_size=40))
def test_no_bytes_make_the_reading_of_a_beginning_fail(raw):
    assert isinstance(head_of(raw), dict)
