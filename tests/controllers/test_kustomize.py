"""Folders of Kustomize: built by the real program, or refused with what to do."""

import json
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from localenv.binaries import control_plane_binaries
from nodeless.cli.bounded_files import UnreadableFileError
from nodeless.cli.main import app
from nodeless.cli.manifests.kustomize import build

BASE = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: web, image: web, resources: {requests: {cpu: 500m}}}
"""
POOL = """\
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: general}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      requirements: []
---
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: default}
spec:
  role: node
  amiSelectorTerms: [{alias: al2023@latest}]
  subnetSelectorTerms: [{tags: {a: b}}]
  securityGroupSelectorTerms: [{tags: {a: b}}]
"""


def nodeless(*arguments):
    return CliRunner().invoke(app, list(map(str, arguments)))


@pytest.fixture
def overlay(tmp_path):
    """An overlay with a prefix, a patch of requests and 5 replicas; its base has no `kind`, as is allowed."""
    files = {
        "base/kustomization.yaml": "resources: [web.yaml, pool.yaml]\n",
        "base/web.yaml": BASE,
        "base/pool.yaml": POOL,
        "prod/kustomization.yaml": (
            "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [../base]\n"
            "replicas: [{name: web, count: 5}]\npatches: [{path: large.yaml}]\n"
        ),
        "prod/large.yaml": BASE.replace("500m", "'3'").replace("replicas: 1", "replicas: 2"),
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return tmp_path / "prod"


@pytest.fixture
def on_path(tmp_path, monkeypatch):
    """PATH with one folder, and a way to put programs there: texts of Python, or links to real ones."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))

    def put(name, program):
        path = folder / name
        if isinstance(program, Path):
            path.symlink_to(program)
        else:
            path.write_text(f"#!{sys.executable}\n{program}")
            path.chmod(0o755)

    return put


@pytest.mark.cluster
@pytest.mark.parametrize("command", ["plan", "validate"])
def test_an_overlay_is_read_as_the_real_program_builds_it(overlay, on_path, command):
    on_path("kubectl", control_plane_binaries()["kubectl"])
    result = nodeless(command, overlay, "-o", "json")
    assert result.exit_code == 0, result.output
    if command == "plan":
        (landing,) = json.loads(result.stdout)["landings"]
        assert (landing["workload"]["name"], landing["pods"]) == ("web", 5)
    else:
        objects = {each["object"]: each["result"] for each in json.loads(result.stdout)["objects"]}
        assert objects == {
            "NodePool/general": "valid",
            "EC2NodeClass/default": "valid",
            "Deployment/web": "valid",
        }


def test_without_a_program_for_it_the_command_says_how_to_pipe(overlay, on_path):
    result = nodeless("plan", overlay)
    assert result.exit_code == 2
    assert "neither kustomize nor kubectl is on PATH; hint: kustomize build " in result.stderr
    assert f"{overlay} | nodeless plan -" in result.stderr


def test_kustomize_itself_goes_before_kubectl(overlay, on_path):
    on_path("kustomize", "import sys; sys.exit(f'asked: {sys.argv[1:]}')")
    on_path("kubectl", "import sys; sys.exit('not to be asked')")
    result = nodeless("validate", overlay)
    assert result.exit_code == 2
    assert (
        f"kustomize build failed: asked: ['build', '{overlay}']; hint: run kustomize build {overlay}"
        in result.stderr
    )


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("import sys; sys.exit(3)", "kustomize build failed: exit code 3"),
        ("import sys; sys.stdout.buffer.write(b'\\xff\\xfe\\xff')", "is not UTF-8"),
        ("print('a: [')", "not YAML"),
    ],
    ids=["fails in silence", "writes bytes", "writes no YAML"],
)
def test_a_program_that_does_not_do_it_is_named_with_what_it_did(overlay, on_path, program, said):
    on_path("kustomize", program)
    for command in ("plan", "validate"):
        result = nodeless(command, overlay)
        assert result.exit_code == 2
        assert said in result.output


def test_a_program_that_hangs_is_ended(overlay, on_path):
    on_path("kustomize", "import signal; signal.pause()")
    with pytest.raises(UnreadableFileError, match=r"kustomize build took more than 0\.5 s; hint: "):
        build(overlay, most_seconds=0.5)


def test_folders_of_kustomize_below_a_folder_are_read_as_files_and_it_is_said(overlay, on_path):
    result = nodeless("validate", overlay.parent)
    assert (
        f"{overlay} is a Kustomize folder, but its files are read as they are; hint: give that folder"
        in result.stderr
    )


def test_a_folder_without_manifests_is_said_to_be_one(tmp_path):
    result = nodeless("plan", tmp_path)
    assert result.exit_code == 2
    assert f"{tmp_path} contains no file that ends in .yaml, .yml, .json" in result.stderr


@pytest.fixture
def chart(tmp_path):
    files = {
        "Chart.yaml": "apiVersion: v2\nname: web\n",
        "values.yaml": "n: 3\n",
        "templates/web.yaml": "{{- if .x }}\n",
    }
    for name, text in files.items():
        path = tmp_path / "web" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "web"


@pytest.mark.parametrize("verb", ["plan", "validate", "convert", "migrate"])
def test_a_helm_chart_is_called_one(chart, verb):
    told = nodeless(verb, chart)

    assert told.exit_code == 2
    assert f"{chart} is a Helm chart, and its templates are not manifests; hint: helm template" in told.output
    assert "values.yaml" not in told.output
    above = nodeless("plan", chart.parent)
    assert f"note: {chart} is a Helm chart, and its templates are not manifests" in above.output


def test_a_fault_in_a_helm_template_that_is_yaml_says_so(tmp_path):
    path = tmp_path / "web.yaml"
    path.write_text(BASE.replace("replicas: 1", 'replicas: "{{ .Values.replicas }}"'))
    told = nodeless("plan", path)

    assert (told.exit_code, "is not a number of pods" in told.stderr) == (2, True)
    assert f"note: {path} contains expressions in {{{{ }}}}; hint: if this is a Helm template" in told.stderr
