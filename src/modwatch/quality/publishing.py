"""Publishes a validation result: its JSON, the page of its day, the list of days."""

from typing import get_args

from modwatch.errors import DayRejectedError
from modwatch.quality.page import render_index, render_page
from modwatch.quality.result import Suite, ValidationResult
from modwatch.quality.store import CheckStore


def publish_result(checks: CheckStore, result: ValidationResult) -> None:
    """Keep a validation result, and render the page of its day and the list of days again.

    Raises:
        DayRejectedError: validation failed; the message names the rules and the page.
    """
    checks.save(result)
    days = checks.days()
    results = [each for suite in get_args(Suite) for each in checks.history(suite, days)]
    of_day = [each for each in results if each.day == result.day]
    place = checks.save_page(result.day, render_page(of_day, history=results))
    checks.save_page(None, render_index(results))
    if result.rejected:
        raise DayRejectedError(f"{result.error} The page is {place}.")
