variable "cluster_name" {
  description = "Name of the existing EKS cluster"
  type        = string
}

variable "region" {
  description = "Region of the cluster"
  type        = string
}

variable "run_on" {
  description = "Where the controller's pods run: fargate (then nodeless can launch the first node) or nodes (existing ones, of a managed node group for example)"
  type        = string
  default     = "fargate"
  nullable    = false

  validation {
    condition     = contains(["fargate", "nodes"], var.run_on)
    error_message = "run_on is \"${var.run_on}\"; hint: use fargate or nodes."
  }
}

variable "private_subnet_ids" {
  description = "Private subnets for pods on Fargate. Required with run_on = fargate"
  type        = list(string)
  default     = []
  nullable    = false

  validation {
    condition     = var.run_on != "fargate" || length(var.private_subnet_ids) > 0
    error_message = "run_on is fargate, but private_subnet_ids is not set; hint: set it to two or more subnets of the cluster without a route to an internet gateway."
  }
}

variable "create_pod_identity_agent" {
  description = "Whether the add-on eks-pod-identity-agent is made, with run_on = nodes; false where the cluster has it"
  type        = bool
  default     = true
  nullable    = false
}

variable "image_repository" {
  description = "Where the controller's image is, without tag"
  type        = string
}

variable "image_tag" {
  description = "Tag of the controller's image"
  type        = string
}

variable "tags" {
  description = "Tags of everything that is made in AWS, by Terraform or by the controller"
  type        = map(string)
  default     = {}
  nullable    = false
}
