"""The module inside a configuration that makes the cluster's other parts in the same run."""

from __future__ import annotations

from pathlib import Path

import pytest

from localenv.opentofu import Tofu, TofuFailed
from tests.terraform.conftest import MODULE, Cloud, actions

pytestmark = pytest.mark.cluster

#: What another module would give: nothing of it is known before it is made.
LATER = """
resource "terraform_data" "later" {{
  input = {{
    issuer = "{issuer}"
    policy = "arn:aws:iam::aws:policy/CloudWatchAgentServerPolicy"
    role   = "arn:aws:iam::{account}:role/cluster"
    name   = "demo"
  }}
}}

module "nodeless" {{
  source = "./nodeless"

  {arguments}

  depends_on = [terraform_data.later]
}}
"""
CASES = {
    "issuer-and-policies": """
      cluster_name                      = "demo"
      enable_irsa                       = true
      irsa_oidc_provider_arn            = terraform_data.later.output.issuer
      iam_role_policies                 = { logs = terraform_data.later.output.policy }
      node_iam_role_additional_policies = { logs = terraform_data.later.output.policy }
      create_instance_profile           = true
      iam_role_name                     = "later"
      node_iam_role_name                = "later-nodes"
      iam_policy_name                   = "later"
      queue_name                        = "later"
      service_account                   = "later"
    """,
    "role": """
      cluster_name            = "demo"
      create_node_iam_role    = false
      node_iam_role_arn       = terraform_data.later.output.role
      create_instance_profile = true
      iam_role_name           = "later"
      iam_policy_name         = "later"
      queue_name              = "later"
      service_account         = "later"
    """,
}


def root(folder: Path, cloud: Cloud, arguments: str) -> Tofu:
    folder.mkdir()
    (folder / "nodeless").symlink_to(MODULE)
    text = LATER.format(issuer=cloud.issuer_arn, account=cloud.account, arguments=arguments.strip())
    (folder / "main.tf").write_text(text)
    return Tofu(folder, folder / "tofu", cloud.aws.environment())


@pytest.mark.parametrize("case", CASES)
def test_what_is_known_later_can_be_given(cloud: Cloud, tmp_path: Path, case: str) -> None:
    tofu = root(tmp_path / "root", cloud, CASES[case])
    tofu.apply({}, state="later")
    assert actions(tofu.plan({}, state="later")) == {}
    tofu.destroy({}, state="later")


def test_the_clusters_name_has_to_be_known(cloud: Cloud, tmp_path: Path) -> None:
    """As the guide says: the number of policies follows from it."""
    tofu = root(tmp_path / "root", cloud, "cluster_name = terraform_data.later.output.name")
    with pytest.raises(TofuFailed, match="Invalid count argument"):
        tofu.plan({})
