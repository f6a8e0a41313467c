"""Run the command line as 'python -m maniple'."""

from maniple.cli.main import main

raise SystemExit(main())
