"""`python -m nodeless` is the command `nodeless`."""

from nodeless.cli.main import main

main()
