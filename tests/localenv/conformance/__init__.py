"""The tool that runs the suites of Karpenter: what it may change, and how it reads what became of a spec."""
