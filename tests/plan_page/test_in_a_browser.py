"""The page of a plan in a browser, on a phone, a tablet and a desk, with 30 and with 2,000 pods."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, Page, expect

from nodeless.explain.node_groups import groupings, rows
from nodeless.explain.page import page as page_of
from nodeless.explain.picture import amount_of
from nodeless.explain.preference_costs import PreferenceCost, PreferenceCosts, Price
from nodeless.explain.report import Report
from tests.browser import chromium
from tests.explain.test_page import HOSTILE, hostile_report
from tests.plan_page.drawn import drawn

WIDTHS = (390, 820, 1400)
NUMBERS = (30, 2000)
AT = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)


@dataclass(frozen=True)
class Drawn:
    """A plan and the file of its page."""

    report: Report
    file: Path


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


@pytest.fixture(scope="module")
def plans(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Drawn]:
    folder = tmp_path_factory.mktemp("pages")
    made = {}
    for number in NUMBERS:
        file = folder / f"{number}.html"
        report = drawn(number)
        file.write_text(page_of(report, AT), encoding="utf-8")
        made[number] = Drawn(report, file)
    return made


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    made = browser.new_context(viewport={"width": 1400, "height": 900})
    made.set_default_timeout(60_000)
    yield made
    made.close()


@pytest.fixture
def page(context: BrowserContext) -> Page:
    return context.new_page()


def show(page: Page, plan: Drawn) -> None:
    page.goto(plan.file.as_uri())


def unfold_everything(page: Page) -> None:
    page.evaluate("document.querySelectorAll('details').forEach(details => { details.open = true; })")


# Boxes of the lines of every text that is drawn; of two texts, those that lie over each other are looked for
# from top to bottom.
LAYOUT = """() => {
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const boxes = [], small = [], outside = [], clipped = [], over = [];
  for (let text = walker.nextNode(); text; text = walker.nextNode()) {
    const around = text.parentElement;
    if (!text.data.trim() || around.closest("script, style, option")) continue;
    if (!around.checkVisibility()) continue;
    const range = document.createRange();
    range.selectNodeContents(text);
    const lines = [...range.getClientRects()].filter((box) => box.width > 0 && box.height > 0);
    if (!lines.length) continue;
    const said = text.data.trim().slice(0, 60);
    if (parseFloat(getComputedStyle(around).fontSize) < 11) small.push(said);
    for (const box of lines) {
      if (box.left < -0.5 || box.right > innerWidth + 0.5) outside.push(said);
      boxes.push({ said, text, left: box.left, right: box.right, top: box.top, bottom: box.bottom });
    }
    for (let element = around; element !== document.body; element = element.parentElement) {
      const style = getComputedStyle(element);
      if (style.overflow === "visible" && style.textOverflow === "clip") continue;
      const whole = element.getBoundingClientRect();
      const cut = (box) =>
        box.right > whole.right + 1 || box.left < whole.left - 1 || box.bottom > whole.bottom + 1;
      if (lines.some(cut)) clipped.push(said);
    }
  }
  boxes.sort((one, other) => one.top - other.top);
  let open = [];
  for (const box of boxes) {
    open = open.filter((other) => other.bottom > box.top + 3);
    for (const other of open) {
      const common = Math.min(box.right, other.right) - Math.max(box.left, other.left);
      if (other.text !== box.text && common > 1) over.push(`${other.said} / ${box.said}`);
    }
    open.push(box);
  }
  return { wide: document.documentElement.scrollWidth - innerWidth, texts: boxes.length,
           small, outside, clipped, over };
}"""
FAULTS = ("small", "outside", "clipped", "over")


def faults(page: Page) -> dict[str, Any]:
    """What is wrong with the layout; the number of lines of text is not."""
    found = page.evaluate(LAYOUT)
    assert found["texts"] > 20
    assert found["wide"] <= 0, f"scrolls sideways by {found['wide']} pixels"
    return {name: found[name][:5] for name in FAULTS if found[name]}


@pytest.mark.parametrize(
    # Tables are narrowest at 1200.
    ("number", "width"),
    [*((number, width) for number in NUMBERS for width in WIDTHS), (30, 1000), (30, 1200)],
)
def test_texts_are_large_enough_whole_and_apart(
    page: Page, plans: dict[int, Drawn], number: int, width: int
) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    show(page, plans[number])
    assert faults(page) == {}
    unfold_everything(page)
    assert faults(page) == {}


@pytest.mark.parametrize("width", WIDTHS)
def test_texts_of_hostile_names_are_large_enough_whole_and_apart(
    page: Page, tmp_path: Path, width: int
) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    for name in HOSTILE:
        file = tmp_path / "page.html"
        file.write_text(page_of(hostile_report(name), AT), encoding="utf-8")
        page.goto(file.as_uri())
        unfold_everything(page)
        found = faults(page)
        assert found == {}, name


@pytest.mark.parametrize(
    ("style", "fault"),
    [
        ("h1 { font-size: 10px; }", "small"),
        ("h1 { position: absolute; left: -40px; }", "outside"),
        ("h1 { width: 40px; height: 10px; overflow: hidden; }", "clipped"),
        ("h1 { margin-bottom: -40px; }", "over"),
    ],
)
def test_a_fault_of_the_layout_would_be_found(
    browser: Browser, tmp_path: Path, style: str, fault: str
) -> None:
    lines = "".join(f"<p>line {number}</p>" for number in range(30))
    file = tmp_path / "page.html"
    file.write_text(f"<!doctype html><style>{style}</style><h1>a title</h1>{lines}")
    page = browser.new_page()
    page.goto(file.as_uri())
    assert fault in faults(page)
    page.close()


def nodes_shown(page: Page) -> int:
    return page.locator(".nodes > li:visible").count()


def test_a_search_shows_the_node_of_a_pod_and_its_name(page: Page, plans: dict[int, Drawn]) -> None:
    plan = plans[2000]
    show(page, plan)
    before = page.locator("details[open]").count()
    node = next(node for node in reversed(plan.report.nodes) if node.state == "new" and node.shares)
    pod = node.shares[0].keys[-1]
    page.get_by_role("searchbox", name="Find").fill(f"{pod.upper()} {node.zone}")

    found = page.locator(".nodes > li:visible")
    assert 0 < found.count() < 30
    assert all(pod in text for text in found.all_text_contents())
    expect(found.locator("dt", has_text=node.name).first).to_be_visible()
    status = page.get_by_role("status").text_content() or ""
    assert f"{found.count()} of {len(rows(plan.report.nodes))} rows of nodes" in status
    assert f"0 of {len(plan.report.unplaced)} reasons" in status

    page.get_by_role("searchbox", name="Find").fill("")
    assert page.locator("details[open]").count() == before
    assert page.get_by_role("status").text_content() == ""


def test_a_search_finds_nodes_by_pool_type_and_zone(page: Page, plans: dict[int, Drawn]) -> None:
    show(page, plans[2000])
    made = rows(plans[2000].report.nodes)
    for words in (("Provisioner/front",), ("us-east-1b", "c6a.4xlarge"), ("spot", "general", "us-east-1a")):
        page.get_by_role("searchbox", name="Find").fill(" ".join(words))
        fills = [
            f"{row.fill.pool} {row.fill.instance_type} {row.fill.zone} {row.fill.capacity_type}"
            for row in made
        ]
        assert nodes_shown(page) == sum(all(word in fill for word in words) for fill in fills) > 0


def test_a_search_finds_a_pod_without_a_place(page: Page, plans: dict[int, Drawn]) -> None:
    plan = plans[2000]
    show(page, plan)
    group = plan.report.unplaced[-1]
    page.get_by_role("searchbox", name="Find").fill(group.pods[-1])

    assert nodes_shown(page) == 0
    assert page.locator(".reason:visible").count() == 1
    expect(page.locator(".reason:visible .pods p")).to_contain_text(group.pods[-1])


def test_a_search_finds_what_a_preference_costs(page: Page, plans: dict[int, Drawn], tmp_path: Path) -> None:
    report = plans[30].report
    price = Price(0.29, 212.0, 0.71)
    names = ("ScheduleAnyway over hosts", "preferred node affinity example.com/rack")
    costs = tuple(PreferenceCost("ScheduleAnyway", "", name, 1, (), price) for name in names)
    file = tmp_path / "preferences.html"
    file.write_text(page_of(replace(report, preferences=PreferenceCosts(costs, names)), AT), encoding="utf-8")
    show(page, Drawn(report, file))
    page.get_by_role("searchbox", name="Find").fill("ScheduleAnyway over")

    expect(page.get_by_role("status")).to_contain_text("1 of 2 costs of preferences")
    expect(page.locator("#preferences li:visible")).to_contain_text(["+71 %, 212 USD a month"])


def test_a_search_for_nothing_that_is_there_hides_everything(page: Page, plans: dict[int, Drawn]) -> None:
    show(page, plans[30])
    page.get_by_role("searchbox", name="Find").fill("zyxwvut")
    expect(page.get_by_role("status")).to_contain_text("0 of ")
    for kind in (".nodes > li", ".group", "tbody tr", ".reason"):
        assert page.locator(f"{kind}:visible").count() == 0


def test_a_color_of_the_legend_shows_its_nodes_and_dims_the_rest(page: Page, plans: dict[int, Drawn]) -> None:
    show(page, plans[30])
    entry = page.locator(".legend button").first
    name = entry.locator("bdi").text_content() or ""
    entry.click()

    assert entry.get_attribute("aria-pressed") == "true"
    for text in page.locator(".nodes > li:visible").all_text_contents():
        assert name in text
    hit = page.locator(".nodes > li:visible rect.hit")
    assert hit.count() >= 1
    assert {piece.get_attribute("class") for piece in hit.all()} == {"c0 hit"}
    dim = page.locator(".nodes > li:visible rect:not(.hit)").first
    assert float(dim.evaluate("piece => getComputedStyle(piece).opacity")) < 0.5
    entry.click()
    assert entry.get_attribute("aria-pressed") == "false"
    assert page.locator("rect.hit").count() == 0


@pytest.mark.parametrize("number", NUMBERS)
def test_nodes_are_grouped_as_the_reader_chooses(page: Page, plans: dict[int, Drawn], number: int) -> None:
    show(page, plans[number])
    made = rows(plans[number].report.nodes)
    for way in groupings(made):
        page.get_by_label("Group nodes by").select_option(way.title)
        groups = page.locator(".group:visible")
        assert groups.locator("h3").all_text_contents() == [name for name, _ in way.groups]
        sizes = groups.evaluate_all(
            "groups => groups.map(group => group.querySelectorAll('.nodes > li').length)"
        )
        assert sizes == [len(inside) for _, inside in way.groups]
        assert page.locator(".nodes > li").count() == len(made)
        assert page.locator(".what > .pool:visible").count() == (
            0 if way.name == "pool" else nodes_shown(page)
        )
        # The largest of each group is as wide as the group.
        longest = groups.evaluate_all("""groups => groups.map(group => Math.max(
          ...[...group.querySelectorAll('svg')].map(bar => parseFloat(bar.getAttribute('width')))))""")
        assert set(longest) == {100}


def test_bars_can_be_compared_over_all_groups_and_can_show_the_fill_alone(
    page: Page, plans: dict[int, Drawn]
) -> None:
    show(page, plans[30])
    widths = "bars => bars.map(bar => parseFloat(bar.getAttribute('width')))"
    bars = page.locator('svg[data-r="cpu"]')
    page.get_by_label("Length of bars").select_option("Size among all")
    assert bars.evaluate_all(widths).count(100) < len(rows(plans[30].report.nodes)) / 2
    page.get_by_label("Length of bars").select_option("Fill alone")
    assert set(bars.evaluate_all(widths)) == {100}


VALUES = "lists => lists.map(list => [...list.children].map(node => node.dataset.v.split(' ').map(Number)))"


def test_nodes_are_sorted_inside_their_groups(page: Page, plans: dict[int, Drawn]) -> None:
    show(page, plans[2000])
    places = {"Price": 1, "CPU fill": 2, "Memory fill": 3, "Pods": 4}
    for title, place in places.items():
        page.get_by_label("Sort nodes by").select_option(title)
        for values in page.locator(".group:visible .nodes").evaluate_all(VALUES):
            column = [value[place] for value in values]
            assert column == sorted(column, reverse=True), title
    page.get_by_label("Sort nodes by").select_option("Instance type")
    types = page.locator(".group:visible").first.locator(".what b bdi").all_text_contents()
    assert types == sorted(types, key=lambda name: (name.split(".")[0], len(name), name))
    page.get_by_label("Sort nodes by").select_option("As planned")
    for values in page.locator(".group:visible .nodes").evaluate_all(VALUES):
        assert values == sorted(values, key=lambda value: value[0])


def test_tables_are_sorted_by_every_column(page: Page, plans: dict[int, Drawn]) -> None:
    show(page, plans[2000])
    page.get_by_role("button", name="Expand all").click()
    for name in ("launches", "workloads"):
        table = page.locator(f"#{name} table")
        heads = table.locator("thead th")
        for place in range(heads.count()):
            head = heads.nth(place)
            numbers = "number" in (head.get_attribute("class") or "")
            for order in ("descending", "ascending") if numbers else ("ascending", "descending"):
                head.get_by_role("button").click()
                assert head.get_attribute("aria-sort") == order
                assert table.locator("th[aria-sort]").count() == 1
                cells = table.locator("tbody tr").evaluate_all(
                    f"rows => rows.map(row => row.cells[{place}].textContent)"
                )
                if numbers:
                    values = [float(cell.split()[0].replace(",", "").replace("-", "0")) for cell in cells]
                    assert values == sorted(values, reverse=order == "descending")
                    assert len(set(values)) > 1 or name == "workloads"
                else:
                    ordered = page.evaluate(
                        "cells => [...cells].sort((a, b) => a.localeCompare(b, undefined, {numeric: true}))",
                        cells,
                    )
                    assert cells == (ordered if order == "ascending" else ordered[::-1])


def test_groups_and_tables_collapse(page: Page, plans: dict[int, Drawn]) -> None:
    show(page, plans[2000])
    shown = nodes_shown(page)
    assert 0 < shown < len(rows(plans[2000].report.nodes))
    first = page.locator(".group:visible").first
    first.locator("> summary").click()
    assert nodes_shown(page) < shown
    page.get_by_role("button", name="Expand all").click()
    assert nodes_shown(page) == len(rows(plans[2000].report.nodes))
    assert page.locator("#workloads tbody tr:visible").count() > 40
    page.get_by_role("button", name="Collapse all").click()
    assert nodes_shown(page) == page.locator("tbody tr:visible").count() == 0
    page.get_by_role("link", name="Workloads").click()
    assert page.locator("#workloads tbody tr:visible").count() > 40


FOCUSED = """() => {
  const at = document.activeElement, style = getComputedStyle(at);
  const kind = at.closest("nav, form, .legend, thead, .contents, .nodes, .group, .fold, .pods, .more");
  const ring = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2;
  return [`${at.tagName} ${kind ? kind.className || kind.tagName : ""}`, ring];
}"""


def test_everything_is_reached_and_used_by_keyboard(page: Page, plans: dict[int, Drawn]) -> None:
    show(page, plans[30])
    count = page.evaluate("""() => [...document.querySelectorAll("a, button, input, select, summary")]
      .filter(element => element.checkVisibility()).length""")
    seen, rings = [], []
    for _ in range(count):
        page.keyboard.press("Tab")
        kind, ring = page.evaluate(FOCUSED)
        seen.append(kind)
        rings.append(ring)
    assert all(rings), [kind for kind, ring in zip(seen, rings, strict=True) if not ring]
    for kind in ("A NAV", "INPUT FORM", "SELECT FORM", "BUTTON FORM", "BUTTON legend", "SUMMARY group",
                 "SUMMARY nodes", "BUTTON THEAD", "SUMMARY fold", "SUMMARY pods"):  # fmt: skip
        assert kind in seen, f"{kind} is not reached"

    summary = page.locator(".group > summary").first
    summary.focus()
    for key, state in (("Enter", False), ("Space", True)):
        page.keyboard.press(key)
        assert summary.evaluate("summary => summary.parentElement.open") is state
    node = page.locator(".nodes summary").first
    node.press("Enter")
    expect(page.locator(".contents").first).to_be_visible()
    head = page.locator("#launches th").nth(1)
    head.get_by_role("button").press("Space")
    assert head.get_attribute("aria-sort") == "ascending"


@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1400, "light")])
def test_axe_finds_nothing(browser: Browser, plans: dict[int, Drawn], width: int, scheme: Any) -> None:
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    show(page, plans[30])
    unfold_everything(page)
    assert [(fault["id"], fault["nodes"][0]["html"]) for fault in violations(page)] == []
    page.close()


def violations(page: Page) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = Axe().run(page).response["violations"]
    return found


def test_axe_would_find_a_fault(page: Page, plans: dict[int, Drawn]) -> None:
    show(page, plans[30])
    page.evaluate(
        "document.getElementById('find').parentElement.replaceWith(document.getElementById('find'))"
    )
    page.evaluate("document.querySelector('h1').style.color = '#ddd'")
    page.evaluate("document.getElementById('find').removeAttribute('placeholder')")
    assert {"color-contrast", "label"} <= {fault["id"] for fault in violations(page)}


def test_a_screen_reader_gets_all_that_is_drawn(page: Page, plans: dict[int, Drawn]) -> None:
    report = plans[30].report
    page.set_viewport_size({"width": 390, "height": 900})
    show(page, plans[30])
    unfold_everything(page)
    tree = page.locator("body").aria_snapshot()

    for role in ("banner", "navigation", "main", "search", "searchbox", "combobox", "table", "columnheader"):
        assert f"- {role}" in tree
    assert '- heading "Nodes and their fill" [level=2]' in tree
    for row in rows(report.nodes):
        line = page.locator(f'.nodes > li[data-v^="{row.number} "]').aria_snapshot()
        fill = row.fill
        said = [fill.instance_type, fill.state, fill.capacity_type, fill.zone, f"{fill.price:.4f} USD/h"]
        said += [
            f"{round(100 * fill.fraction(name))} % of {amount_of(name, fill.allocatable[name])}"
            for name in row.resources
        ]
        said += [member.name for member in row.members]
        said += [key for member in row.members for share in member.shares for key in share.keys]
        assert [text for text in said if text not in line] == []
        for share in fill.shares:
            cells = [str(share.workload), str(share.pods), amount_of("cpu", share.requests["cpu"])]
            assert f'- row "{" ".join(cells)} ' in line
    for group in report.unplaced:
        for obstacle in group.obstacles:
            assert obstacle.message in tree


def test_rows_and_cells_stay_a_table_where_they_are_drawn_as_cards(
    page: Page, plans: dict[int, Drawn]
) -> None:
    page.set_viewport_size({"width": 390, "height": 900})
    show(page, plans[30])
    table = page.get_by_role("table", name="Nodes to launch")
    assert table.locator("tbody tr").first.evaluate("row => getComputedStyle(row).display") == "grid"
    assert table.get_by_role("row").count() == 1 + len(plans[30].report.launches)
    assert table.get_by_role("cell").count() == 8 * len(plans[30].report.launches)


def luminance(page: Page, selector: str) -> float:
    color = page.locator(selector).first.evaluate("element => getComputedStyle(element).backgroundColor")
    return sum(map(float, color.removeprefix("rgb(").removesuffix(")").split(","))) / 3


def test_the_page_is_dark_where_the_reader_prefers_that_and_light_on_paper(
    page: Page, plans: dict[int, Drawn]
) -> None:
    show(page, plans[30])
    assert luminance(page, "section") > 200
    page.emulate_media(color_scheme="dark")
    assert luminance(page, "section") < 60
    page.emulate_media(color_scheme="dark", media="print")
    ink = page.locator("h1").evaluate("element => getComputedStyle(element).color")
    assert luminance(page, "section") > 200
    assert ink == "rgb(28, 36, 48)"


HIDDEN = """() => {
  const walker = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
  const hidden = [];
  for (let text = walker.nextNode(); text; text = walker.nextNode()) {
    if (!text.data.trim() || text.parentElement.closest("form, [hidden], [data-by=pool] .pool")) continue;
    const range = document.createRange();
    range.selectNodeContents(text);
    const drawn = [...range.getClientRects()].some((box) => box.width > 0 && box.height > 0);
    const visible = text.parentElement.checkVisibility({ contentVisibilityAuto: true });
    if (!drawn || !visible) hidden.push(text.data);
  }
  return hidden;
}"""


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("script", [True, False], ids=["script", "no-script"])
def test_what_is_printed_is_everything_without_controls(
    browser: Browser, plans: dict[int, Drawn], number: int, script: bool
) -> None:
    context = browser.new_context(java_script_enabled=script, viewport={"width": 760, "height": 1000})
    page = context.new_page()
    show(page, plans[number])
    assert page.evaluate(HIDDEN) != []
    page.emulate_media(media="print")
    assert page.evaluate(HIDDEN) == []
    assert not page.locator("form").is_visible()
    assert not page.locator("nav").is_visible()
    assert faults(page) == {}
    context.close()


def test_before_printing_all_is_unfolded_and_after_it_folded(page: Page, plans: dict[int, Drawn]) -> None:
    """Also where the style of print cannot unfold it."""
    show(page, plans[30])
    folded = page.locator("details:not([open])").count()
    assert folded > 0
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("details:not([open])").count() == 0
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator("details:not([open])").count() == folded


def test_all_can_be_read_without_the_script(browser: Browser, plans: dict[int, Drawn]) -> None:
    context = browser.new_context(java_script_enabled=False, viewport={"width": 390, "height": 900})
    page = context.new_page()
    show(page, plans[30])
    assert not page.locator("form").is_visible()
    assert page.locator("thead button").count() == 0
    assert nodes_shown(page) == len(rows(plans[30].report.nodes))
    page.locator(".nodes summary").first.click()
    expect(page.locator(".contents").first).to_be_visible()
    unfold_everything(page)
    assert faults(page) == {}
    # On a phone cells say what their column is; the line with the columns is for sorting.
    page.set_viewport_size({"width": 1400, "height": 900})
    assert page.evaluate(HIDDEN) == []
    context.close()


def test_nothing_is_asked_of_the_network_and_nothing_else_may_run(
    page: Page, plans: dict[int, Drawn]
) -> None:
    asked, said = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    show(page, plans[30])
    page.get_by_role("searchbox", name="Find").fill("web")
    page.get_by_label("Group nodes by").select_option("Zone")
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
    assert len([url for url in asked if url.startswith("file:")]) == 1
    assert said == []

    page.evaluate("""() => {
      const script = document.createElement("script");
      script.textContent = "window.ran = 1";
      document.body.append(script);
      const image = document.createElement("img");
      image.src = "http://127.0.0.1:9/x.png";
      document.body.append(image);
    }""")
    expect.soft(page.locator("img")).to_be_attached()
    assert page.evaluate("window.ran") is None
    assert sum("Content Security Policy" in text for text in said) >= 2


def test_no_name_runs_in_the_page(page: Page, tmp_path: Path) -> None:
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    for name in HOSTILE:
        file = tmp_path / "page.html"
        file.write_text(page_of(hostile_report(name), AT), encoding="utf-8")
        page.goto(file.as_uri())
        page.get_by_role("searchbox", name="Find").fill(name[:40])
        page.locator(".legend button").first.click()
        page.get_by_label("Group nodes by").select_option("Instance type")
        assert page.evaluate("window.ran") is None
        assert page.locator("script").count() == page.locator("h1").count() == 1
        assert page.locator("img").count() == 0
    assert said == []
