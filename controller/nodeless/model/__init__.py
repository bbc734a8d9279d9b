"""The vocabulary of nodeless: plain, frozen data that every other room speaks.

Nothing here does I/O, reads a clock or decides anything. Modules, from the smallest word up:

- `quantity`, `resources`: Kubernetes quantities as integers
- `labels`: the label, annotation, taint and finalizer names that we read and write
- `requirements`: the algebra of node selector requirements
- `taints`: taints and tolerations
- `pods`, `pools`, `instance_types`, `nodes`: what exists
- `snapshot`: all of it at one moment
- `plan`: what the solver proposes, and why
- `events`, `instructions`: what happened (past tense), what to do (imperative)

Times are seconds since the Unix epoch, UTC, as `float`.
"""
