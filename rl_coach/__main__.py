"""``python -m rl_coach`` is ``coach``."""

import sys

from rl_coach.utilities.stop_signals import stop_signals


def main() -> int:
    """The program ``coach``, which hears signals while it imports its own modules, too."""
    with stop_signals.listening():
        from rl_coach import coach

        return coach.main()


if __name__ == "__main__":
    sys.exit(main())
