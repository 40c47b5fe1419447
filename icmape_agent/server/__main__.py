"""`python -m icmape_agent.server`: `icmape serve` where only the light package is installed."""

import sys

from icmape_agent.errors import UserError
from icmape_agent.server.command import serve_command

if __name__ == "__main__":
    try:
        sys.exit(serve_command(sys.argv[1:], "python -m icmape_agent.server"))
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
