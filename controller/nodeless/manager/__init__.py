"""The process: what starts when, what stops it, and what it serves over HTTP."""
