"""Figures that are made from what the cluster shows."""
