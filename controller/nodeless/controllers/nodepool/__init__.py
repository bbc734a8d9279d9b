"""NodePools, node classes and the teardown guard: finalizers and status."""
