"""The Terraform module: planned and applied by the real OpenTofu, compared with the Pulumi components."""
