"""Carries out the instructions of the pure packages: writes, launches, evictions."""
