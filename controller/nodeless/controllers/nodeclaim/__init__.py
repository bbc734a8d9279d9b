"""The life of a NodeClaim: launch, registration, initialization, tags, garbage collection."""
