output "iam_role_name" {
  description = "Name of the controller's role"
  value       = try(aws_iam_role.controller[0].name, null)
}

output "iam_role_arn" {
  description = "ARN of the controller's role"
  value       = try(aws_iam_role.controller[0].arn, null)
}

output "iam_role_unique_id" {
  description = "Unique ID of the controller's role"
  value       = try(aws_iam_role.controller[0].unique_id, null)
}

output "queue_arn" {
  description = "ARN of the interruption queue"
  value       = try(aws_sqs_queue.this[0].arn, null)
}

output "queue_name" {
  description = "Name of the interruption queue"
  value       = try(aws_sqs_queue.this[0].name, null)
}

output "queue_url" {
  description = "URL of the interruption queue"
  value       = try(aws_sqs_queue.this[0].url, null)
}

output "event_rules" {
  description = "The EventBridge rules that send to the queue, by key"
  value       = aws_cloudwatch_event_rule.this
}

output "node_iam_role_name" {
  description = "Name of the node role, for `spec.role` of an EC2NodeClass, whether it was created here or not"
  value       = try(aws_iam_role.node[0].name, local.given_node_role_name)
}

output "node_iam_role_arn" {
  description = "ARN of the node role, whether it was created here or not"
  value       = try(aws_iam_role.node[0].arn, var.node_iam_role_arn)
}

output "node_iam_role_unique_id" {
  description = "Unique ID of the node role that was created here"
  value       = try(aws_iam_role.node[0].unique_id, null)
}

output "node_access_entry_arn" {
  description = "ARN of the node role's access entry"
  value       = try(aws_eks_access_entry.node[0].access_entry_arn, null)
}

output "instance_profile_arn" {
  description = "ARN of the nodes' instance profile"
  value       = try(aws_iam_instance_profile.this[0].arn, null)
}

output "instance_profile_id" {
  description = "ID of the nodes' instance profile"
  value       = try(aws_iam_instance_profile.this[0].id, null)
}

output "instance_profile_name" {
  description = "Name of the nodes' instance profile"
  value       = try(aws_iam_instance_profile.this[0].name, null)
}

output "instance_profile_unique" {
  description = "Unique ID of the nodes' instance profile"
  value       = try(aws_iam_instance_profile.this[0].unique_id, null)
}

output "namespace" {
  description = "Namespace of the controller's service account. Install the chart into it"
  value       = var.namespace
}

output "service_account" {
  description = "Name of the controller's service account"
  value       = var.service_account
}

output "helm_values" {
  description = "Values for the chart charts/nodeless as YAML: cluster, queue, instance profile, tags, service account and, with IRSA, its role"
  value = yamlencode({
    settings = { for name, value in {
      clusterName       = var.cluster_name
      interruptionQueue = try(aws_sqs_queue.this[0].name, null)
      aws = { for name, value in {
        defaultInstanceProfile = try(aws_iam_instance_profile.this[0].name, null)
        tags                   = length(var.tags) > 0 ? var.tags : null
      } : name => value if value != null }
    } : name => value if value != null }
    serviceAccount = { for name, value in {
      name = var.service_account
      annotations = { for name, value in {
        "eks.amazonaws.com/role-arn" = var.enable_irsa ? try(aws_iam_role.controller[0].arn, null) : null
      } : name => value if value != null }
    } : name => value if value != null }
  })
}
