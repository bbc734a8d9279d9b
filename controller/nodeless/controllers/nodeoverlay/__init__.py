"""NodeOverlays: which of them count, and their conditions."""
