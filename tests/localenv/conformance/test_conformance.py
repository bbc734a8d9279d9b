"""Suites are run as they were published, spec by spec, and no failure is lost on the way to the page."""

import re
import zipfile
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localenv.conformance import reasons
from localenv.conformance.__main__ import main
from localenv.conformance.adaptations import ADAPTATIONS, Adaptation, AdaptationFailed, adapt_files
from localenv.conformance.controllers import KARPENTER, NODELESS
from localenv.conformance.modules import (
    V1_14,
    V1_15,
    Module,
    ModuleUnusable,
    Release,
    Source,
    assert_as_published,
    unpack_module,
)
from localenv.conformance.reasons import SLOW, Difference, explain_failure, is_beyond, not_here, patience
from localenv.conformance.results import (
    page,
    page_of,
    read_page,
    read_results,
    results_file,
    write_results,
)
from localenv.conformance.specs import Outcome, Result, Spec, is_cut_short, read_result, shorten

MODULE = Module("example.com/suites", "v1.0.0", "h1:x", ("drift",), ADAPTATIONS)
RELEASE = Release(MODULE, replace(MODULE, path="example.com/core", suites=()), go=(1, 26, 0))
SUITE, ENVIRONMENT = "test/suites/drift/suite_test.go", "test/pkg/environment/common/setup.go"
SPEC = Spec("drift", "Drift", "Images should (not) drift")


@pytest.fixture
def source(tmp_path):
    """A module with one suite and its environment code, as it was published."""
    texts = {SUITE: "Expect(1).To(Equal(1))", ENVIRONMENT: "kube-system", "pkg/other.go": "x"}
    archive = tmp_path / "module.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        for name, text in texts.items():
            packed.writestr(f"{MODULE}/{name}", text)
            file = tmp_path / "module" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
    return Source(MODULE, tmp_path / "module", archive)


def test_the_real_controller_is_judged_by_the_suites_of_its_own_release_alone(capsys):
    assert main(["--controller", "karpenter", "--release", "v1.15.0", "--build"]) == 2
    said = capsys.readouterr().err
    assert "the controller that is built is v1.14.0" in said
    assert "leave --release out" in said


def test_a_module_as_published_is_accepted(source):
    assert assert_as_published(source) == 1


@pytest.mark.parametrize("name", [SUITE, ENVIRONMENT, "pkg/other.go"])
def test_a_file_that_was_changed_where_it_lies_is_refused(source, name):
    (source.folder / name).write_text("Expect(1).To(Equal(2))")
    with pytest.raises(ModuleUnusable, match=re.escape(name)):
        assert_as_published(source)


def test_environment_code_alone_is_adapted_when_a_module_is_unpacked(source, tmp_path, monkeypatch):
    monkeypatch.setenv("NODELESS_CACHE", str(tmp_path / "cache"))
    elsewhere = Adaptation(ENVIRONMENT, "kube-system", "karpenter", "it runs there")
    module = replace(MODULE, adaptations=(elsewhere,))
    made = unpack_module(module, source.archive, print)
    assert (made.folder / ENVIRONMENT).read_text() == "karpenter"
    assert assert_as_published(made) == 1
    (made.folder / SUITE).write_text("Expect(1).To(Equal(2))")
    with pytest.raises(ModuleUnusable, match=re.escape(SUITE)):
        assert_as_published(made)


def test_a_file_that_is_missing_or_one_too_many_is_refused(source):
    (source.folder / SUITE).rename(source.folder / "test/suites/drift/other_test.go")
    with pytest.raises(ModuleUnusable, match=r"other_test\.go.*suite_test\.go"):
        assert_as_published(source)


@pytest.mark.parametrize("file", [SUITE, "pkg/apis/v1/labels.go", "test/pkg/other/x.go", "../x.go"])
def test_nothing_but_environment_code_may_be_adapted(file):
    with pytest.raises(AdaptationFailed, match="is not environment code"):
        adapt_files({file: "old"}, [Adaptation(file, "old", "new", "why")])


def test_an_adaptation_that_no_longer_fits_is_named():
    with pytest.raises(AdaptationFailed, match="does not contain 'gone'"):
        adapt_files({ENVIRONMENT: "old"}, [Adaptation(ENVIRONMENT, "gone", "new", "why")])


def test_adaptations_of_one_file_add_up():
    both = [Adaptation(ENVIRONMENT, "a", "b", "why"), Adaptation(ENVIRONMENT, "bc", "d", "why")]
    assert adapt_files({ENVIRONMENT: "ac ac", SUITE: "a"}, both) == {ENVIRONMENT: "d d"}


@given(st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), min_size=1))
def test_a_spec_is_focused_on_by_exactly_its_name(text):
    spec = Spec("drift", "Drift", text)
    assert re.search(spec.focus.replace("$", r"\Z"), f"Drift {text}") or "$" in text
    assert not re.search(spec.focus, f"Drift {text} too")
    assert not re.search(spec.focus, f"Other Drift {text}")


def entry(state, text=SPEC.text, kind="It", message=""):
    failure = {"Message": message, "Location": {"FileName": "/x/suite_test.go", "LineNumber": 7}}
    return {
        "LeafNodeType": kind,
        "ContainerHierarchyTexts": ["Images"] if kind == "It" else None,
        "LeafNodeText": text.removeprefix("Images "),
        "State": state,
        "RunTime": 3_000_000_000,
        **({"Failure": failure} if message else {}),
    }


def closing(message):
    """A spec that passed, told of with what its container asserts after all of its specs."""
    told = entry("failed", message=message)
    return told | {"Failure": told["Failure"] | {"FailureNodeType": "AfterAll"}}


@pytest.mark.parametrize(
    ("entries", "result"),
    [
        ([entry("passed")], Result(Outcome.PASS, 3.0)),
        ([entry("failed", message="no\n node")], Result(Outcome.FAIL, 3.0, "no node (suite_test.go:7)")),
        (
            [closing("no label")],
            Result(Outcome.FAIL, 3.0, "after all specs of its container: no label (suite_test.go:7)"),
        ),
        ([entry("panicked")], Result(Outcome.FAIL, 3.0, "panicked")),
        ([entry("timedout", message="slow")], Result(Outcome.FAIL, 3.0, "slow (suite_test.go:7)")),
        ([entry("interrupted")], Result(Outcome.FAIL, 3.0, "interrupted")),
        ([entry("skipped", message="no GPU")], Result(Outcome.NOT_HERE, 3.0, "no GPU (suite_test.go:7)")),
        ([entry("pending")], Result(Outcome.NOT_HERE, 3.0, "pending upstream")),
        ([entry("passed", "Images of another")], Result(Outcome.FAIL, 0.0, "it was not run")),
        (
            [entry("failed", "", "BeforeSuite", "no cluster"), entry("skipped")],
            Result(Outcome.FAIL, 0.0, "no cluster (suite_test.go:7)"),
        ),
        ([], Result(Outcome.FAIL, 0.0, "it was not run")),
    ],
)
def test_what_became_of_a_spec_is_read_from_the_report(entries, result):
    assert read_result([{"SuiteDescription": "Drift", "SpecReports": entries}], SPEC) == result


def test_results_outlive_a_run_and_the_page_counts_every_spec(tmp_path):
    others = [Spec("drift", "Drift", "b"), Spec("ami", "AMI", "a | b"), Spec("ami", "AMI", "c")]
    results = {
        SPEC.name: Result(Outcome.PASS, 3.2),
        others[0].name: Result(Outcome.FAIL, 61.0, "a | b"),
        others[1].name: Result(Outcome.NOT_HERE, 0.0, "no device"),
    }
    file = tmp_path / "results.json"
    assert read_results(file) == {}
    write_results(file, results)
    assert read_results(file) == results
    text = page(RELEASE, [SPEC, *others], read_results(file))
    assert "| all | 4 | 1 | 1 | 0 | 1 | 1 |" in text
    assert "| drift | 2 | 1 | 1 | 0 | 0 | 0 |" in text
    assert "| b | fail | 61 | a \\| b |" in text
    assert all(adaptation.reason in text for adaptation in ADAPTATIONS)


def test_a_machine_without_results_goes_on_from_those_of_the_page():
    specs = [
        SPEC,
        Spec("ami", "AMI", "a | b"),
        Spec("ami", "AMI", "no result yet"),
        Spec("drift", "Drift", "c"),
    ]
    results = {
        specs[0].name: Result(Outcome.PASS, 3.0),
        specs[1].name: Result(Outcome.FAIL, 61.0, "a | b"),
        specs[3].name: Result(Outcome.NOT_HERE, 0.0, "no device"),
    }
    assert read_page(page(RELEASE, specs, results)) == results


@pytest.mark.parametrize(
    ("release", "controller"), [(V1_14, NODELESS), (V1_14, KARPENTER), (V1_15, NODELESS)]
)
def test_the_pages_of_the_documentation_can_be_gone_on_from(release, controller):
    text = (Path(__file__).parents[3] / "docs" / page_of(release, controller)).read_text()
    counted = re.search(r"\| all \| (\d+) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|", text)
    assert counted is not None
    outcomes = Counter(each.outcome for each in read_page(text).values())
    assert [outcomes[each] for each in Outcome] == [int(number) for number in counted.groups()[1:]]


@given(st.text(max_size=2000))
def test_a_long_failure_keeps_its_end_where_the_expectation_stands(text):
    text = " ".join(text.split())
    entries = [entry("failed", message=f"Expected {text} to equal three")]
    message = shorten(read_result([{"SuiteDescription": "Drift", "SpecReports": entries}], SPEC).message)
    assert message.startswith("Expected") and "to equal three (suite" in message
    assert len(message) < 500


@pytest.mark.parametrize(
    ("name", "message", "outcome"),
    [
        (
            "ami: AMI x",
            "… to equal <string>: AMISelector did not match any AMIs (suite_test.go:1)",
            "differs",
        ),
        ("drift: AMI x", "… to equal <string>: AMISelector did not match any AMIs (suite_test.go:1)", "fail"),
        ("ami: AMI x", "expected a node (suite_test.go:1)", "fail"),
        (
            "scheduling: x should provision a node for a deployment",
            "expected 2 created nodes, had 4",
            "differs",
        ),
        ("scheduling: x should provision a node for a deployment", "Timed out", "fail"),
    ],
)
def test_a_failure_is_a_difference_only_where_both_spec_and_failure_are_those_told_of(name, message, outcome):
    suite, _, text = name.partition(": ")
    assert explain_failure(Spec(suite, "", text), Result(Outcome.FAIL, 1.0, message)).outcome == outcome
    assert explain_failure(Spec(suite, "", text), Result(Outcome.PASS, 1.0)).outcome == Outcome.PASS


def test_specs_are_left_out_for_a_reason_only():
    assert not_here(Spec("ipv6", "IPv6", "should provision")) == "the local cluster has IPv4 alone"
    assert not_here(SPEC) == ""


UNUSED = (
    "after all specs of its container: Expected <[]string | len:1>: [a] to contain elements <[]string>: [b]"
)


@pytest.mark.parametrize(
    ("suite", "message", "alone", "outcome"),
    [
        ("scheduling", UNUSED, True, Outcome.PASS),
        ("scheduling", UNUSED, False, Outcome.FAIL),
        ("drift", UNUSED, True, Outcome.FAIL),
        ("scheduling", UNUSED.removeprefix("after all specs of its container: "), True, Outcome.FAIL),
        (
            "scheduling",
            "after all specs of its container: Expected error: no reservation",
            True,
            Outcome.FAIL,
        ),
    ],
)
def test_only_the_check_of_all_labels_is_left_out_and_only_of_a_spec_that_ran_alone(
    suite, message, alone, outcome
):
    spec = Spec(suite, "Scheduling", "Scheduling MinValuesPolicyStrict Labels should work")
    assert explain_failure(spec, Result(Outcome.FAIL, 3.0, message), alone=alone).outcome == outcome


@given(st.lists(st.text("abc.-/", min_size=1), min_size=1, max_size=60))
def test_a_spec_that_ran_alone_may_leave_out_any_number_of_labels(labels):
    spec = Spec("scheduling", "Scheduling", "Scheduling MinValuesPolicyStrict Labels should work")
    message = (
        f"Expected <[]string>: [{' '.join(labels)}] to contain elements <[]string>: [{' '.join(labels)}]"
    )
    report = closing(message) | {"ContainerHierarchyTexts": [], "LeafNodeText": spec.text}
    result = read_result([{"SuiteDescription": "Scheduling", "SpecReports": [report]}], spec)
    assert explain_failure(spec, result, alone=True).outcome == Outcome.PASS


@pytest.mark.parametrize(
    ("suite", "kind", "message", "outcome"),
    [
        (
            "regression",
            "nodepool",
            "Expected <map[string]string | len:0>: nil to have karpenter.sh/nodepool-hash",
            "differs",
        ),
        (
            "drift",
            "ec2nodeclass",
            "Expected <map[string]string | len:1>: {} to have k/ec2nodeclass-hash",
            "differs",
        ),
        ("drift", "ec2nodeclass", "Expected <bool>: true to be false", "fail"),
        (
            "integration",
            "nodepool",
            "Expected <map[string]string | len:0>: nil to have x/nodepool-hash",
            "fail",
        ),
    ],
)
def test_hashes_on_pools_and_node_classes_are_a_difference_and_drift_is_none(suite, kind, message, outcome):
    spec = Spec(suite, "Drift", f"Drift should update the {kind}-hash annotation on the {kind} and nodeclaim")
    assert explain_failure(spec, Result(Outcome.FAIL, 3.0, message)).outcome == outcome


@given(st.floats(1, 2000))
def test_a_spec_has_the_time_that_it_is_given_or_needs(seconds):
    assert patience(SPEC, seconds) == seconds
    slow = Spec(
        "regression", "Regression", "Expiration should expire the node after the expiration is reached"
    )
    assert patience(slow, seconds) == max(seconds, dict(SLOW)["^(regression|disruption): Expiration "])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "price adjustment node overlay applied",
            "Expected <string>: c6g.large to equal <string>: m7a.8xlarge",
        ),
        (
            "price override node overlay applied",
            "Expected <string>: c6g.large to equal <string>: c7a.8xlarge",
        ),
        ("price override node overlay applied", "Expected <bool>: false to be true"),
        ("price override node overlay applied", "A suite timeout occurred"),
        ("a node that matches hugepages resource requests", "A suite timeout occurred"),
        ("a node that matches hugepages resource requests", "Expected error: no such kind"),
    ],
)
def test_node_overlays_have_their_effect_and_a_spec_of_them_that_fails_is_a_failure(text, message):
    spec = Spec("scheduling", "Scheduling", f"Node Overlay should provision {text}")
    assert explain_failure(spec, Result(Outcome.FAIL, 3.0, message)).outcome == Outcome.FAIL


@pytest.mark.parametrize(
    ("told", "short"),
    [
        (entry("timedout", message="A suite timeout occurred"), True),
        (entry("passed", "Images of another"), True),
        (entry("failed", message="no node"), False),
        (entry("passed"), False),
    ],
)
def test_what_the_time_of_all_did_not_reach_is_no_failure(told, short):
    document = [{"SuiteDescription": "Drift", "SpecReports": [told]}]
    assert is_cut_short(read_result(document, SPEC)) == short


def test_the_page_leaves_scale_tests_and_those_that_need_hardware_out_of_its_share() -> None:
    scale = Spec("scale", "Scale", "Provisioning should scale")
    gpu = Spec("integration", "Integration", "Extended Resources should deploy what requests nvidia.com/gpu")
    gap = Spec("ipv6", "IPv6", "should provision")
    specs = [SPEC, scale, gpu, gap]
    assert [is_beyond(spec) for spec in specs] == [False, True, True, False]
    left_out = {spec.name: Result(Outcome.NOT_HERE, 0.0, not_here(spec)) for spec in specs[1:]}
    assert "Of the 2 specs that are neither scale tests nor in need of real hardware, 1 can run here" in page(
        RELEASE, specs, left_out
    )


def test_results_of_the_two_controllers_are_kept_apart(tmp_path, monkeypatch):
    monkeypatch.setenv("NODELESS_CACHE", str(tmp_path))
    files = [results_file(RELEASE, controller) for controller in (NODELESS, KARPENTER)]
    assert len(set(files)) == 2
    assert len({page_of(RELEASE, controller) for controller in (NODELESS, KARPENTER)}) == 2
    write_results(files[0], {SPEC.name: Result(Outcome.PASS)})
    assert read_results(files[1]) == {}
    title = page(RELEASE, [SPEC], {}, KARPENTER).splitlines()[0]
    assert title == "# The real Karpenter v1.0.0 in the local environment"


def test_a_failure_is_told_by_the_differences_of_the_controller_that_was_judged(monkeypatch):
    failed = Result(Outcome.FAIL, 3.0, "expected 2 created nodes, had 4")
    spec = Spec("scheduling", "Scheduling", "x should provision a node for a deployment")
    assert explain_failure(spec, failed).outcome == Outcome.DIFFERS
    assert explain_failure(spec, failed, controller=KARPENTER).outcome == Outcome.FAIL
    known = Difference("^scheduling: ", "^expected 2", "it counts otherwise here")
    monkeypatch.setattr(reasons, "OF_KARPENTER", (known,))
    assert explain_failure(spec, failed, controller=KARPENTER).message == "it counts otherwise here"
