output "node_role_name" {
  description = "For spec.role of an EC2NodeClass"
  value       = module.nodeless.node_iam_role_name
}

output "instance_profile_name" {
  description = "For node templates that name an instance profile"
  value       = module.nodeless.instance_profile_name
}

output "helm_values" {
  description = "The values that the chart gets from the module"
  value       = module.nodeless.helm_values
}
