"""`python -m autograder`."""

from .cli import main

raise SystemExit(main())
