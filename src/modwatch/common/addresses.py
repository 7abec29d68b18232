"""Addresses: which are of this machine, and those on Airflow's server for links in messages.

`modwatch.monitoring.ops_page` answers them. A page about a day has one address, which stays valid
when the day is published or run again.
"""

import datetime
import ipaddress
from dataclasses import dataclass
from typing import Literal

#: Path of the pages of Modwatch on Airflow's address.
OPS_PREFIX = "/modwatch-ops"

#: What is shown of a day: its newest run in Airflow, its run in MLflow, its validation page.
DayPage = Literal["airflow", "mlflow", "validation"]


@dataclass(frozen=True, kw_only=True)
class Site:
    """The addresses of the servers whose pages are linked."""

    mlflow_url: str
    console_url: str
    airflow_url: str


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach a host.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("example.org")
    (True, True, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def day_url(airflow_url: str, day: datetime.date, page: DayPage) -> str:
    """Return the address of a page about a day.

    >>> day_url("http://localhost:8080/", datetime.date(2026, 1, 5), "validation")
    'http://localhost:8080/modwatch-ops/days/2026-01-05/validation'
    """
    return f"{overview_url(airflow_url)}days/{day}/{page}"


def overview_url(airflow_url: str) -> str:
    """Return the address of the page that shows whether the system is normal.

    >>> overview_url("http://localhost:8080")
    'http://localhost:8080/modwatch-ops/'
    """
    return f"{airflow_url.rstrip('/')}{OPS_PREFIX}/"
