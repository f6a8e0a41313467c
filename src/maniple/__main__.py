"""python -m maniple: the same as the command maniple."""

import sys

from maniple.cli.main import main

code = main()
if "torch.distributed" in sys.modules:
    from maniple.run.ranks import end_rank

    end_rank(code)
sys.exit(code)
