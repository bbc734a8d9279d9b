"""The first-fit plan: pods onto existing nodes first, then onto new ones that first-fit finds."""
