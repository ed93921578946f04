"""``python -m rl_coach`` is ``coach``."""

import sys

from rl_coach.coach import main

if __name__ == "__main__":
    sys.exit(main())
