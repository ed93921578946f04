"""``python -m rl_coach`` is ``coach``."""

import sys

from rl_coach.utilities.standard_streams import drop_lost_output
from rl_coach.utilities.stop_signals import ignore, stop_signals


def main() -> int:
    """The program ``coach``, which hears signals while it imports its own modules, too."""
    with stop_signals.listening():
        drop_lost_output()
        from rl_coach import coach

        code = coach.main()
    ignore()  # nothing is left to be stopped, and the exit code is that of the run
    return code


if __name__ == "__main__":
    sys.exit(main())
