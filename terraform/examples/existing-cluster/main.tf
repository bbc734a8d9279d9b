# nodeless in a cluster that exists: what it needs in AWS, a place for its pods, and the two Helm charts.

provider "aws" {
  region = var.region
}

data "aws_eks_cluster" "this" {
  name = var.cluster_name
}

provider "helm" {
  kubernetes = {
    host                   = data.aws_eks_cluster.this.endpoint
    cluster_ca_certificate = base64decode(data.aws_eks_cluster.this.certificate_authority[0].data)
    exec = {
      api_version = "client.authentication.k8s.io/v1"
      command     = "aws"
      args        = ["eks", "get-token", "--region", var.region, "--cluster-name", var.cluster_name]
    }
  }
}

locals {
  on_fargate = var.run_on == "fargate"
}

# Fargate runs no agent of EKS Pod Identity: there the role comes by the service account's token.
data "aws_iam_openid_connect_provider" "this" {
  count = local.on_fargate ? 1 : 0
  url   = data.aws_eks_cluster.this.identity[0].oidc[0].issuer
}

module "nodeless" {
  source = "../.."

  cluster_name = var.cluster_name
  tags         = var.tags

  enable_pod_identity    = !local.on_fargate
  enable_irsa            = local.on_fargate
  irsa_oidc_provider_arn = one(data.aws_iam_openid_connect_provider.this[*].arn)

  create_instance_profile = true
}

################################################################################
# A place for the controller's pods before there is a node
################################################################################

data "aws_partition" "current" {}

data "aws_caller_identity" "current" {}

resource "aws_iam_role" "pod_execution" {
  count = local.on_fargate ? 1 : 0

  name        = "NodelessPodExecution-${substr(sha256(var.cluster_name), 0, 8)}"
  description = "The controller's Fargate pods in EKS cluster ${var.cluster_name}"
  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Principal = { Service = "eks-fargate-pods.amazonaws.com" }
      Action    = "sts:AssumeRole"
      Condition = {
        ArnLike = {
          "aws:SourceArn" = join(":", [
            "arn", data.aws_partition.current.partition, "eks", var.region,
            data.aws_caller_identity.current.account_id, "fargateprofile/${var.cluster_name}/*",
          ])
        }
      }
    }]
  })

  tags = var.tags
}

resource "aws_iam_role_policy_attachment" "pod_execution" {
  count = local.on_fargate ? 1 : 0

  role       = aws_iam_role.pod_execution[0].name
  policy_arn = "arn:${data.aws_partition.current.partition}:iam::aws:policy/AmazonEKSFargatePodExecutionRolePolicy"
}

resource "aws_eks_fargate_profile" "controller" {
  count = local.on_fargate ? 1 : 0

  cluster_name           = var.cluster_name
  fargate_profile_name   = "karpenter"
  pod_execution_role_arn = aws_iam_role.pod_execution[0].arn
  subnet_ids             = var.private_subnet_ids

  selector {
    namespace = module.nodeless.namespace
  }

  tags = var.tags

  depends_on = [aws_iam_role_policy_attachment.pod_execution]
}

resource "aws_eks_addon" "pod_identity_agent" {
  count = !local.on_fargate && var.create_pod_identity_agent ? 1 : 0

  cluster_name = var.cluster_name
  addon_name   = "eks-pod-identity-agent"

  tags = var.tags
}

################################################################################
# The charts
################################################################################

resource "helm_release" "definitions" {
  name             = "karpenter-crd"
  chart            = "${path.module}/../../../charts/nodeless-crd"
  namespace        = module.nodeless.namespace
  create_namespace = true
}

resource "helm_release" "controller" {
  name      = "karpenter"
  chart     = "${path.module}/../../../charts/nodeless"
  namespace = module.nodeless.namespace

  values = [
    module.nodeless.helm_values,
    yamlencode({
      settings   = { clusterEndpoint = data.aws_eks_cluster.this.endpoint }
      controller = { image = { repository = var.image_repository, tag = var.image_tag } }
    }),
  ]

  # Roles and queue stay until the controller is gone, and pods find their place when they come.
  depends_on = [
    module.nodeless,
    helm_release.definitions,
    aws_eks_fargate_profile.controller,
    aws_eks_addon.pod_identity_agent,
  ]
}
