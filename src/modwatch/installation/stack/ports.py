"""The addresses of a stack: on the loopback interface, with ports that are free."""

import socket
from collections.abc import Mapping
from ipaddress import ip_address
from urllib.parse import urlsplit

from modwatch.common.errors import StackError


def require_free_ports(urls: Mapping[str, str]) -> None:
    """Raise StackError unless each URL is on the loopback interface and its port is free.

    Keys are the variables of the URLs.

    >>> require_free_ports({"MODWATCH_CONSOLE_URL": "http://127.0.0.1:0"})
    """
    for setting, url in urls.items():
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port or 0
        if not _is_loopback(host):
            raise StackError(
                f"{setting} is not on the loopback interface, where alone a stack listens; set it "
                f"to a URL such as http://127.0.0.1:{port or 8090}"
            )
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, port))
            except OSError:
                raise StackError(
                    f"port {port} is in use; set {setting} to a URL with a free port, "
                    f"such as http://127.0.0.1:{port + 1}"
                ) from None


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
