################################################################################
# General
################################################################################

variable "create" {
  description = "Whether to create any resources"
  type        = bool
  default     = true
  nullable    = false
}

variable "cluster_name" {
  description = "Name of the existing EKS cluster. It is part of resource names, trust policies and policy conditions, so it must be known at plan time"
  type        = string
  default     = ""
  nullable    = false

  validation {
    condition     = !var.create || can(regex("^[0-9A-Za-z][0-9A-Za-z_-]{0,99}$", var.cluster_name))
    error_message = "cluster_name is \"${var.cluster_name}\", which is not a valid EKS cluster name (a letter or digit, then up to 99 letters, digits, - and _); hint: set it to the name of the cluster, for example module.eks.cluster_name."
  }
}

variable "region" {
  description = "Region of the cluster and the queue. Default: the region of the provider"
  type        = string
  default     = null
}

variable "tags" {
  description = "Tags of all resources of this module and, by helm_values, of everything that the controller creates in AWS"
  type        = map(string)
  default     = {}
  nullable    = false

  validation {
    condition     = alltrue([for key in keys(var.tags) : !startswith(lower(key), "aws:")])
    error_message = "tags has keys that begin with aws:, a prefix that AWS reserves; hint: use other keys."
  }

  validation {
    condition = alltrue([
      for key in keys(var.tags) : !can(regex("^(karpenter.sh/|karpenter.k8s.aws/|nodeless.dev/|kubernetes.io/cluster/|kubernetes.io/role/|eks:)", key))
    ])
    error_message = "tags has a key by which Kubernetes, EKS or the controller selects resources (${join(", ", keys(var.tags))}); hint: set that tag only on the resources that should be selected."
  }
}

################################################################################
# The controller's role
################################################################################

variable "create_iam_role" {
  description = "Whether to create the controller's role and its policy"
  type        = bool
  default     = true
  nullable    = false
}

variable "iam_role_name" {
  description = "Name of the controller's role. Default: KarpenterControllerRole-CLUSTER"
  type        = string
  default     = null

  validation {
    condition     = var.iam_role_name == null || can(regex("^[0-9A-Za-z+=,.@_-]{1,64}$", var.iam_role_name))
    error_message = "iam_role_name is not a valid role name (1 to 64 letters, digits and +=,.@_-); hint: shorten or omit it."
  }
}

variable "iam_role_use_name_prefix" {
  description = "Whether iam_role_name (default then: KarpenterController) is used as a prefix"
  type        = bool
  default     = false
  nullable    = false

  validation {
    condition     = !var.iam_role_use_name_prefix || length(coalesce(var.iam_role_name, "KarpenterController")) <= 37
    error_message = "iam_role_name is longer than 37 characters, so there is no room for the generated suffix; hint: shorten it, or set iam_role_use_name_prefix to false."
  }
}

variable "iam_role_path" {
  description = "Path of the controller's role"
  type        = string
  default     = "/"
  nullable    = false

  validation {
    condition     = can(regex("^/([!-~]+/)?$", var.iam_role_path))
    error_message = "iam_role_path must begin and end with /; hint: for example /eks/, or / for no path."
  }
}

variable "iam_role_description" {
  description = "Description of the controller's role"
  type        = string
  default     = null
}

variable "iam_role_max_session_duration" {
  description = "Maximum session duration of the controller's role, in seconds"
  type        = number
  default     = null

  validation {
    condition     = var.iam_role_max_session_duration == null ? true : var.iam_role_max_session_duration >= 3600 && var.iam_role_max_session_duration <= 43200
    error_message = "iam_role_max_session_duration is outside the range that IAM allows; hint: use 3600 to 43200 seconds."
  }
}

variable "iam_role_permissions_boundary_arn" {
  description = "ARN of the permissions boundary of the controller's role"
  type        = string
  default     = null

  validation {
    condition     = var.iam_role_permissions_boundary_arn == null || can(regex("^arn:[a-z-]+:iam::([0-9]{12}|aws):policy/.+$", var.iam_role_permissions_boundary_arn))
    error_message = "iam_role_permissions_boundary_arn is not the ARN of a policy; hint: it looks like arn:aws:iam::ACCOUNT:policy/NAME."
  }
}

variable "iam_role_tags" {
  description = "Additional tags of the controller's role"
  type        = map(string)
  default     = {}
  nullable    = false
}

variable "iam_policy_name" {
  description = "Name of the controller's policy. Default: KarpenterControllerPolicy-CLUSTER. A second policy, which long cluster names require, ends with -2"
  type        = string
  default     = null

  validation {
    condition     = var.iam_policy_name == null || can(regex("^[0-9A-Za-z+=,.@_-]{1,128}$", var.iam_policy_name))
    error_message = "iam_policy_name is not a valid policy name (1 to 128 letters, digits and +=,.@_-); hint: shorten or omit it."
  }
}

variable "iam_policy_use_name_prefix" {
  description = "Whether iam_policy_name (default then: KarpenterController) is used as a prefix"
  type        = bool
  default     = false
  nullable    = false

  validation {
    condition     = !var.iam_policy_use_name_prefix || length(coalesce(var.iam_policy_name, "KarpenterController")) <= 101
    error_message = "iam_policy_name is longer than 101 characters, so there is no room for the generated suffix; hint: shorten it, or set iam_policy_use_name_prefix to false."
  }
}

variable "iam_policy_path" {
  description = "Path of the controller's policy"
  type        = string
  default     = "/"
  nullable    = false

  validation {
    condition     = can(regex("^/([!-~]+/)?$", var.iam_policy_path))
    error_message = "iam_policy_path must begin and end with /; hint: for example /eks/, or / for no path."
  }
}

variable "iam_policy_description" {
  description = "Description of the controller's policy. AWS cannot change it, so a new one replaces the policy"
  type        = string
  default     = null
}

variable "iam_role_policies" {
  description = "Additional policies of the controller's role: a map of static names to ARNs. Use it to allow ssm:GetParameter on your own parameters, for example"
  type        = map(string)
  default     = {}
  nullable    = false
}

################################################################################
# How the controller's pods get the role
################################################################################

variable "enable_pod_identity" {
  description = "Whether the role trusts EKS Pod Identity. It needs the add-on eks-pod-identity-agent and pods on nodes, since Fargate has no agent"
  type        = bool
  default     = true
  nullable    = false
}

variable "create_pod_identity_association" {
  description = "Whether to associate the service account with the role, if enable_pod_identity is true"
  type        = bool
  default     = true
  nullable    = false
}

variable "enable_irsa" {
  description = "Whether the role trusts the cluster's issuer (IAM roles for service accounts). It works for pods on Fargate and on nodes"
  type        = bool
  default     = false
  nullable    = false

  validation {
    condition     = !var.enable_irsa || !var.create || !var.create_iam_role || var.irsa_oidc_provider_arn != null
    error_message = "enable_irsa is true, but irsa_oidc_provider_arn is not set; hint: set it to the ARN of the cluster's IAM OpenID Connect provider, for example module.eks.oidc_provider_arn."
  }
}

variable "irsa_oidc_provider_arn" {
  description = "ARN of the cluster's IAM OpenID Connect provider. Required with enable_irsa"
  type        = string
  default     = null

  validation {
    condition     = var.irsa_oidc_provider_arn == null || can(regex("^arn:[a-z-]+:iam::[0-9]{12}:oidc-provider/.+$", var.irsa_oidc_provider_arn))
    error_message = "irsa_oidc_provider_arn is not the ARN of an OpenID Connect provider; hint: it looks like arn:aws:iam::ACCOUNT:oidc-provider/oidc.eks.REGION.amazonaws.com/id/ID; do not use the issuer's URL."
  }
}

variable "namespace" {
  description = "Namespace of the controller's service account"
  type        = string
  default     = "karpenter"
  nullable    = false

  validation {
    condition     = can(regex("^[0-9a-z]([0-9a-z-]{0,61}[0-9a-z])?$", var.namespace))
    error_message = "namespace is \"${var.namespace}\", which is not a valid namespace name (1 to 63 lowercase letters, digits and -); hint: set it to the namespace of the chart's release."
  }
}

variable "service_account" {
  description = "Name of the controller's service account"
  type        = string
  default     = "karpenter"
  nullable    = false

  validation {
    condition     = can(regex("^[0-9a-z]([0-9a-z.-]{0,251}[0-9a-z])?$", var.service_account))
    error_message = "service_account is \"${var.service_account}\", which is not a valid name in Kubernetes (lowercase letters, digits, - and .); hint: set it to the name of the chart's service account."
  }
}

################################################################################
# Interruption queue
################################################################################

variable "enable_spot_termination" {
  description = "Whether to create the interruption queue and the EventBridge rules that send to it"
  type        = bool
  default     = true
  nullable    = false
}

variable "queue_name" {
  description = "Name of the queue. Default: the cluster's name"
  type        = string
  default     = null

  validation {
    condition     = var.queue_name == null || can(regex("^[0-9A-Za-z_-]{1,80}$", var.queue_name))
    error_message = "queue_name is not a valid name of a standard queue (1 to 80 letters, digits, - and _); hint: shorten or omit it."
  }
}

variable "queue_managed_sse_enabled" {
  description = "Whether SQS encrypts the messages with its own keys. Ignored if a KMS key is set"
  type        = bool
  default     = true
  nullable    = false
}

variable "queue_kms_master_key_id" {
  description = "KMS key that encrypts the messages. Its policy must allow kms:GenerateDataKey and kms:Decrypt to events.amazonaws.com, and the controller's role needs kms:Decrypt (iam_role_policies)"
  type        = string
  default     = null
}

variable "queue_kms_data_key_reuse_period_seconds" {
  description = "How long SQS reuses a data key, in seconds"
  type        = number
  default     = null

  validation {
    condition     = var.queue_kms_data_key_reuse_period_seconds == null || var.queue_kms_master_key_id != null
    error_message = "queue_kms_data_key_reuse_period_seconds has no effect without queue_kms_master_key_id; hint: set the key, or omit the period."
  }

  validation {
    condition     = var.queue_kms_data_key_reuse_period_seconds == null ? true : var.queue_kms_data_key_reuse_period_seconds >= 60 && var.queue_kms_data_key_reuse_period_seconds <= 86400
    error_message = "queue_kms_data_key_reuse_period_seconds is outside the range that SQS allows; hint: use 60 to 86400 seconds."
  }
}

variable "rule_name_prefix" {
  description = "Prefix of the generated names of the EventBridge rules"
  type        = string
  default     = "Karpenter"
  nullable    = false

  validation {
    condition     = can(regex("^[0-9A-Za-z._-]{1,18}$", var.rule_name_prefix))
    error_message = "rule_name_prefix is not a valid prefix of a rule name (1 to 18 letters, digits, ., - and _; the rest of the 64 characters is generated); hint: shorten it."
  }
}

################################################################################
# The nodes' role
################################################################################

variable "create_node_iam_role" {
  description = "Whether to create the node role. If false, node_iam_role_arn is used"
  type        = bool
  default     = true
  nullable    = false
}

variable "node_iam_role_arn" {
  description = "ARN of an existing node role. Required if create_node_iam_role is false"
  type        = string
  default     = null

  validation {
    condition     = !var.create || var.create_node_iam_role || var.node_iam_role_arn != null
    error_message = "create_node_iam_role is false, but node_iam_role_arn is not set; hint: set it to the ARN of your nodes' role, for example module.eks.eks_managed_node_groups[\"NAME\"].iam_role_arn."
  }

  validation {
    condition     = var.node_iam_role_arn == null || can(regex("^arn:[a-z-]+:iam::[0-9]{12}:role/.+$", var.node_iam_role_arn))
    error_message = "node_iam_role_arn is not the ARN of a role; hint: it looks like arn:aws:iam::ACCOUNT:role/NAME; do not use an instance profile."
  }

  validation {
    condition     = var.node_iam_role_arn == null || !var.create_node_iam_role
    error_message = "node_iam_role_arn has no effect while create_node_iam_role is true; hint: set create_node_iam_role to false."
  }
}

variable "node_iam_role_name" {
  description = "Name of the node role and of the instance profile. Default: KarpenterNodeRole-CLUSTER and KarpenterNodeInstanceProfile-CLUSTER"
  type        = string
  default     = null

  validation {
    condition     = var.node_iam_role_name == null || can(regex("^[0-9A-Za-z+=,.@_-]{1,64}$", var.node_iam_role_name))
    error_message = "node_iam_role_name is not a valid role name (1 to 64 letters, digits and +=,.@_-); hint: shorten or omit it."
  }
}

variable "node_iam_role_use_name_prefix" {
  description = "Whether node_iam_role_name (default then: Karpenter-CLUSTER) is used as a prefix"
  type        = bool
  default     = false
  nullable    = false

  validation {
    condition     = !var.node_iam_role_use_name_prefix || length(coalesce(var.node_iam_role_name, "Karpenter-${var.cluster_name}")) <= 37
    error_message = "node_iam_role_name (or Karpenter-CLUSTER) is longer than 37 characters, so there is no room for the generated suffix; hint: set a shorter node_iam_role_name, or set node_iam_role_use_name_prefix to false."
  }
}

variable "node_iam_role_path" {
  description = "Path of the node role and the instance profile. aws-auth supports only roles without a path"
  type        = string
  default     = "/"
  nullable    = false

  validation {
    condition     = can(regex("^/([!-~]+/)?$", var.node_iam_role_path))
    error_message = "node_iam_role_path must begin and end with /; hint: for example /eks/, or / for no path."
  }
}

variable "node_iam_role_description" {
  description = "Description of the node role"
  type        = string
  default     = null
}

variable "node_iam_role_max_session_duration" {
  description = "Maximum session duration of the node role, in seconds"
  type        = number
  default     = null

  validation {
    condition     = var.node_iam_role_max_session_duration == null ? true : var.node_iam_role_max_session_duration >= 3600 && var.node_iam_role_max_session_duration <= 43200
    error_message = "node_iam_role_max_session_duration is outside the range that IAM allows; hint: use 3600 to 43200 seconds."
  }
}

variable "node_iam_role_permissions_boundary" {
  description = "ARN of the permissions boundary of the node role"
  type        = string
  default     = null

  validation {
    condition     = var.node_iam_role_permissions_boundary == null || can(regex("^arn:[a-z-]+:iam::([0-9]{12}|aws):policy/.+$", var.node_iam_role_permissions_boundary))
    error_message = "node_iam_role_permissions_boundary is not the ARN of a policy; hint: it looks like arn:aws:iam::ACCOUNT:policy/NAME."
  }
}

variable "node_iam_role_attach_cni_policy" {
  description = "Whether to attach the VPC CNI policy to the node role. Set it to false if the DaemonSet aws-node has its own role"
  type        = bool
  default     = true
  nullable    = false
}

variable "cluster_ip_family" {
  description = "ipv4 or ipv6: which VPC CNI policy is attached to the node role. For ipv6 you must create the policy yourself, named AmazonEKS_CNI_IPv6_Policy"
  type        = string
  default     = "ipv4"
  nullable    = false

  validation {
    condition     = contains(["ipv4", "ipv6"], var.cluster_ip_family)
    error_message = "cluster_ip_family is \"${var.cluster_ip_family}\"; hint: use ipv4 or ipv6."
  }
}

variable "node_iam_role_additional_policies" {
  description = "Additional policies of the node role: a map of static names to ARNs"
  type        = map(string)
  default     = {}
  nullable    = false
}

variable "node_iam_role_tags" {
  description = "Additional tags of the node role and the instance profile"
  type        = map(string)
  default     = {}
  nullable    = false
}

variable "create_instance_profile" {
  description = "Whether to create an instance profile, for AWSNodeTemplates and for EC2NodeClasses that set instanceProfile. For those that set role, the controller creates profiles itself"
  type        = bool
  default     = false
  nullable    = false
}

################################################################################
# Access entry
################################################################################

variable "create_access_entry" {
  description = "Whether to create an access entry for the node role. Set it to false in CONFIG_MAP mode, where aws-auth must list the role, and for a role that already has an entry"
  type        = bool
  default     = true
  nullable    = false
}

variable "access_entry_type" {
  description = "EC2_LINUX or EC2_WINDOWS"
  type        = string
  default     = "EC2_LINUX"
  nullable    = false

  validation {
    condition     = contains(["EC2_LINUX", "EC2_WINDOWS"], var.access_entry_type)
    error_message = "access_entry_type is \"${var.access_entry_type}\"; hint: use EC2_LINUX, or EC2_WINDOWS for the role of Windows nodes."
  }
}
