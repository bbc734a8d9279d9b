output "node_role_name" {
  description = "Name of the node role, for spec.role of an EC2NodeClass"
  value       = module.nodeless.node_iam_role_name
}

output "instance_profile_name" {
  description = "Name of the instance profile, for node templates that set one"
  value       = module.nodeless.instance_profile_name
}

output "helm_values" {
  description = "Values that the module passes to the chart"
  value       = module.nodeless.helm_values
}
