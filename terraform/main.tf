# What nodeless needs in AWS beside an EKS cluster: roles, interruption queue, access entry.
#
# Resources have the addresses of the submodule karpenter of terraform-aws-eks, so that a state which that one
# made goes on under this one. What policies say is in policies.tf.json, which is made from the Pulumi components.

data "aws_partition" "current" {
  count = var.create ? 1 : 0
}

data "aws_caller_identity" "current" {
  count = var.create ? 1 : 0
}

data "aws_region" "current" {
  count  = var.create ? 1 : 0
  region = var.region
}

locals {
  partition  = try(data.aws_partition.current[0].partition, "")
  dns_suffix = try(data.aws_partition.current[0].dns_suffix, "")
  account_id = try(data.aws_caller_identity.current[0].account_id, "")
  region     = try(data.aws_region.current[0].region, "")

  create_controller_role  = var.create && var.create_iam_role
  create_queue            = var.create && var.enable_spot_termination
  create_node_role        = var.create && var.create_node_iam_role
  create_instance_profile = var.create && var.create_instance_profile
  create_access_entry     = var.create && var.create_access_entry
  create_association = (
    local.create_controller_role && var.enable_pod_identity && var.create_pod_identity_association
  )

  # Names longer than their service allows end with a digest of the whole, so that two never meet.
  names = {
    for key, full in local.full_names : key => length(full.name) <= full.limit ? full.name :
    "${substr(full.name, 0, full.limit - 9)}-${substr(sha256(full.name), 0, 8)}"
  }

  node_role_name = coalesce(var.node_iam_role_name, local.names.node_role)
  node_role_arn  = local.create_node_role ? aws_iam_role.node[0].arn : coalesce(var.node_iam_role_arn, "none")
  queue_arn      = try(aws_sqs_queue.this[0].arn, "")
  rule_arns      = sort([for rule in aws_cloudwatch_event_rule.this : rule.arn])
  oidc_issuer    = try(regex("oidc-provider/(.+)$", var.irsa_oidc_provider_arn)[0], "")
}

################################################################################
# The controller's role
################################################################################

locals {
  trust_statements = concat(
    [for statement in local.pod_identity_statements : statement if var.enable_pod_identity],
    [for statement in local.irsa_statements : statement if var.enable_irsa],
  )

  # IAM allows 6,144 characters in a managed policy: long names of clusters take two. How many there are follows
  # from the name alone, which is known before anything is made.
  policies_by_size = [
    for size in local.controller_policy_sizes : size.policies
    if length(var.cluster_name) <= size.longest_cluster_name
  ]
  policy_sids = local.create_controller_role ? local.policies_by_size[0] : []

  policy_name = coalesce(var.iam_policy_name, local.names.controller_policy)
  # The number of a further policy stays when its name is shortened.
  policy_names = [
    for number in range(1, length(local.policy_sids) + 1) :
    number == 1 ? local.policy_name :
    length("${local.unshortened_policy_name}-${number}") <= 128 ? "${local.unshortened_policy_name}-${number}" :
    join("-", [
      substr(local.unshortened_policy_name, 0, 128 - 9 - length("-${number}")),
      substr(sha256(local.unshortened_policy_name), 0, 8),
      number,
    ])
  ]
  unshortened_policy_name = coalesce(var.iam_policy_name, local.full_names.controller_policy.name)
}

resource "aws_iam_role" "controller" {
  count = local.create_controller_role ? 1 : 0

  name        = var.iam_role_use_name_prefix ? null : coalesce(var.iam_role_name, local.names.controller_role)
  name_prefix = var.iam_role_use_name_prefix ? "${coalesce(var.iam_role_name, "KarpenterController")}-" : null
  path        = var.iam_role_path
  description = coalesce(var.iam_role_description, "Node provisioner of EKS cluster ${var.cluster_name}")

  assume_role_policy = jsonencode({
    Version   = local.policy_version
    Statement = local.trust_statements
  })
  max_session_duration  = var.iam_role_max_session_duration
  permissions_boundary  = var.iam_role_permissions_boundary_arn
  force_detach_policies = true

  tags = merge(var.tags, var.iam_role_tags)

  lifecycle {
    precondition {
      condition     = length(local.trust_statements) > 0
      error_message = "No pod could assume the controller's role; hint: set enable_pod_identity (pods on nodes) or enable_irsa with irsa_oidc_provider_arn (pods on Fargate and on nodes) to true."
    }
  }
}

resource "aws_iam_policy" "controller" {
  count = length(local.policy_sids)

  name        = var.iam_policy_use_name_prefix ? null : local.policy_names[count.index]
  name_prefix = var.iam_policy_use_name_prefix ? "${coalesce(var.iam_policy_name, "KarpenterController")}-" : null
  path        = var.iam_policy_path
  description = coalesce(
    var.iam_policy_description, "What the node provisioner of EKS cluster ${var.cluster_name} may do"
  )
  policy = jsonencode({
    Version = local.policy_version
    Statement = [
      for statement in local.controller_statements : statement
      if contains(local.policy_sids[count.index], statement.Sid)
      && (statement.Sid != "InterruptionQueue" || local.create_queue)
    ]
  })

  tags = var.tags
}

resource "aws_iam_role_policy_attachment" "controller" {
  count = length(local.policy_sids)

  role       = aws_iam_role.controller[0].name
  policy_arn = aws_iam_policy.controller[count.index].arn
}

resource "aws_iam_role_policy_attachment" "controller_additional" {
  for_each = { for name, arn in var.iam_role_policies : name => arn if local.create_controller_role }

  role       = aws_iam_role.controller[0].name
  policy_arn = each.value
}

resource "aws_eks_pod_identity_association" "karpenter" {
  count = local.create_association ? 1 : 0

  region          = var.region
  cluster_name    = var.cluster_name
  namespace       = var.namespace
  service_account = var.service_account
  role_arn        = aws_iam_role.controller[0].arn

  tags = var.tags
}

################################################################################
# Interruption queue
################################################################################

resource "aws_sqs_queue" "this" {
  count = local.create_queue ? 1 : 0

  region = var.region

  name                              = coalesce(var.queue_name, local.names.queue)
  message_retention_seconds         = local.queue_retention_seconds
  sqs_managed_sse_enabled           = var.queue_kms_master_key_id == null && var.queue_managed_sse_enabled ? true : null
  kms_master_key_id                 = var.queue_kms_master_key_id
  kms_data_key_reuse_period_seconds = var.queue_kms_data_key_reuse_period_seconds

  tags = var.tags
}

resource "aws_sqs_queue_policy" "this" {
  count = local.create_queue ? 1 : 0

  region    = var.region
  queue_url = aws_sqs_queue.this[0].url
  policy    = jsonencode(local.queue_policy)
}

resource "aws_cloudwatch_event_rule" "this" {
  for_each = { for key, rule in local.event_rules : key => rule if local.create_queue }

  region        = var.region
  name_prefix   = "${var.rule_name_prefix}${each.value.name}-"
  description   = each.value.description
  event_pattern = jsonencode(each.value.pattern)

  tags = var.tags
}

resource "aws_cloudwatch_event_target" "this" {
  for_each = { for key, rule in local.event_rules : key => rule if local.create_queue }

  region    = var.region
  rule      = aws_cloudwatch_event_rule.this[each.key].name
  target_id = local.event_target_id
  arn       = aws_sqs_queue.this[0].arn
}

################################################################################
# The nodes' role
################################################################################

locals {
  # Addresses in a state that the submodule karpenter made have the name of the policy.
  node_policies = merge(
    {
      for name, arn in local.node_managed_policies : name => arn
      if name != "AmazonEKS_CNI_Policy" || (var.node_iam_role_attach_cni_policy && var.cluster_ip_family == "ipv4")
    },
    {
      for name in ["AmazonEKS_CNI_IPv6_Policy"] : name => "arn:${local.partition}:iam::${local.account_id}:policy/${name}"
      if var.node_iam_role_attach_cni_policy && var.cluster_ip_family == "ipv6"
    },
  )
}

resource "aws_iam_role" "node" {
  count = local.create_node_role ? 1 : 0

  name        = var.node_iam_role_use_name_prefix ? null : local.node_role_name
  name_prefix = var.node_iam_role_use_name_prefix ? "${coalesce(var.node_iam_role_name, "Karpenter-${var.cluster_name}")}-" : null
  path        = var.node_iam_role_path
  description = coalesce(var.node_iam_role_description, "Nodes of EKS cluster ${var.cluster_name}")

  assume_role_policy    = jsonencode(local.node_trust)
  max_session_duration  = var.node_iam_role_max_session_duration
  permissions_boundary  = var.node_iam_role_permissions_boundary
  force_detach_policies = true

  tags = merge(var.tags, var.node_iam_role_tags)
}

resource "aws_iam_role_policy_attachment" "node" {
  for_each = { for name, arn in local.node_policies : name => arn if local.create_node_role }

  role       = aws_iam_role.node[0].name
  policy_arn = each.value
}

resource "aws_iam_role_policy_attachment" "node_additional" {
  for_each = { for name, arn in var.node_iam_role_additional_policies : name => arn if local.create_node_role }

  role       = aws_iam_role.node[0].name
  policy_arn = each.value
}

resource "aws_iam_instance_profile" "this" {
  count = local.create_instance_profile ? 1 : 0

  name        = var.node_iam_role_use_name_prefix ? null : coalesce(var.node_iam_role_name, local.names.instance_profile)
  name_prefix = var.node_iam_role_use_name_prefix ? "${coalesce(var.node_iam_role_name, "Karpenter-${var.cluster_name}")}-" : null
  path        = var.node_iam_role_path
  role        = local.create_node_role ? aws_iam_role.node[0].name : local.given_node_role_name

  tags = merge(var.tags, var.node_iam_role_tags)
}

locals {
  given_node_role_name = try(regex("[^/]+$", var.node_iam_role_arn), null)
}

resource "aws_eks_access_entry" "node" {
  count = local.create_access_entry ? 1 : 0

  region        = var.region
  cluster_name  = var.cluster_name
  principal_arn = local.node_role_arn
  type          = var.access_entry_type

  tags = var.tags
}
