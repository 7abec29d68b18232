"""`modwatch up`: the supervisor itself, which imports what an installation needs."""

import contextlib
import sys
import time
from collections.abc import Callable

from modwatch.installation.stack.commands import pages
from modwatch.installation.stack.installation import Narrator, running
from modwatch.installation.stack.supervisor import interruptible
from modwatch.settings import Settings


def up(settings: Settings, *, show: Callable[[str], None]) -> None:
    """Run the installation of `settings` until SIGINT, SIGTERM or SIGHUP.

    Raises:
        StackError: it runs already, a port is in use, or a part did not start.
    """
    narrator = Narrator()
    with (
        contextlib.suppress(KeyboardInterrupt),
        interruptible(),
        running(settings, say=narrator.say) as installation,
    ):
        installation.stack.wait_ready()
        show(pages(installation.settings))
        if sys.stdout.isatty():
            show("Press Ctrl-C to stop everything.")
        while True:
            time.sleep(1)
