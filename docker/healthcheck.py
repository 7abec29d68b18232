"""Ends with status 0 when the URL in its argument answers 200, else with 1.

The slim image has no curl; and unlike `urllib.request`, this ignores the proxy variables that a
container may be given.
"""

import http.client
import sys
from urllib.parse import urlsplit


def answers(url: str, *, timeout: float = 5) -> bool:
    """Return whether `url`, which is http, answers 200 within `timeout` seconds."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=timeout)
    try:
        connection.request("GET", parts.path or "/")
        return connection.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


if __name__ == "__main__":
    sys.exit(0 if answers(sys.argv[1]) else 1)
