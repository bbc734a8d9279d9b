"""The rows of the acceptance of API and admission, and where each is shown.

A row is a rule or a fact about Karpenter v0.27.3 or v1 that users rely on
(docs/acceptance/admission.md). Its identifier is in the name of a test, and but for the few that need no
cluster that test runs on the real API server.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.listing import listed_tests

ROOT = Path(__file__).parents[2]
FOLDERS = ("tests/acceptance", "tests/webhook", "tests/api", "tests/controllers", "tests/components")

#: Rules: the identifier is part of a test's name, and the test runs on the API server with the webhook.
RULES = [
    *("P-0a", "P-0b", "P-0c", *(f"P-{number}" for number in range(1, 31))),
    *("A-1", "A-2"),
    *(f"N-{number}" for number in range(21)),
    *("2.3", "3.1", "3.2", "3.3", "3.7", "3.8", "7.1", "7.2", "7.4"),
    *(f"8.1-{number}" for number in (1, 2, 3, 4, 5, 6, 7, 8)),
]

OLD_CHARTS = "test_8_3_8_4_values_of_old_charts_are_ignored_aloud_and_the_endpoint_is_found_out"
#: Samples that users start from (8.2 to 8.4) and whole surfaces (9), with the end of a test's identifier.
ROWS = {
    "3.7 providerRef to nothing": "test_what_the_rules_allow_is_accepted[3.7 dangling reference]",
    "3.7 deletion while referred to": "test_3_7_a_template_that_is_referred_to_can_be_deleted_and_nodes_are_"
    "no_reason_to_refuse_an_update",
    "3.8 pods": "test_3_8_pods_that_no_pool_may_serve_get_no_node_and_keep_none_from_others",
    "3.8 no webhook": "test_3_8_no_webhook_is_asked_about_pods",
    "8.2 cluster.yaml": "test_8_2_a_key_that_is_given_twice_is_a_fault_as_kubectl_has_it",
    "8.2 helm upgrade, endpoint in quotes": "test_8_2_an_endpoint_in_literal_quotes_is_named_and_"
    "the_cluster_s_own_holds",
    "8.2 helm upgrade, values of old charts": OLD_CHARTS,
    "8.2 helm upgrade, kinds not installed": "test_a_kind_that_is_not_served_stops_nothing",
    "8.2 kubectl create deployment": "test_8_2_ten_replicas_without_requests_need_no_more_than_one_node",
    "8.2 kubectl logs": "test_8_2_logs_are_found_by_the_charts_label",
    "8.2 pods are not bound by the controller": "test_8_2_the_controller_may_not_bind_pods",
    "8.3 Provisioner": "test_8_3_the_default_pool_gets_the_defaults_of_v0_27_3",
    "8.3 Provisioner, nothing removes nodes": "test_a_doubt_is_a_warning[8.3 nothing ever removes a node]",
    "8.3 AWSNodeTemplate": "test_a_doubt_is_a_warning[8.3 placeholder in a selector]",
    "8.3 values and queue": OLD_CHARTS,
    "8.3 definitions": "test_1_1_names_and_subresources[Provisioner]",
    "8.3 Fargate profile": "test_fargate_takes_controller_and_dns_but_no_workloads",
    "8.4 selector value": "test_a_defect_is_refused_with_what_was_meant[8.4 empty selector value]",
    "8.4 consolidation": "test_a_defect_is_refused_with_what_was_meant[8.4 consolidation with "
    "ttlSecondsAfterEmpty]",
    "8.4 taint value": "test_a_defect_is_refused_with_what_was_meant[8.4 taint value true]",
    "8.4 clusterEndpoint": OLD_CHARTS,
    "8.4 securityGroupSelector": "test_what_is_right_is_accepted[8.4 group selector not always needed]",
    "8.4 hop limit": "test_the_hop_limit_is_two_only_when_the_whole_block_is_absent[8.4 block given]",
    "8.4 voluntary-disruption": "test_8_4_a_users_own_mark_of_drift_ends_no_node",
    "8.4 spot unavailability": "test_8_4_an_offering_that_ran_dry_is_left_alone_for_three_minutes",
    "9.1 a positive and a negative case of each rule": "test_every_row_of_the_tables_has_a_case",
    "9.2 idempotence": "test_3_2_applying_again_what_was_defaulted_changes_nothing",
    "9.2 alias keys": "test_an_alias_counts_as_its_key_and_stays_as_it_was_written[9.2 alias]",
    "9.2 labels": "test_9_2_a_label_counts_too_since_a_default_could_only_contradict_it",
    "9.2 update": "test_9_2_an_update_that_takes_a_default_away_gets_it_again",
    "9.3 create": "test_a_review_is_answered_to_the_letter[9.3 create-refused]",
    "9.3 update": "test_a_review_is_answered_to_the_letter[9.3 update-refused]",
    "9.3 status update": "test_a_review_is_answered_to_the_letter[9.3 status-update]",
    "9.3 delete": "test_a_review_is_answered_to_the_letter[9.3 delete]",
    "9.3 unknown kind": "test_a_review_is_answered_to_the_letter[9.3 unknown-kind]",
    "9.3 content type": "test_9_3_another_content_type_is_not_read[text/plain]",
    "9.3 strict decoding": "test_a_review_is_answered_to_the_letter[9.3 unknown-member-of-the-provider]",
    "9.4 keys": "test_a_key_of_the_settings_missing_good_empty_or_malformed[9.4 batchMaxDuration]",
    "9.4 unknown key": "test_9_4_an_unknown_key_is_taken_with_a_warning_that_names_the_one_that_was_meant",
    "9.4 tags null": "test_tags_as_the_chart_flattens_them[9.4 tags null]",
    "9.4 tags {}": "test_tags_as_the_chart_flattens_them[9.4 tags {}]",
    "9.4 tags map": "test_tags_as_the_chart_flattens_them[9.4 tags map]",
    "9.5 names and labels": "test_a_family_has_karpenters_name_type_and_labels[karpenter_nodes_created]",
    "9.5 no _total": "test_counters_of_v0_27_bear_no_total",
    "9.5 node labels": "test_the_labels_of_a_nodes_series_are_four_and_one_for_each_well_known_label",
    "9.6 Deployment (6.1)": "test_9_6_the_deployment_is_the_charts",
    "9.6 RBAC (6.2)": "test_9_6_the_controller_has_the_charts_rights_but_for_what_differs_on_purpose",
    "9.6 webhooks (6.3)": "test_9_6_the_webhook_configurations_are_the_charts[validating core]",
    "9.7 each rule": "test_every_row_of_the_conversion_has_a_test",
    "9.7 dry run": "test_a_legal_object_is_converted_whole_or_the_loss_is_listed[P-3 off]",
}
#: Rows whose subject is no object of a cluster: a file, what a component renders, what is counted.
ELSEWHERE = re.compile(r"8\.2 (cluster|kubectl logs|pods)|8\.3 Fargate|9\.[1567]")


@pytest.fixture(scope="module")
def tests(pytestconfig: pytest.Config) -> dict[str, bool]:
    """Every test there is, and whether it runs on the API server."""
    return listed_tests(FOLDERS, pytestconfig)


def test_every_rule_is_in_the_name_of_a_test_on_the_api_server(tests: dict[str, bool]) -> None:
    names = " ".join(name.replace("_", ".") for name, on_the_api_server in tests.items() if on_the_api_server)

    def named(rule: str) -> bool:
        pattern = rule.replace(".", r"\.").replace("-", "[-.]")
        return re.search(rf"(?<!\w)(?<!\d\.){pattern}(?!\d)", names) is not None

    assert [rule for rule in RULES if not named(rule)] == []


@pytest.mark.parametrize("row", ROWS)
def test_a_row_has_its_test(tests: dict[str, bool], row: str) -> None:
    found = [name for name in tests if name.endswith(f"::{ROWS[row]}")]

    assert found, ROWS[row]
    assert ELSEWHERE.match(row) or any(tests[name] for name in found)
