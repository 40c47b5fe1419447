"""`python -m paper`: the same as `icmape reproduce`, on machines with few packages."""

import logging
import sys

from icmape.errors import UserError, error_line
from icmape.sweeps.places import end_with_parent
from paper.command import reproduce_command


def main() -> int:
    """The command; returns the exit code."""
    logging.basicConfig(format="%(message)s", level=logging.WARNING)
    end_with_parent()
    try:
        return reproduce_command(sys.argv[1:])
    except (UserError, OSError) as error:
        print(error_line(error), file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
