"""python -m maniple: the same as the command maniple."""

import sys

from maniple.cli.main import main

sys.exit(main())
