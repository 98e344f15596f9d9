"""`python -m autograder`; where a package is missing, the first to say so."""

import sys

try:
    from .cli import main
except ModuleNotFoundError as absent:
    if (absent.name or "").startswith("autograder"):
        raise
    sys.exit(
        f"error: the package {absent.name} is missing in {sys.executable}\n"
        "  source .venv/bin/activate, if that is another Python than yours, or\n"
        "  python -m pip install -r requirements.txt"
    )

raise SystemExit(main())
