"""The whole environment on one machine: real Kubernetes and Pulumi, local AWS, simulated kubelets."""
