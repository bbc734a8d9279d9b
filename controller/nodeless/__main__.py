"""`python -m nodeless` is the command `nodeless`."""

from nodeless.app.cli import main

main()
