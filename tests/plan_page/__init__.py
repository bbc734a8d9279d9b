"""The page of a plan as people see it, in a real browser.

`python -m tests.plan_page` takes the picture of it in the docs anew.
"""
