"""Voluntary disruption: consolidation, expiration, drift."""
