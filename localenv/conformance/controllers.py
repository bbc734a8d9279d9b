"""The controllers that the suites can judge."""

NODELESS = "nodeless"
KARPENTER = "karpenter"
