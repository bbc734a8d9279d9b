"""The floor plan: pods onto existing nodes first, then onto new ones that first-fit finds."""
