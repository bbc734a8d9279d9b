"""`python -m nodeless` is the command `nodeless`."""

from nodeless.cli.entry import main

main()
