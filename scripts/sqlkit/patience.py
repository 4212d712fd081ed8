"""How long a load goes on.

    patience.pass_time(3, lambda: counter.value() > 0)

A machine that is slow, or busy with something else, gets less done in the same time: a test that asks for something to judge waits
for it, instead of taking a few seconds for enough.
"""

import time

# Whoever does nothing for so long hangs.
_MORE_SECONDS_MAX = 300
_LOOK_SECONDS = 0.05


def pass_time(seconds, is_enough):
    """Returns after so many seconds, later if it is not enough by then."""
    begin = time.monotonic()
    time.sleep(seconds)
    while not is_enough() and time.monotonic() - begin < seconds + _MORE_SECONDS_MAX:
        time.sleep(_LOOK_SECONDS)
