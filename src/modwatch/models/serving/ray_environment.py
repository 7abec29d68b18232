"""Variables that Ray reads when it is imported; this module imports no Ray."""

import os
import secrets


def prepare_ray(address: str | None) -> None:
    """Set variables of Ray that are not set, for a cluster at `address`, or None for one here.

    Nothing is reported to Ray's makers. A Ray of this machine alone listens on the loopback
    interface only, and serves only the processes that it starts.
    """
    defaults = {"RAY_USAGE_STATS_ENABLED": "0"}
    if address is None:
        # On Linux, too, this makes 127.0.0.1 the address of the node, in place of the machine's.
        defaults["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
        # Otherwise Ray would keep a token in the home folder.
        defaults |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    for name, value in defaults.items():
        os.environ.setdefault(name, value)
