"""`python -m infra.local COMMAND`: see `cli`."""

import sys

from infra.local.cli import main

sys.exit(main())
