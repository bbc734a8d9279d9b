"""What a cluster would cost with other rules, each tried by the solver.

`bill` says what it costs, `options` what may be changed, `usage` what pods use, and `ranking` what is worth
it without counting a dollar twice.
"""
