"""How programs with private servers end.

    sys.exit(program.run(main))
"""

import os
import random
import sys

from .server import ServerFailed, end_by_signals

_LOG_SHOWN_MAX = 4000

_SEED_OF_CI = 2026


def add_seed(parser):
    """`--seed N`. CI judges the change at hand, so without the option it takes always the same; new ground is broken by everyone
    else's runs."""
    seed = _SEED_OF_CI if os.environ.get("CI") else random.SystemRandom().randrange(1 << 31)
    parser.add_argument("--seed", type=int, default=seed, help="of the random choices; without it a new one each time, in CI always one")


def run(main):
    """The exit status: what `main` gives, 1 when a server did not start or died, 130 after ^C. Whatever ends the
    program, `with` blocks clean up first."""
    end_by_signals()
    try:
        return main()
    except ServerFailed as error:
        print(f"the server did not come: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def show_log(server):
    """The end of a server's error log, for whoever has to find out what went wrong."""
    print(f"--- the end of the error log\n{server.log_text()[-_LOG_SHOWN_MAX:]}---", file=sys.stderr)


def end_wrong(server, problems):
    """Ends the program with the problems that were found: they come last, where a log that is cut still has them."""
    show_log(server)
    print("\n".join(problems), file=sys.stderr)
    raise SystemExit(1)
