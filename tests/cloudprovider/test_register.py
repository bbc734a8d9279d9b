"""The rows of the AWS provider's acceptance, and where each is shown.

Of docs/acceptance/aws.md: the provider as a whole (AWS-16), the words with which EC2 refuses a launch
(AWS-7), and the defects of Karpenter v0.27.3 that must not be here (AWS-15). Each row names the test
that shows it by the end of the test's identifier.
"""

from pathlib import Path

import pytest

from tests.listing import listed_tests

ROOT = Path(__file__).parents[2]
UNREMARKABLE = (
    *("t2.micro", "t3.medium", "t3a.large", "c5.xlarge", "r5.24xlarge", "inf1.24xlarge", "trn1.32xlarge"),
)
NOT_FOUND_CODES = ("InvalidInstanceID.NotFound", "InvalidInstanceID.Malformed")
QUEUE_CODES = ("AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist")
PARTITIONS = ("aws", "aws-cn", "aws-us-gov")
FOLDERS = (
    *("tests/acceptance", "tests/webhook", "tests/controllers", "tests/cloudprovider", "tests/components"),
    *("tests/launch", "tests/nodeclaim", "tests/scheduling"),
)
ORACLE = (
    *("t1.micro", "t2.micro", "t3.nano", "t3.medium", "t3a.large", "t4g.small", "m6g.medium", "m5.large"),
    *("c5.xlarge", "m5.4xlarge", "r5.24xlarge", "m5.metal", "m6i.32xlarge", "u-6tb1.112xlarge", "i3.large"),
    *("f1.2xlarge", "g4dn.xlarge", "g5.48xlarge", "p4d.24xlarge", "g4ad.xlarge", "dl1.24xlarge"),
    *("inf1.xlarge", "inf1.24xlarge", "trn1.32xlarge"),
)
#: Types of the table beside which it names labels; Trainium's are a known defect of its.
NOTABLE = tuple(name for name in ORACLE if name not in UNREMARKABLE)
CAPACITY_CODES = (
    *("InsufficientInstanceCapacity", "MaxSpotInstanceCountExceeded", "VcpuLimitExceeded"),
    *("UnfulfillableCapacity", "Unsupported", "MaxFleetCountExceeded", "ReservationCapacityExceeded"),
    *("InsufficientFreeAddressesInSubnet", "AuthFailure.ServiceLinkedRoleCreationNotPermitted"),
)
OTHER_CODES = {
    "InvalidLaunchTemplateName.NotFoundException": "LaunchTemplateNotFound",
    "InvalidLaunchTemplateId.NotFound": "LaunchTemplateNotFound",
    "InvalidCapacityReservationId.NotFound": "CapacityReservationNotFound",
    "InvalidAMIID.NotFound": "AMINotFound",
    "InvalidAMIID.Malformed": "InvalidAMIID",
    "InvalidSubnetID.NotFound": "SubnetNotFound",
    "InvalidGroup.NotFound": "SecurityGroupNotFound",
    "InvalidUserData.Malformed": "UserDataInvalid",
    "UnauthorizedOperation": "Unauthorized",
    "RequestLimitExceeded": "RequestLimitExceeded",
    "PendingVerification": "AccountPendingVerification",
    "Throttling": "RequestLimitExceeded",
    "InternalError": "InternalError",
    "MaxFleetCountExceeded, reason": "FleetQuotaExceeded",
    "MaxSpotInstanceCountExceeded, reason": "SpotQuotaExceeded",
    "VcpuLimitExceeded, reason": "VCPULimitExceeded",
    "InsufficientFreeAddressesInSubnet, reason": "InsufficientFreeAddressesInSubnet",
    "AuthFailure.ServiceLinkedRoleCreationNotPermitted, reason": "SpotSLRCreationFailed",
}
WORDED_REASONS = (
    *("SecurityGroupSubnetVPCMismatch", "AMIAuthorizationFailure", "UserDataSizeLimitExceeded"),
    "FreeTierIneligible",
)

ROWS = {
    **{f"AWS-16.1 {name}": f"test_allocatable_is_that_of_the_published_table[{name}]" for name in ORACLE},
    **{
        f"AWS-16.1 {name}, labels": f"test_labels_are_those_of_the_published_table[{name}]"
        for name in NOTABLE
    },
    **{
        f"AWS-16.1 {name}, interfaces of pods": "test_pods_may_have_as_many_interfaces_of_their_own_as_the_"
        f"published_table_says[{name}]"
        for name in ORACLE
    },
    "AWS-16.1 every record": "test_every_record_of_ec2_can_be_read",
    "AWS-16.2 sold out, and the way back": "test_aws_16_2_a_sold_out_offering_is_off_for_three_minutes_from_"
    "its_last_mark",
    "AWS-16.2 unknown price": "test_aws_16_2_what_has_no_price_stands_in_the_list_and_is_not_available",
    "AWS-16.2 usage classes": "test_aws_16_2_a_usage_class_that_cannot_be_bought_is_passed_over",
    "AWS-16.2 first spot price": "test_spot_costs_as_much_as_on_demand_until_its_price_is_known",
    "AWS-16.3 filters": "test_aws_16_3_the_filters_of_both_sweeps_to_the_letter",
    "AWS-16.3 CNY, zero, no number": "test_a_price_list_is_read_and_useless_prices_are_passed_over",
    "AWS-16.3 failure, on-demand": "test_aws_16_3_a_refresh_that_fails_keeps_the_prices_that_are_"
    "there[GetProducts]",
    "AWS-16.3 failure, spot": "test_aws_16_3_a_refresh_that_fails_keeps_the_prices_that_are_there"
    "[DescribeSpotPriceHistory]",
    **{
        f"AWS-16.4 {row}": f"test_aws_16_4_each_entry_of_a_selector_is_its_filter[{row}]"
        for row in ("ids", "any-value", "values", "nothing")
    },
    "AWS-16.4 three launches": "test_aws_16_4_three_launches_take_turns_among_a_zones_subnets_by_what_is_"
    "left",
    "AWS-16.4 give-back": "test_aws_16_4_a_launch_that_fails_takes_no_addresses",
    **{
        f"AWS-16.5 parameters, {family}": f"test_aws_16_5_parameters_of_a_family[{family}]"
        for family in ("AL2", "Bottlerocket", "Ubuntu", "Custom")
    },
    **{
        f"AWS-16.5 selector, {key}": f"test_aws_5_2_each_key_of_an_image_selector_is_its_filter[{key}]"
        for key in ("aws-ids", "aws::ids", "aws::name", "aws::owners", "a-tag-is-one-value", "all-match")
    },
    "AWS-16.5 tags of images": "test_tags_of_an_image_with_well_known_keys_limit_its_types",
    "AWS-16.5 order, twins, arm64 GPUs": "test_aws_16_5_images_are_newest_first_one_of_each_kind_and_"
    "types_without_one_are_dropped",
    "AWS-16.5 Custom": "test_aws_16_5_a_custom_class_uses_the_images_that_it_selects_alone",
    **{
        f"AWS-16.6 {name}": f"test_to_the_byte[{name}]"
        for name in (
            *("al2-plain", "al2-custom-script", "al2-custom-mime", "al2-everything", "ubuntu-everything"),
            *("al2023-plain", "al2023-custom-config", "al2023-custom-mime", "al2023-everything"),
            *("bottlerocket-plain", "bottlerocket-everything", "windows2022-everything"),
        )
    },
    "AWS-16.6 Bottlerocket merge": "test_bottlerocket_keeps_the_users_tables_and_only_known_settings_of_"
    "its_own",
    "AWS-16.6 EC2's limit": "test_user_data_that_ec2_would_not_take_is_told_of_the_node_class",
    "AWS-16.7 name": "test_a_template_is_named_by_its_content",
    "AWS-16.7 hit, found": "test_aws_16_7_a_template_that_is_known_costs_no_call_and_one_that_is_there_is_"
    "used",
    "AWS-16.7 missing": "test_a_vanished_launch_template_is_made_again",
    "AWS-16.7 eviction": "test_long_unused_launch_templates_are_swept",
    "AWS-16.7 use again, new leader": "test_aws_16_7_a_new_leader_sweeps_what_nobody_used_since_and_keeps_"
    "what_was_used_again",
    "AWS-16.8 shape": "test_a_request_lists_each_type_in_each_zone_with_a_subnet",
    "AWS-16.8 mixed": "test_spot_when_allowed_and_to_be_had",
    "AWS-16.8 exotic": "test_accelerators_and_bare_metal_only_for_those_who_need_them",
    "AWS-16.8 dear spot": "test_spot_dearer_than_the_cheapest_on_demand_is_dropped",
    "AWS-16.8 sixty": "test_at_most_sixty",
    "AWS-16.8 missing template": "test_a_template_that_ec2_does_not_see_yet_is_asked_for_once_more",
    "AWS-16.8 partial results": "test_three_claims_and_two_instances_leave_one_claim_without",
    "AWS-16.8 errors beside success": "test_what_one_zone_lacks_another_gives_and_the_lack_is_remembered",
    **{
        f"AWS-16.9 {kind}": f"test_an_event_of_ec2_names_its_instance[{event}-{number}-{kind}]"
        for event, number, kind in (
            ("EC2 Spot Instance Interruption Warning", "detail0", "SpotInterruptionKind"),
            ("EC2 Instance Rebalance Recommendation", "detail1", "RebalanceRecommendationKind"),
        )
    },
    "AWS-16.9 scheduled change": "test_a_health_event_names_every_affected_instance_once",
    "AWS-16.9 state change": "test_a_state_that_ends_an_instance_counts_in_any_case_of_letters[terminated]",
    "AWS-16.9 foreign instance": "test_an_instance_of_somebody_else_is_nobodys_business",
    "AWS-16.9 bad JSON": "test_what_cannot_be_read_says_why[{-not JSON]",
    "AWS-16.9 unknown type": "test_messages_that_are_none_of_ours_are_understood_and_mean_nothing[changes0]",
    "AWS-16.9 instance state": "test_a_warning_ends_the_claim_and_tells_node_and_claim"
    "[StateChangeKind-stopping-InstanceStopping]",
    "AWS-16.9 handler failure": "test_aws_16_9_a_message_whose_handling_fails_stays_and_comes_again",
    "AWS-16.10 image changed": "test_what_the_cloud_selects_now_is_compared_with_the_instance"
    "[instance0-AMIDrift]",
    "AWS-16.10 unchanged": "test_a_node_that_is_as_it_would_be_made_today_has_not_drifted",
    "AWS-16.10 nothing known": "test_nothing_is_concluded_from_a_cloud_that_gives_no_answer",
    "AWS-16.10 template pinned": "test_aws_16_10_what_a_launch_template_of_the_users_decides_is_no_drift",
    "AWS-16.10 instance gone": "test_aws_16_10_an_instance_that_is_gone_has_not_drifted",
    **{
        f"AWS-16.11 {policy}, {partition}": "test_each_controller_policy_fits_into_managed_policies_with_the_"
        f"longest_names_of_every_partition[{partition}-longest-{policy}]"
        for partition in PARTITIONS
        for policy in ("article", "guide", "scoped")
    },
    "AWS-16.11 article": "test_the_articles_policy_is_to_the_letter",
    "AWS-16.11 scoped": "test_the_scoped_policy_makes_nothing_without_tags_and_tags_nothing_that_stands",
    "AWS-16.11 calls": "test_both_policies_grant_every_call_and_grant_nothing_that_is_never_called",
    "AWS-16.12 security group": "test_exactly_one_security_group_can_be_discovered",
    "AWS-16.12 private subnets": "test_nodes_and_fargate_live_in_private_subnets_only",
    "AWS-16.12 pools go first": "test_pools_go_before_all_that_the_controller_needs"
    "[kubernetes:karpenter.sh/v1alpha5:Provisioner]",
    "AWS-16.12 definitions before templates": "test_pools_go_before_all_that_the_controller_needs"
    "[kubernetes:karpenter.k8s.aws/v1alpha1:AWSNodeTemplate]",
    "AWS-16.12 profile before CoreDNS": "test_fargate_takes_controller_and_dns_but_no_workloads",
    "AWS-16.12 no node group": "test_no_node_comes_from_a_group",
    **{f"AWS-7.4 {code}": f"also_beside_an_instance[{code}]" for code in CAPACITY_CODES},
    **{
        f"AWS-7.4 {code}": "test_aws_7_4_each_other_code_has_a_reason_and_says_what_to_do"
        f"[{code.partition(',')[0]}--{reason}]"
        for code, reason in OTHER_CODES.items()
    },
    **{
        f"AWS-7.4 {reason}": "test_aws_7_4_where_a_code_means_many_things_the_message_decides_what_to_"
        f"do[{reason}]"
        for reason in WORDED_REASONS
    },
    "AWS-2.8 marks of placement groups": "test_aws_2_8_what_a_partition_cannot_hold_other_partitions_and_"
    "nodes_elsewhere_may",
    "AWS-7.3 windows": "test_aws_7_3_who_gets_no_answer_is_told_so_and_the_others_are_not_disturbed",
    "AWS-10.3 two policies": "test_a_scoped_policy_too_long_for_a_managed_policy_becomes_two_of_one_"
    "role[irsa]",
    "AWS-13 parameters": "test_aws_13_each_call_asks_for_what_it_needs_and_in_pages_where_ec2_has_some",
    "AWS-14.3 batcher": "test_aws_14_3_every_caller_gets_exactly_one_answer_its_own_within_the_longest_time",
    "AWS-7.4 permission boundary, service control policy, identity policy": "test_aws_7_4_three_ways_to_"
    "lack_a_permission_have_three_ways_out",
    "AWS-7.4 instance profile not known yet": "test_aws_7_4_each_other_code_has_a_reason_and_says_what_to_do"
    "[InvalidParameterValue-iamInstanceProfile.name is invalid-InstanceProfileNameInvalid]",
    **{
        f"AWS-7.4 {code}": f"test_aws_7_6_an_instance_that_ec2_does_not_know_counts_as_ended[{code}]"
        for code in NOT_FOUND_CODES
    },
    **{
        f"AWS-7.4 {code}": "test_aws_7_4_both_words_for_a_missing_queue_are_known_and_it_is_looked_up_again"
        f"[GetQueueUrl-{code}]"
        for code in QUEUE_CODES
    },
    "AWS-7.4 ResourceNotFoundException": "test_a_missing_cluster_is_named",
    "AWS-7.4 NoSuchEntity": "test_a_refusal_is_a_fault_of_the_node_class_until_it_is_lifted"
    "[AddRoleToInstanceProfile-NoSuchEntity-RoleNotFound-correct spec.role]",
    "AWS-7.4 ParameterNotFound": "test_aws_7_4_a_missing_parameter_of_several_is_passed_over_and_of_all_"
    "is_told",
    "AWS-7.4 template missing twice": "test_aws_7_4_a_template_that_stays_missing_fails_the_launch_after_"
    "some_tries",
    "AWS-7.6 OperationNotPermitted": "test_aws_7_6_termination_protection_is_told_until_it_is_off",
    "AWS-7.4 call refused": "test_a_refused_call_is_told_and_the_next_one_succeeds"
    "[UnauthorizedOperation-403-CredentialsRefused-Unauthorized]",
    "AWS-7.4 credentials expired": "test_credentials_that_expire_are_told_and_work_goes_on_with_new_ones",
    "AWS-7.4 reservation is full": "test_aws_7_4_a_reservation_that_others_filled_is_left_alone_and_the_"
    "way_back",
    "AWS-15.1 surplus": "test_aws_15_1_instances_that_nobody_asked_for_are_named_so_that_they_are_ended",
    "AWS-15.1 no claim": "test_mc_10_an_instance_that_no_claim_knows_is_terminated_and_its_node_deleted",
    "AWS-15.1 answer lost": "test_a_launch_whose_answer_never_comes_is_found_when_it_is_asked_for_again",
    "AWS-15.2 instances": "test_aws_15_2_every_page_of_instances_is_read",
    "AWS-15.2 subnets, groups": "test_aws_15_2_every_page_of_subnets_and_security_groups_is_read",
    "AWS-15.3": "test_aws_15_3_no_tag_of_the_user_takes_an_instance_away_from_its_pool",
    "AWS-15.4 snapshot, error without overrides": "test_aws_15_4_what_crashed_has_an_answer",
    "AWS-15.4 percentage": "test_aws_15_4_a_percentage_that_is_none_is_refused_at_its_"
    "path[x%-memory.available]",
    "AWS-15.5 owners": "test_aws_15_5_selectors_that_differ_in_owners_alone_do_not_share_an_answer",
    "AWS-15.5 settings": "test_aws_15_5_another_disk_acts_at_once",
    "AWS-15.6": "test_aws_15_6_what_was_sold_out_is_offered_again_when_its_time_is_over",
    "AWS-15.7": "test_aws_15_7_a_type_that_the_price_list_leaves_out_keeps_its_price",
    **{
        f"AWS-15.8 arguments, {family}": f"test_aws_15_8_the_order_of_settings_does_not_matter[{family}]"
        for family in ("AL2", "AL2023", "Bottlerocket")
    },
    "AWS-15.8 security groups": "test_aws_15_8_the_order_of_security_groups_does_not_matter",
    "AWS-15.9": "test_aws_15_9_an_isolated_vpc_has_spot_prices_and_asks_for_no_others",
    "AWS-15.10 Trainium": "test_aws_15_10_neuron_devices_are_those_of_aws[trn1.2xlarge-member0-1]",
    "AWS-15.10 Qualcomm": "test_aws_15_10_neuron_devices_are_those_of_aws[dl2q.24xlarge-member2-0]",
    "AWS-15.11": "test_aws_15_11_a_request_for_many_leaves_what_it_is_made_of_alone",
    "AWS-15.12": "test_9_2_a_label_counts_too_since_a_default_could_only_contradict_it",
    "AWS-15.13": "test_aws_15_13_a_kubelet_that_registers_first_gets_every_label_of_its_instance",
    "AWS-15.14": "test_aws_15_14_an_answer_without_instances_and_reasons_is_no_lack_of_capacity",
}


@pytest.fixture(scope="module")
def tests(pytestconfig: pytest.Config) -> frozenset[str]:
    """Every test there is."""
    return frozenset(listed_tests(FOLDERS, pytestconfig))


def test_every_row_has_its_test(tests: frozenset[str]) -> None:
    ends = tuple(ROWS.values())
    shown = {end for end in ends for name in tests if name.endswith(end)}
    assert {row: end for row, end in ROWS.items() if end not in shown} == {}
