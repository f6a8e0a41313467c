"""Run the command line as 'python -m maniple.cli'."""

from maniple.cli.main import main

raise SystemExit(main())
