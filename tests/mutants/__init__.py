"""Do tests fail when the code is wrong? `make mutants ROOM=launch` changes it a little, again and again.

- `mutations`: every small change of a source that makes it mean something else
- `rooms`: which tests speak of which part of the code
- `__main__`: draws changes, runs the tests on a copy of the checkout, lists the changes that nobody noticed

Ours, since the known tools (mutmut, cosmic-ray) run a whole suite for each change, know nothing of rooms, and
leave out what matters most here: an entry that is missing in a request, an argument that is not passed on.
"""
