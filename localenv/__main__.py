"""`python -m localenv COMMAND`: see `cli`."""

import sys

from localenv.cli import main

sys.exit(main())
