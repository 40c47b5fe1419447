"""`python -m icmape_agent`."""

import sys

from icmape_agent.command import main

if __name__ == "__main__":
    sys.exit(main(program="python -m icmape_agent"))
