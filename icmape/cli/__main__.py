"""`python -m icmape.cli` is `icmape`."""

import sys

from icmape.cli import main

if __name__ == "__main__":
    sys.exit(main())
