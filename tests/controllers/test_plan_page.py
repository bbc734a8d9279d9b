"""The page that `nodeless plan --html` writes."""

import re

from tests.api.manifests import node_template, provisioner
from tests.controllers.planning import EXAMPLES, a_workload, nodeless
from tests.scheduling.factories import node, pods, pool


def test_the_page_stands_alone_and_shows_every_node(tmp_path):
    path = tmp_path / "report.html"
    result = nodeless(EXAMPLES, "--html", path)
    page = path.read_text()

    assert f"report written to {path}" in result.stderr
    assert page.count("<svg") == 12
    assert "<td><i class=c1></i><bdi>shop/web (Deployment)</bdi></td><td>4</td>" in page
    assert not re.findall(r"""src=|href="(?!#|data:,")|url\(|@import""", page)
    assert page.count("<html") == page.count("</html>") == 1


def test_the_page_names_what_would_come_next_and_what_stands(tmp_path, saved):
    path = tmp_path / "report.html"
    many = [pods(1, name=f"one-{number}") for number in range(30)]
    nodeless("--snapshot", saved(pool(), node("n1"), many), "--html", path)
    page = path.read_text()

    assert re.search(r'<span class="next"><bdi>\w+</bdi> \d+\.\d{4} <small>\+\d+\.\d %</small>', page)
    assert '<span class="state existing">existing</span>' in page
    assert '<i class="co"></i>10 other workloads' in page


def test_names_in_the_page_are_escaped(tmp_path, file):
    path = tmp_path / "report.html"
    nodeless(file(provisioner(), node_template(), a_workload(name="<b>&web")), "--html", path)

    assert "<b>&web" not in path.read_text()
    assert "&lt;b&gt;&amp;web" in path.read_text()
