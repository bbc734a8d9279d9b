################################################################################
# General
################################################################################

variable "create" {
  description = "Whether anything is made"
  type        = bool
  default     = true
  nullable    = false
}

variable "cluster_name" {
  description = "Name of the existing EKS cluster; part of names, trusts and conditions of policies. It has to be known when the plan is made"
  type        = string
  default     = ""
  nullable    = false

  validation {
    condition     = !var.create || can(regex("^[0-9A-Za-z][0-9A-Za-z_-]{0,99}$", var.cluster_name))
    error_message = "cluster_name is \"${var.cluster_name}\", and EKS has no such name: a letter or digit, then up to 99 letters, digits, - and _; hint: give the name of the cluster, for example module.eks.cluster_name."
  }
}

variable "region" {
  description = "Region of the cluster and the queue. Default: the provider's"
  type        = string
  default     = null
}

variable "tags" {
  description = "Tags of everything that is made here, and, by helm_values, of everything that the controller makes in AWS"
  type        = map(string)
  default     = {}
  nullable    = false

  validation {
    condition     = alltrue([for key in keys(var.tags) : !startswith(lower(key), "aws:")])
    error_message = "tags has keys that begin with aws:, which AWS reserves; hint: choose other keys."
  }

  validation {
    condition = alltrue([
      for key in keys(var.tags) : !can(regex("^(karpenter.sh/|karpenter.k8s.aws/|nodeless.dev/|kubernetes.io/cluster/|kubernetes.io/role/|eks:)", key))
    ])
    error_message = "tags has a key by whose beginning Kubernetes, EKS or the controller finds single resources (${join(", ", keys(var.tags))}); hint: tag the resource that is meant, not all of them."
  }
}

################################################################################
# The controller's role
################################################################################

variable "create_iam_role" {
  description = "Whether the controller's role and its policy are made"
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
    error_message = "iam_role_name is no name of a role: 1 to 64 letters, digits and +=,.@_-; hint: shorten it, or leave it out."
  }
}

variable "iam_role_use_name_prefix" {
  description = "Whether iam_role_name (then by default KarpenterController) is the beginning of a generated name"
  type        = bool
  default     = false
  nullable    = false

  validation {
    condition     = !var.iam_role_use_name_prefix || length(coalesce(var.iam_role_name, "KarpenterController")) <= 37
    error_message = "iam_role_name has more than the 37 characters that leave room for a generated end; hint: shorten it, or set iam_role_use_name_prefix to false."
  }
}

variable "iam_role_path" {
  description = "Path of the controller's role"
  type        = string
  default     = "/"
  nullable    = false

  validation {
    condition     = can(regex("^/([!-~]+/)?$", var.iam_role_path))
    error_message = "iam_role_path has to begin and end with /; hint: for example /eks/, or / for none."
  }
}

variable "iam_role_description" {
  description = "Description of the controller's role"
  type        = string
  default     = null
}

variable "iam_role_max_session_duration" {
  description = "Longest session of the controller's role, in seconds"
  type        = number
  default     = null

  validation {
    condition     = var.iam_role_max_session_duration == null ? true : var.iam_role_max_session_duration >= 3600 && var.iam_role_max_session_duration <= 43200
    error_message = "iam_role_max_session_duration is not what IAM allows; hint: 3600 to 43200 seconds."
  }
}

variable "iam_role_permissions_boundary_arn" {
  description = "ARN of the policy that bounds the controller's role"
  type        = string
  default     = null

  validation {
    condition     = var.iam_role_permissions_boundary_arn == null || can(regex("^arn:[a-z-]+:iam::([0-9]{12}|aws):policy/.+$", var.iam_role_permissions_boundary_arn))
    error_message = "iam_role_permissions_boundary_arn is no ARN of a policy; hint: it looks like arn:aws:iam::ACCOUNT:policy/NAME."
  }
}

variable "iam_role_tags" {
  description = "Further tags of the controller's role"
  type        = map(string)
  default     = {}
  nullable    = false
}

variable "iam_policy_name" {
  description = "Name of the controller's policy; a second one, which long names of clusters need, ends with -2. Default: KarpenterControllerPolicy-CLUSTER"
  type        = string
  default     = null

  validation {
    condition     = var.iam_policy_name == null || can(regex("^[0-9A-Za-z+=,.@_-]{1,128}$", var.iam_policy_name))
    error_message = "iam_policy_name is no name of a policy: 1 to 128 letters, digits and +=,.@_-; hint: shorten it, or leave it out."
  }
}

variable "iam_policy_use_name_prefix" {
  description = "Whether iam_policy_name (then by default KarpenterController) is the beginning of a generated name"
  type        = bool
  default     = false
  nullable    = false

  validation {
    condition     = !var.iam_policy_use_name_prefix || length(coalesce(var.iam_policy_name, "KarpenterController")) <= 101
    error_message = "iam_policy_name has more than the 101 characters that leave room for a generated end; hint: shorten it, or set iam_policy_use_name_prefix to false."
  }
}

variable "iam_policy_path" {
  description = "Path of the controller's policy"
  type        = string
  default     = "/"
  nullable    = false

  validation {
    condition     = can(regex("^/([!-~]+/)?$", var.iam_policy_path))
    error_message = "iam_policy_path has to begin and end with /; hint: for example /eks/, or / for none."
  }
}

variable "iam_policy_description" {
  description = "Description of the controller's policy. AWS cannot change it: another one replaces the policy"
  type        = string
  default     = null
}

variable "iam_role_policies" {
  description = "Further policies of the controller's role, ARNs by any fixed name, for example ssm:GetParameter on parameters of your own"
  type        = map(string)
  default     = {}
  nullable    = false
}

################################################################################
# How the controller's pods come by the role
################################################################################

variable "enable_pod_identity" {
  description = "Whether the role trusts EKS Pod Identity, which needs the add-on eks-pod-identity-agent and pods on nodes: Fargate has no agent"
  type        = bool
  default     = true
  nullable    = false
}

variable "create_pod_identity_association" {
  description = "Whether the association of service account and role is made, with enable_pod_identity"
  type        = bool
  default     = true
  nullable    = false
}

variable "enable_irsa" {
  description = "Whether the role trusts the cluster's issuer (IAM roles for service accounts), for pods on Fargate and on nodes"
  type        = bool
  default     = false
  nullable    = false

  validation {
    condition     = !var.enable_irsa || !var.create || !var.create_iam_role || var.irsa_oidc_provider_arn != null
    error_message = "enable_irsa is true without irsa_oidc_provider_arn; hint: give the ARN of the cluster's IAM OpenID Connect provider, for example module.eks.oidc_provider_arn."
  }
}

variable "irsa_oidc_provider_arn" {
  description = "ARN of the cluster's IAM OpenID Connect provider; needed with enable_irsa"
  type        = string
  default     = null

  validation {
    condition     = var.irsa_oidc_provider_arn == null || can(regex("^arn:[a-z-]+:iam::[0-9]{12}:oidc-provider/.+$", var.irsa_oidc_provider_arn))
    error_message = "irsa_oidc_provider_arn is no ARN of an OpenID Connect provider; hint: it looks like arn:aws:iam::ACCOUNT:oidc-provider/oidc.eks.REGION.amazonaws.com/id/ID; the issuer's URL is something else."
  }
}

variable "namespace" {
  description = "Namespace of the controller's service account"
  type        = string
  default     = "karpenter"
  nullable    = false

  validation {
    condition     = can(regex("^[0-9a-z]([0-9a-z-]{0,61}[0-9a-z])?$", var.namespace))
    error_message = "namespace is \"${var.namespace}\", and Kubernetes has no such name: 1 to 63 small letters, digits and -; hint: give the namespace that the chart is installed into."
  }
}

variable "service_account" {
  description = "Name of the controller's service account"
  type        = string
  default     = "karpenter"
  nullable    = false

  validation {
    condition     = can(regex("^[0-9a-z]([0-9a-z.-]{0,251}[0-9a-z])?$", var.service_account))
    error_message = "service_account is \"${var.service_account}\", and Kubernetes has no such name: small letters, digits, - and .; hint: give the name of the chart's service account."
  }
}

################################################################################
# Interruption queue
################################################################################

variable "enable_spot_termination" {
  description = "Whether the queue of interruption notices and the EventBridge rules that fill it are made"
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
    error_message = "queue_name is no name of a standard queue: 1 to 80 letters, digits, - and _; hint: shorten it, or leave it out."
  }
}

variable "queue_managed_sse_enabled" {
  description = "Whether messages are encrypted with keys of SQS; without effect where a KMS key is given"
  type        = bool
  default     = true
  nullable    = false
}

variable "queue_kms_master_key_id" {
  description = "KMS key that encrypts the messages. Its policy has to allow events.amazonaws.com kms:GenerateDataKey and kms:Decrypt, and the controller's role kms:Decrypt (iam_role_policies)"
  type        = string
  default     = null
}

variable "queue_kms_data_key_reuse_period_seconds" {
  description = "How long SQS uses a data key again, in seconds"
  type        = number
  default     = null

  validation {
    condition     = var.queue_kms_data_key_reuse_period_seconds == null || var.queue_kms_master_key_id != null
    error_message = "queue_kms_data_key_reuse_period_seconds has no effect without queue_kms_master_key_id; hint: give the key, or leave the period out."
  }

  validation {
    condition     = var.queue_kms_data_key_reuse_period_seconds == null ? true : var.queue_kms_data_key_reuse_period_seconds >= 60 && var.queue_kms_data_key_reuse_period_seconds <= 86400
    error_message = "queue_kms_data_key_reuse_period_seconds is not what SQS allows; hint: 60 to 86400 seconds."
  }
}

variable "rule_name_prefix" {
  description = "Beginning of the generated names of the EventBridge rules"
  type        = string
  default     = "Karpenter"
  nullable    = false

  validation {
    condition     = can(regex("^[0-9A-Za-z._-]{1,18}$", var.rule_name_prefix))
    error_message = "rule_name_prefix is no beginning of a rule's name: 1 to 18 letters, digits, ., - and _ leave room for the rest of 64; hint: shorten it."
  }
}

################################################################################
# The nodes' role
################################################################################

variable "create_node_iam_role" {
  description = "Whether the nodes' role is made; false: node_iam_role_arn is used"
  type        = bool
  default     = true
  nullable    = false
}

variable "node_iam_role_arn" {
  description = "ARN of an existing role of the nodes; needed where none is made"
  type        = string
  default     = null

  validation {
    condition     = !var.create || var.create_node_iam_role || var.node_iam_role_arn != null
    error_message = "create_node_iam_role is false and there is no node_iam_role_arn; hint: give the ARN of the role that your nodes have, for example module.eks.eks_managed_node_groups[\"NAME\"].iam_role_arn."
  }

  validation {
    condition     = var.node_iam_role_arn == null || can(regex("^arn:[a-z-]+:iam::[0-9]{12}:role/.+$", var.node_iam_role_arn))
    error_message = "node_iam_role_arn is no ARN of a role; hint: it looks like arn:aws:iam::ACCOUNT:role/NAME; an instance profile is something else."
  }

  validation {
    condition     = var.node_iam_role_arn == null || !var.create_node_iam_role
    error_message = "node_iam_role_arn has no effect while create_node_iam_role is true; hint: set create_node_iam_role to false."
  }
}

variable "node_iam_role_name" {
  description = "Name of the nodes' role, and of the instance profile. Default: KarpenterNodeRole-CLUSTER and KarpenterNodeInstanceProfile-CLUSTER"
  type        = string
  default     = null

  validation {
    condition     = var.node_iam_role_name == null || can(regex("^[0-9A-Za-z+=,.@_-]{1,64}$", var.node_iam_role_name))
    error_message = "node_iam_role_name is no name of a role: 1 to 64 letters, digits and +=,.@_-; hint: shorten it, or leave it out."
  }
}

variable "node_iam_role_use_name_prefix" {
  description = "Whether node_iam_role_name (then by default Karpenter-CLUSTER) is the beginning of a generated name"
  type        = bool
  default     = false
  nullable    = false

  validation {
    condition     = !var.node_iam_role_use_name_prefix || length(coalesce(var.node_iam_role_name, "Karpenter-${var.cluster_name}")) <= 37
    error_message = "node_iam_role_name (or Karpenter-CLUSTER) has more than the 37 characters that leave room for a generated end; hint: give a shorter node_iam_role_name, or set node_iam_role_use_name_prefix to false."
  }
}

variable "node_iam_role_path" {
  description = "Path of the nodes' role and the instance profile. aws-auth knows roles without a path only"
  type        = string
  default     = "/"
  nullable    = false

  validation {
    condition     = can(regex("^/([!-~]+/)?$", var.node_iam_role_path))
    error_message = "node_iam_role_path has to begin and end with /; hint: for example /eks/, or / for none."
  }
}

variable "node_iam_role_description" {
  description = "Description of the nodes' role"
  type        = string
  default     = null
}

variable "node_iam_role_max_session_duration" {
  description = "Longest session of the nodes' role, in seconds"
  type        = number
  default     = null

  validation {
    condition     = var.node_iam_role_max_session_duration == null ? true : var.node_iam_role_max_session_duration >= 3600 && var.node_iam_role_max_session_duration <= 43200
    error_message = "node_iam_role_max_session_duration is not what IAM allows; hint: 3600 to 43200 seconds."
  }
}

variable "node_iam_role_permissions_boundary" {
  description = "ARN of the policy that bounds the nodes' role"
  type        = string
  default     = null

  validation {
    condition     = var.node_iam_role_permissions_boundary == null || can(regex("^arn:[a-z-]+:iam::([0-9]{12}|aws):policy/.+$", var.node_iam_role_permissions_boundary))
    error_message = "node_iam_role_permissions_boundary is no ARN of a policy; hint: it looks like arn:aws:iam::ACCOUNT:policy/NAME."
  }
}

variable "node_iam_role_attach_cni_policy" {
  description = "Whether the nodes' role has the policy of the VPC CNI; false where the DaemonSet aws-node has a role of its own"
  type        = bool
  default     = true
  nullable    = false
}

variable "cluster_ip_family" {
  description = "ipv4 or ipv6: which policy of the VPC CNI the nodes' role has. The one for ipv6 is yours, named AmazonEKS_CNI_IPv6_Policy"
  type        = string
  default     = "ipv4"
  nullable    = false

  validation {
    condition     = contains(["ipv4", "ipv6"], var.cluster_ip_family)
    error_message = "cluster_ip_family is \"${var.cluster_ip_family}\"; hint: ipv4 or ipv6."
  }
}

variable "node_iam_role_additional_policies" {
  description = "Further policies of the nodes' role, ARNs by any fixed name"
  type        = map(string)
  default     = {}
  nullable    = false
}

variable "node_iam_role_tags" {
  description = "Further tags of the nodes' role and the instance profile"
  type        = map(string)
  default     = {}
  nullable    = false
}

variable "create_instance_profile" {
  description = "Whether an instance profile is made, for AWSNodeTemplates and for EC2NodeClasses that name one. For those that name a role, the controller makes profiles itself"
  type        = bool
  default     = false
  nullable    = false
}

################################################################################
# Access entry
################################################################################

variable "create_access_entry" {
  description = "Whether the nodes' role gets an access entry of the cluster; false for clusters in CONFIG_MAP mode, where aws-auth has to name the role, and for roles that have one"
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
    error_message = "access_entry_type is \"${var.access_entry_type}\"; hint: EC2_LINUX, or EC2_WINDOWS for a role of Windows nodes."
  }
}
