"""The docs site as its readers have it: in a browser, at a desk and on a phone, and link by link."""

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.docs_site.conftest import OLDER, ROOT, VERSION

REPOSITORY = re.compile(r"https://github\.com/nodeless/nodeless/(?:blob|tree)/main/([^#]*)")
PHONE = {"width": 390, "height": 844}
LOADS = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src"}
#: Of the picture as it is shown, in CSS pixels; the body's text has 16.
SMALLEST_TEXT = 10.5


class Document(HTMLParser):
    """Links, anchors and loaded files of a page."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.loads: list[str] = []
        self.feed(file.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.anchors |= {found[name] for name in ("id", "name") if name in found}
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        # `<link rel=canonical>` and its like load nothing.
        if tag in LOADS and LOADS[tag] in found and found.get("rel", "stylesheet") in {"stylesheet", "icon"}:
            self.loads.append(found[LOADS[tag]])


@pytest.fixture(scope="module")
def documents(site: Path) -> dict[Path, Document]:
    return {file: Document(file) for file in sorted(site.rglob("*.html")) if file.name != "404.html"}


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(60_000)
    yield context.new_page()
    context.close()


def dead(file: Path, link: str, documents: dict[Path, Document]) -> str:
    """What is wrong with a link of a page; empty when it leads somewhere."""
    parts = urlsplit(link)
    if parts.scheme:
        inside = REPOSITORY.match(link)
        return "not in the repository" if inside and not (ROOT / unquote(inside[1])).exists() else ""
    target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
    if target.is_dir():
        target /= "index.html"
    if not target.is_file():
        return "no such file"
    if parts.fragment and target in documents and unquote(parts.fragment) not in documents[target].anchors:
        return "no such anchor"
    return ""


def test_no_link_of_the_site_is_dead(documents: dict[Path, Document]) -> None:
    assert sum(len(document.links) for document in documents.values()) > 1000
    found = [
        f"{file.name}: {link}: {wrong}"
        for file, document in documents.items()
        for link in [*document.links, *document.loads]
        if not link.startswith("data:") and (wrong := dead(file, link, documents))
    ]
    assert found == []


def test_a_dead_link_and_a_dead_anchor_would_be_found(documents: dict[Path, Document], site: Path) -> None:
    index = site / "index.html"
    assert dead(index, "no-such-page.html", documents) == "no such file"
    assert dead(index, "settings.html#no-such-heading", documents) == "no such anchor"
    nowhere = "https://github.com/nodeless/nodeless/blob/main/no/such/file"
    assert dead(index, nowhere, documents) == "not in the repository"


def test_every_page_can_be_reached_from_the_first(documents: dict[Path, Document], site: Path) -> None:
    reached, waiting = set(), [site / "index.html"]
    while waiting:
        file = waiting.pop()
        if file in reached or file not in documents:
            continue
        reached.add(file)
        paths = (urlsplit(link) for link in documents[file].links)
        waiting += [(file.parent / unquote(p.path)).resolve() for p in paths if p.path and not p.scheme]
    assert sorted(set(documents) - reached) == []


def test_nothing_is_loaded_from_another_host(documents: dict[Path, Document]) -> None:
    foreign = {link for document in documents.values() for link in document.loads if urlsplit(link).netloc}
    assert foreign == set()


SEARCH = "[data-md-component=search-query]"
#: What a reader looks for, and the page that has it.
TERMS = {
    "migrate cluster autoscaler": "Migrate from Cluster Autoscaler",
    "TaintNotTolerated": "Messages",
    "spec.disruption.budgets": "NodePool",
    "spot-percent": "Command line",
    "batchMaxDuration": "Settings",
}


def test_search_finds_pages(page: Page, address: str) -> None:
    hosts = set()
    page.on("request", lambda request: hosts.add(urlsplit(request.url).hostname))
    page.goto(f"{address}/index.html")
    page.locator(SEARCH).focus()
    expect(page.locator(".md-search-result__meta")).to_have_text("Type to start searching")
    for term, title in TERMS.items():
        page.locator(SEARCH).fill("")
        page.locator(SEARCH).press_sequentially(term)
        found = page.locator(".md-search-result__link", has=page.locator("h1", has_text=title))
        expect(found.first, f"{term} is not found in {title}").to_be_attached()
    found.first.click()
    expect(page.locator("article h1")).to_contain_text("Settings")
    assert hosts == {"127.0.0.1"}


def test_search_finds_nothing_where_there_is_nothing(page: Page, address: str) -> None:
    page.goto(f"{address}/index.html")
    page.locator(SEARCH).focus()
    expect(page.locator(".md-search-result__meta")).to_have_text("Type to start searching")
    page.locator(SEARCH).press_sequentially("zyxwvut")
    expect(page.locator(".md-search-result__meta")).to_have_text("No matching documents")


def test_a_reader_can_choose_another_version(page: Page, address: str) -> None:
    page.goto(f"{address}/index.html")
    expect(page.locator(".md-version__current")).to_contain_text(VERSION)
    assert [link.strip() for link in page.locator(".md-version__link").all_text_contents()] == [
        f"{VERSION}latest",
        OLDER,
    ]


# The frame of all pages is the same, and what runs in it takes most of the time: it is loaded once.
SHOWN_IN_TURN = """async (pages) => {
  const wide = {};
  for (const page of pages) {
    const text = await (await fetch(page)).text();
    const content = new DOMParser().parseFromString(text, "text/html").querySelector(".md-content");
    document.querySelector(".md-content").replaceWith(document.adoptNode(content));
    const width = document.documentElement.scrollWidth;
    if (width > innerWidth) wide[page] = width;
  }
  return wide;
}"""


@pytest.fixture
def phone(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport=PHONE, color_scheme="dark")
    context.set_default_timeout(60_000)
    yield context.new_page()
    context.close()


def test_no_page_scrolls_sideways_on_a_phone(
    phone: Page, documents: dict[Path, Document], site: Path, address: str
) -> None:
    phone.goto(f"{address}/settings.html")
    assert phone.evaluate("document.documentElement.scrollWidth") == PHONE["width"]
    pages = [f"{address}/{file.relative_to(site)}" for file in documents]
    assert phone.evaluate(SHOWN_IN_TURN, pages) == {}


def test_a_page_that_scrolls_sideways_would_be_found(phone: Page, address: str, published: Path) -> None:
    wide = published / VERSION / "assets" / "wide.html"
    wide.write_text("<div class=md-content><div style='width: 500px'>wide</div></div>")
    phone.goto(f"{address}/settings.html")
    assert list(phone.evaluate(SHOWN_IN_TURN, [f"{address}/assets/wide.html"]).values()) == [500]
    wide.unlink()


def smallest_text(picture: Path) -> float:
    """The smallest font of a drawing, in its own units."""
    return min(float(size) for size in re.findall(r'font-size="([\d.]+)"', picture.read_text()))


def test_pictures_can_be_read_on_a_phone_in_the_dark(phone: Page, site: Path, address: str) -> None:
    drawings = {file.name: file for file in (site / "images").glob("*.svg")}
    assert len(drawings) >= 3
    seen = set()
    for name in ("index", "concepts", "architecture"):
        phone.goto(f"{address}/{name}.html")
        for image in phone.locator("article img").all():
            shown, natural, source = image.evaluate("i => [i.clientWidth, i.naturalWidth, i.src]")
            assert natural > 0, source[:80]
            file = drawings.get(source.rsplit("/", 1)[-1])
            # Diagrams of Mermaid have text of 16 pixels and are not made smaller.
            size = smallest_text(file) if file else 16.0
            assert size * shown / natural >= SMALLEST_TEXT, source[:80]
            seen.add(source.rsplit("/", 1)[-1])
    assert set(drawings) <= seen
    for file in drawings.values():
        # Dark ink stands on paper of its own, whatever the page's color is.
        assert re.search(r'<rect width="\d+" height="\d+" rx="10" fill="#f', file.read_text()), file.name


def test_a_phone_shows_diagrams_on_paper_in_the_dark(phone: Page, address: str) -> None:
    phone.goto(f"{address}/architecture.html")
    assert phone.evaluate("document.body.dataset.mdColorScheme") == "slate"
    paper = phone.locator(".diagram").first.evaluate("e => getComputedStyle(e).backgroundColor")
    assert paper == "rgb(255, 255, 255)"
