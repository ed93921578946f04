"""``python -m rl_coach`` is ``coach``."""

from __future__ import annotations

import os
import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType


def _end_at_once(number: int, frame: FrameType | None = None) -> None:
    os.write(2, b"coach: stopped\n" if number == signal.SIGINT else b"coach: stopped by SIGTERM\n")
    os._exit(128 + number)


# The imports below take a few tenths of a second. A signal meanwhile ends the process. A child process of
# multiprocessing imports this module again. It gets no handlers, because its parent ends it.
if "multiprocessing" not in sys.modules:
    for _number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(_number) != signal.SIG_IGN:
            signal.signal(_number, _end_at_once)

from rl_coach.utilities.standard_streams import drop_lost_output  # noqa: E402
from rl_coach.utilities.stop_signals import ignore, stop_signals  # noqa: E402


def main() -> int:
    """The program ``coach``. It handles signals even while it imports its own modules."""
    with stop_signals.listening():
        drop_lost_output()
        from rl_coach import coach

        code = coach.main()
    ignore()  # the run has ended; a late signal must not change its exit code
    return code


if __name__ == "__main__":
    sys.exit(main())
