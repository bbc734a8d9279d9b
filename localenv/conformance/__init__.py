"""Karpenter's own end-to-end suites against the controller in the local environment: `make conformance`.

The suites are built from their published Go modules. Their environment code (how a suite finds the cluster
and the controller) is adapted by replacements that are listed with reasons in `adaptations`. Their assertions
are not: `modules` compares every file of a suite with the module's archive before anything is built.

```
modules -> adaptations -> binaries -> specs -> runner -> page
```
"""
