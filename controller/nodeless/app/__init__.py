"""The shell: settings, leader election, the loops, the hands that carry out instructions, CLI.

Everything that decides is in the pure rooms; this one feeds them with what the watches
say and does what they answer. Start with `controller`.
"""
