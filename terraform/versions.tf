terraform {
  # Conditions of variables that look at other variables need 1.9, of Terraform as of OpenTofu.
  required_version = ">= 1.9"

  required_providers {
    aws = {
      source = "hashicorp/aws"
      # The first one whose resources take a region.
      version = ">= 6.0"
    }
  }
}
