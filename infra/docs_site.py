"""What MkDocs does with docs/ beyond its own rules: the hook that `mkdocs.yml` names.

The pages are written to be read in the repository. On the way to the site

- links that leave docs/ become links to the repository, or to the page that a file of the root becomes;
- the documents of the root (`ROOT_PAGES`) and the list of decisions become pages;
- `DIR/*` (or `NAME*`) in the navigation becomes every page that matches and is not named elsewhere;
- lists become those of Python-Markdown, which wants four blanks where CommonMark takes two or three;
- Mermaid diagrams become pictures, drawn here, so that the site needs no script of another host.

What is wrong is logged as a warning, which ends a strict build (`make docs`).
"""

import base64
import hashlib
import logging
import os
import posixpath
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from pymdownx import slugs

_ROOT = Path(__file__).resolve().parents[1]
_LOG = logging.getLogger("mkdocs.hooks.docs_site")
#: Documents of the root, and the pages of the site that they become.
ROOT_PAGES = {
    "README.md": "readme.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security-policy.md",
    "SCOPE.md": "scope.md",
    "CODE_OF_CONDUCT.md": "code-of-conduct.md",
}
_DECISIONS = "decisions/README.md"
_LINK = re.compile(r"(?<=\]\()(?!\w+:|#|/|mailto:)([^)\s#]+)(#[^)\s]*)?(?=[)\s])")
_FENCE = re.compile(r"^\s*(`{3,}|~{3,})")
_ITEM = re.compile(r"^( *)([-*+]|\d+[.)])( +)(?=\S)")
_TITLE = re.compile(r"^# (.+)$", re.MULTILINE)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Fill the folders of the navigation, and say how diagrams are drawn and headings named."""
    docs = Path(config.docs_dir)
    config.nav = _expand_nav(config.nav or [], docs)
    fence = {"name": "mermaid", "class": "mermaid", "format": diagram}
    config.mdx_configs["pymdownx.superfences"] = {"custom_fences": [fence]}
    # The anchors that the repository's host makes, so that a link leads to its heading in both places.
    config.mdx_configs["toc"] = {"permalink": True, "slugify": slugs.slugify(case="lower")}
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the documents of the root, and the list of decisions."""
    for name, uri in ROOT_PAGES.items():
        files.append(File.generated(config, uri, content=(_ROOT / name).read_text(encoding="utf-8")))
    listed = decisions(Path(config.docs_dir))
    files.append(File.generated(config, _DECISIONS, content=listed))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """A page's text with links and lists for the site."""
    uri = page.file.src_uri
    origin = next((name for name, made in ROOT_PAGES.items() if made == uri), f"docs/{uri}")
    base = f"{(config.repo_url or '').rstrip('/')}/{{kind}}/{config.extra['revision']}/{{path}}"

    def rewritten(found: re.Match[str]) -> str:
        path, anchor = found.group(1).replace("\\", ""), found.group(2) or ""
        target = posixpath.normpath(posixpath.join(posixpath.dirname(origin), path))
        inside = ROOT_PAGES.get(target) or _page_of(target, files)
        if inside:
            return posixpath.relpath(inside, posixpath.dirname(uri) or ".") + anchor
        if not (_ROOT / target).exists():
            _LOG.warning("%s: link to %s, which does not exist", origin, path)
        kind = "tree" if (_ROOT / target).is_dir() else "blob"
        return base.format(kind=kind, path=target) + anchor

    return (
        "\n".join(_lists(_outside_code(markdown.splitlines(), lambda line: _LINK.sub(rewritten, line))))
        + "\n"
    )


def _page_of(target: str, files: Files) -> str:
    """The site's file for a path of the repository; empty where it has none."""
    name = target.removeprefix("docs/")
    if name == target:
        return ""
    for candidate in (name, f"{name}/README.md"):
        if files.get_file_from_path(candidate):
            return candidate
    return ""


def decisions(docs: Path) -> str:
    """The list of the pages in docs/decisions, by number."""
    lines = [
        "# Decisions",
        "",
        "Why things are as they are: what was chosen, and what else was considered.",
        "",
    ]
    for file in sorted((docs / "decisions").glob("[0-9]*.md")):
        title = _TITLE.search(file.read_text(encoding="utf-8"))
        lines.append(f"- [{title[1] if title else file.stem}]({file.name})")
    return "\n".join(lines) + "\n"


def _expand_nav(nav: Any, docs: Path) -> Any:
    """The navigation, each `DIR/*` replaced by the pages that match and are not named elsewhere."""
    named = set(_strings(nav))

    def walk(entry: Any) -> Any:
        if isinstance(entry, Mapping):
            return {title: walk(below) for title, below in entry.items()}
        if isinstance(entry, list):
            return [page for below in entry for page in _pages(below)]
        return entry

    def _pages(entry: Any) -> Sequence[Any]:
        if not (isinstance(entry, str) and entry.endswith("*")):
            return [walk(entry)]
        found = (file.relative_to(docs).as_posix() for file in sorted(docs.glob(f"{entry}.md")))
        return [page for page in found if page not in named]

    return walk(nav)


def _strings(entry: Any) -> Iterator[str]:
    if isinstance(entry, str):
        yield entry
        return
    for below in entry.values() if isinstance(entry, Mapping) else entry:
        yield from _strings(below)


def _outside_code(lines: Sequence[str], change: Callable[[str], str]) -> Iterator[str]:
    """The lines, those outside of fenced code changed."""
    fence = ""
    for line in lines:
        found = _FENCE.match(line)
        if fence:
            if found and line.strip().startswith(fence):
                fence = ""
            yield line
        elif found:
            fence = found[1]
            yield line
        else:
            yield change(line)


def _lists(lines: Iterator[str]) -> Iterator[str]:
    """The lines, lists indented by four blanks a level and begun after a blank line."""
    offsets: list[int] = []
    before, fence, depth = "", "", 0
    for line in lines:
        indent = len(line) - len(line.lstrip(" "))
        if not line.strip():
            yield line
            before = line
            continue
        if not fence:
            item, listed = _ITEM.match(line), bool(offsets)
            while offsets and indent < offsets[-1]:
                # A line right below a paragraph goes on with it, however it is indented.
                if before.strip() and not item and not _FENCE.match(line) and not line.startswith("#"):
                    break
                offsets.pop()
            depth = len(offsets)
            if item:
                if before.strip() and not listed:
                    yield ""
                offsets.append(item.end())
        found = _FENCE.match(line)
        if found:
            marker = found[1]
            fence = "" if fence and marker.startswith(fence) else fence or marker
        stripped = line[min(indent, offsets[depth - 1]) :] if depth else line
        yield "    " * depth + stripped
        before = line


def diagram(source: str, language: str, css_class: str, options: Any, md: Any, **attributes: Any) -> str:
    """A Mermaid diagram as a picture inside of the page, for pymdownx.superfences.

    It is kept in the cache of `make setup` by its text, as drawing takes a second.
    """
    del language, options, md, attributes
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    cache = Path(os.environ.get("NODELESS_CACHE") or Path(base) / "nodeless") / "diagrams"
    kept = cache / f"{hashlib.sha256(source.encode()).hexdigest()[:32]}.svg"
    if kept.is_file():
        picture = kept.read_text(encoding="utf-8")
    else:
        import mermaidx  # noqa: PLC0415

        picture = mermaidx.render(source).svg()
        cache.mkdir(parents=True, exist_ok=True)
        unfinished = kept.with_suffix(f".{os.getpid()}")
        unfinished.write_text(picture, encoding="utf-8")
        unfinished.replace(kept)
    size = re.search(r'viewBox="[-\d.]+ [-\d.]+ ([\d.]+) ([\d.]+)"', picture)
    width, height = (round(float(size[1])), round(float(size[2]))) if size else (800, 600)
    data = base64.b64encode(picture.encode()).decode()
    words = escape(" ".join(source.split())[:300])
    return (
        f'<div class="{css_class} diagram" tabindex="0"><img alt="Diagram: {words}" width="{width}" '
        f'height="{height}" src="data:image/svg+xml;base64,{data}"></div>'
    )
