"""`nodeless advise`, run as a user runs it: each figure is held to a plan with the change applied."""
