"""The page of a plan as a text: order, scales, sizes, and that nothing of what users name becomes markup."""

import re
from base64 import b64encode
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256
from html import unescape
from html.parser import HTMLParser

from nodeless.explain.fill import NodeFill, Share
from nodeless.explain.node_groups import groupings, rows, usages
from nodeless.explain.page import page
from nodeless.explain.picture import Palette, length
from nodeless.explain.preference_costs import PreferenceCost, PreferenceCosts, Price
from nodeless.explain.report import Cost, Launch, NextBest, Obstacle, Report, Unplaced
from nodeless.model.bill import BillPart, PriceSource
from nodeless.model.workloads import Workload

AT = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
GIB = 2**30
WEB, API = Workload("shop", "Deployment", "web"), Workload("shop", "Deployment", "api")


def share(workload=WEB, cpu=1000, memory=GIB, pods=1, **fields):
    keys = tuple(f"{workload.namespace}/{workload.name}-{number}" for number in range(pods))
    return Share(workload, pods, {"cpu": cpu, "memory": memory}, keys=keys, **fields)


def a_node(name="new-1", *shares, cpu=4000, memory=16 * GIB, **fields):
    given = {
        "state": "new",
        "pool": "NodePool/general",
        "instance_type": "m5.xlarge",
        "zone": "us-east-1a",
        "capacity_type": "spot",
        "price": 0.1,
        "allocatable": {"cpu": cpu, "memory": memory},
        "daemons": {},
    }
    return NodeFill(name, shares=shares, **{**given, **fields})


def a_report(*nodes, **fields):
    empty = {"launches": (), "landings": (), "unplaced": (), "cost": Cost(0.0, 0.1), "relaxed": ()}
    return Report(nodes=nodes, **{**empty, **fields})


def text_of(report):
    return page(report, AT)


def test_workloads_are_in_the_order_of_what_they_take():
    nodes = (a_node("a", share(API, 100, GIB), share(WEB, 1000, 8 * GIB)), a_node("b", share(WEB, 1000)))
    found = usages(nodes)

    assert [usage.workload for usage in found] == [WEB, API]
    assert found[0].part == (2000 / 8000 + 9 / 32) / 2
    assert [Palette.of(found)[workload] for workload in (WEB, API)] == ["c0", "c1"]
    legend = re.search(r'<ul class="legend".*?</ul>', text_of(a_report(*nodes)))
    assert re.findall(r"<bdi>(.*?)</bdi> <small>(.*?)</small>", legend[0]) == [
        ("shop/web (Deployment)", "27 %"),
        ("shop/api (Deployment)", "2 %"),
    ]


def test_more_workloads_than_colors_share_one():
    many = tuple(share(Workload("shop", "Pod", f"pod-{number:02}"), cpu=100 - number) for number in range(30))
    assert '<i class="co"></i>10 other workloads' in text_of(a_report(a_node("a", *many)))


def test_equal_nodes_are_one_row_and_other_pods_sizes_or_zones_another():
    equal = a_node("a", share()), a_node("b", share())
    other = (
        a_node("c", share(cpu=2000)),
        a_node("d", share(), zone="us-east-1b"),
        a_node("e", share(), cpu=8000),
    )
    made = rows((*equal, *other))
    assert [[member.name for member in row.members] for row in made] == [["a", "b"], ["c"], ["d"], ["e"]]


def test_an_existing_node_may_have_the_name_of_a_planned_one():
    text = text_of(a_report(a_node("new-1", share()), a_node("new-1", share(API), state="existing")))
    assert len(re.findall(r'<li data-g="0 0 0 0 0"', text)) == 2


def test_the_page_tells_what_a_node_costs_and_where_prices_are_from():
    parts = (
        BillPart("instance", 0.1, sources=(PriceSource("<AWS>", "2026-11-21"),)),
        BillPart("volumes", 0.002, "20 GiB gp3", (PriceSource("AWS's EBS prices", "2021-07-14"),)),
        BillPart("public IPv4", None, "subnets decide"),
    )
    launch = Launch(1, "NodePool/a", "m5.large", ("z1",), "spot", 0.102, ("new-1",), (), (), 1, parts)
    text = text_of(a_report(launches=(launch,)))
    sections = {
        name: [unescape(each) for each in re.findall(r"<bdi>(.*?)</bdi>", inner)]
        for name, inner in re.findall(r'<section id="(\w+)".*?</h2>(.*?)</section>', text)
    }
    assert sections["bills"] == [
        "m5.large, spot: 0.1020 = instance 0.1000 + volumes 0.0020 (20 GiB gp3)",
        "not known, and not included in any price: public IPv4 (subnets decide)",
    ]
    assert sections["sources"] == ["instance: <AWS> (2026-11-21)", "volumes: AWS's EBS prices (2021-07-14)"]
    assert "<AWS>" not in text


def test_groups_come_by_their_bill():
    nodes = (
        a_node("a", pool="NodePool/cheap", price=0.1),
        a_node("b", pool="NodePool/dear", price=2.0, zone="us-east-1b"),
        a_node("c", pool="", price=None, instance_type="", capacity_type=""),
    )
    by = {way.name: [name for name, _ in way.groups] for way in groupings(rows(nodes))}
    assert by["pool"] == ["NodePool/dear", "NodePool/cheap", "no pool"]
    assert by["zone"] == ["us-east-1b", "us-east-1a"]
    assert by["type"] == ["m5.xlarge", "unknown type"]
    assert by["capacity"] == ["spot", "unknown capacity type"]
    assert by["none"] == ["All nodes"]


def test_each_group_has_its_own_scale():
    text = text_of(
        a_report(
            a_node("a", cpu=64000, pool="NodePool/large"),
            a_node("b", cpu=16000, pool="NodePool/large"),
            a_node("c", cpu=1000, pool="NodePool/large"),
            a_node("d", cpu=2000, pool="NodePool/small", price=0.01),
        )
    )
    assert re.findall(r'data-r="cpu" data-s="(\d+)" width="([\d.]+)%"', text) == [
        ("64000", "100.0"),
        ("16000", "50.0"),
        ("1000", "33.3"),
        ("2000", "100.0"),
    ]
    assert length(1, 10**9) == 1 / 3


def test_devices_have_a_bar_where_pods_ask_for_them():
    gpu = {"nvidia.com/gpu": 8}
    idle = a_node("a", share(), allocatable={"cpu": 4000, **gpu})
    busy = a_node(
        "b", replace(share(), requests={"cpu": 1000, "nvidia.com/gpu": 2}), allocatable={"cpu": 4000, **gpu}
    )
    text = text_of(a_report(idle, busy))
    assert re.findall(r"<span>gpu</span> <span><svg.*?</svg></span> <span>(.*?)</span>", text) == [
        "25 % of 8"
    ]


def test_what_overfills_a_node_stays_in_its_bar():
    text = text_of(a_report(a_node("a", share(cpu=3000), share(API, cpu=3000))))
    pieces = re.findall(r"x=([\d.]+)% width=([\d.]+)%", text)
    assert pieces[:2] == [("0.00", "75.00"), ("75.00", "25.00")]
    assert "150 % of 4 cpu" in text


def test_a_node_without_type_price_and_size_is_shown():
    text = text_of(
        a_report(a_node("a", instance_type="", price=None, allocatable={}, capacity_type="", zone=""))
    )
    assert "unknown type" in text
    assert "price unknown" in text
    assert "Nothing is on it." in text


def test_nothing_to_plan_is_a_page():
    text = text_of(a_report())
    assert "<h1>Nothing to plan</h1>" in text
    assert '<form role="search"' not in text


def test_many_reasons_are_folded():
    groups = tuple(
        Unplaced("Code", (f"shop/p-{number}",), ((WEB, 1),), (Obstacle("Code", f"reason {number}"),))
        for number in range(8)
    )
    text = text_of(a_report(unplaced=groups))
    assert "<summary>5 other reasons for 5 pods</summary>" in text
    assert text.index("reason 2<") < text.index("5 other reasons") < text.index("reason 3<")


HOSTILE = (
    "<script>window.ran = 1</script>",
    "\"><img src=x onerror='window.ran=1'>",
    "</title></style></script><h1>",
    "'; window.ran=1; //",
    "&lt;b&gt; &amp; &#x3c;",
    "\u202eevil\u202c \u05e9\u05dc\u05d5\u05dd \u0645\u0631\u062d\u0628\u0627 \U0001f680",
    "\ud800 \x00 \x0b <!-- --> ]]>",
    "n" * 5000,
    "{{7*7}} ${x} `y`",
)


def hostile_report(name):
    workload = Workload(name, name, name)
    node = a_node(name, share(workload), pool=name, instance_type=name, zone=name, capacity_type=name)
    named = replace(node, allocatable={"cpu": 4000, f"example.com/{name}": 2})
    held = replace(share(workload), requests={"cpu": 1000, f"example.com/{name}": 1})
    launch = Launch(
        1,
        name,
        name,
        (name, name),
        name,
        0.1,
        (name,),
        ((workload, 1),),
        (NextBest(name, name, name, 0.2),),
        2,
    )
    group = Unplaced(name, (name,), ((workload, 1),), (Obstacle(name, name, (name,)),), (name,))
    cost = PreferenceCost(name, name, name, 1, ((workload, 1),), Price(0.1, 73.0, 0.5))
    costs = PreferenceCosts((cost,), (name, name), Price(0.2, 146.0, 1.0), (name,))
    made = a_report(replace(named, shares=(held,)), launches=(launch,), unplaced=(group,), notes=(name,))
    return replace(made, preferences=costs)


class Tags(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, sorted(name for name, _ in attrs)))


def test_no_name_becomes_markup():
    plain = Tags(text_of(hostile_report("name"))).tags
    for name in HOSTILE:
        text = text_of(hostile_report(name))
        assert Tags(text).tags == plain, name
        assert text.encode()
        if "\ud800" not in name:
            assert unescape(text).count(name) > 10


def test_the_page_admits_its_own_style_and_script_alone():
    text = text_of(a_report(a_node("a", share())))
    (policy,) = re.findall(r'Content-Security-Policy" content="(.*?)"', text)
    for kind in ("style", "script"):
        (inner,) = re.findall(f"<{kind}>(.*?)</{kind}>", text, re.DOTALL)
        assert f"{kind}-src 'sha256-{b64encode(sha256(inner.encode()).digest()).decode()}';" in policy
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    assert not re.search(
        r"""<[^<>]* (?:style|on\w+)=""", text.partition("<body>")[2].partition("<script>")[0]
    )


def test_two_thousand_pods_without_a_workload_are_about_a_megabyte():
    pods = [Workload("shop", "Pod", f"a-pod-with-a-name-{number}") for number in range(2000)]
    shares = [share(pod, 100 + number) for number, pod in enumerate(pods)]
    nodes = [a_node(f"new-{number}", *shares[10 * number : 10 * number + 10]) for number in range(200)]
    assert len(text_of(a_report(*nodes)).encode()) < 1_200_000


def test_two_thousand_replicas_that_keep_off_each_other_are_small():
    nodes = (a_node(f"new-{number}", share(cpu=900)) for number in range(2000))
    assert len(text_of(a_report(*nodes)).encode()) < 200_000
