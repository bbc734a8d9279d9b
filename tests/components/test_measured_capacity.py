"""The controller may keep what it measured, and change no other ConfigMap."""

from nodeless.controllers.nodeclaim.measured_capacity import MEASURED_NAME
from pulumi_nodeless.rbac import namespace_rules


def test_measured_capacity_may_be_made_and_kept_and_no_other_map_changed() -> None:
    rules = [rule for rule in namespace_rules("certificate") if "configmaps" in rule.resources]
    changing = [rule for rule in rules if "patch" in rule.verbs]
    assert any("create" in rule.verbs for rule in rules)
    assert [MEASURED_NAME in rule.names for rule in changing] == [True]
