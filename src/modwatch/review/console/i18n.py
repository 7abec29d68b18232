"""The console's languages: messages, negotiation, and formats of dates and numbers.

The message id is English. Other languages are GNU gettext catalogues in `locales/`, read on first
use; nothing is compiled.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cache
from gettext import NullTranslations
from io import BytesIO
from pathlib import Path
from typing import Literal, get_args

from babel import dates, numbers
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po
from babel.support import Translations
from babel.units import format_unit
from jinja2 import Environment

#: A language of the console.
Locale = Literal["en", "de"]

#: Each language by its own name.
LANGUAGES: Mapping[str, str] = {"en": "English", "de": "Deutsch"}

_LOCALES = Path(__file__).parent / "locales"


def N_(message: str) -> str:  # noqa: N802 - gettext's name for it
    """Return `message` unchanged; marks one that a page translates later.

    >>> N_("Review")
    'Review'
    """
    return message


class _Messages(Translations):
    def gettext(self, message: str) -> str:
        # gettext keeps the header of a catalogue under the empty message.
        return super().gettext(message) if message else ""


@cache
def translator(locale: Locale) -> NullTranslations:
    """Return the messages of `locale`: `gettext`, `ngettext`, `pgettext`, `npgettext`.

    A message without a translation stays English.

    >>> translator("en").gettext("Sign out")
    'Sign out'
    """
    if locale == "en":
        return NullTranslations()
    with (_LOCALES / f"{locale}.po").open("rb") as file:
        catalogue = read_po(file, locale=locale, domain="console", abort_invalid=True)
    compiled = BytesIO()
    write_mo(compiled, catalogue)
    compiled.seek(0)
    return _Messages(compiled)


def install(environment: Environment, locale: Locale) -> None:
    """Translate the templates of `environment`: `{% trans %}`, `_()` and `formats`.

    Line breaks and indentation within `{% trans %}` are ignored.
    """
    environment.policies["ext.i18n.trimmed"] = True
    environment.add_extension("jinja2.ext.i18n")
    environment.install_gettext_translations(  # type: ignore[attr-defined]
        translator(locale), newstyle=True
    )
    environment.globals.update(locale=locale, formats=Formats(locale=locale))


def negotiate(accept_language: str | None, preference: object = None) -> Locale:
    """Return the `preference`, or else the best language that the header accepts.

    Anything unknown is ignored; English is the fallback.

    >>> negotiate("fr, de-AT;q=0.8, en;q=0.5")
    'de'
    >>> negotiate("de", preference="en")
    'en'
    """
    wanted = [(1.0, preference)] if isinstance(preference, str) else []
    # Browsers send short headers; the rest of a long one is ignored.
    wanted += sorted(
        (_weighted(part) for part in (accept_language or "")[:1_000].split(",")),
        key=lambda weighted: -weighted[0],
    )
    for quality, tag in wanted:
        for locale in get_args(Locale):
            if quality > 0 and tag.strip().lower().split("-")[0] == locale:
                return locale  # type: ignore[no-any-return]
    return "en"


def _weighted(part: str) -> tuple[float, str]:
    """Return the quality in [0, 1] and the language tag."""
    tag, _, parameter = part.partition(";")
    name, _, value = parameter.strip().partition("=")
    if not parameter:
        return 1.0, tag
    try:
        quality = float(value) if name.strip().lower() == "q" else 0.0
    except ValueError:
        quality = 0.0
    return (quality, tag) if 0 <= quality <= 1 else (0.0, tag)


@dataclass(frozen=True, kw_only=True)
class Formats:
    """Formats of dates and numbers in one language; times are in UTC."""

    locale: Locale

    def date(self, value: date) -> str:
        """Return the day with the month's name.

        >>> Formats(locale="de").date(date(2026, 3, 1))
        '1. März 2026'
        """
        return dates.format_date(value, "long", self.locale)

    def time(self, value: datetime) -> str:
        """Return hour and minute in UTC.

        >>> Formats(locale="en").time(datetime(2026, 3, 1, 14, 5, tzinfo=UTC))
        '14:05 UTC'
        """
        return f"{value.astimezone(UTC):%H:%M} UTC"

    def moment(self, value: datetime) -> str:
        """Return day and time in UTC.

        >>> Formats(locale="en").moment(datetime(2026, 3, 1, 14, 5, tzinfo=UTC))
        'Mar 1, 2026, 14:05 UTC'
        """
        day = dates.format_date(value.astimezone(UTC).date(), "medium", self.locale)
        return f"{day}, {self.time(value)}"

    def number(self, value: float, digits: int = 0) -> str:
        """Return `value` with separators, rounded to `digits` decimals.

        >>> Formats(locale="de").number(12345.678, digits=1)
        '12.345,7'
        """
        return numbers.format_decimal(round(value, digits), _pattern(digits), self.locale)

    def percent(self, share: float, digits: int = 0) -> str:
        """Return `share`, in [0, 1], as a percentage rounded to `digits` decimals.

        >>> Formats(locale="en").percent(0.256), Formats(locale="de").percent(0.256, digits=1)
        ('26%', '25,6\\xa0%')
        """
        pattern = {"en": f"{_pattern(digits)}%", "de": f"{_pattern(digits)}\xa0%"}[self.locale]
        return numbers.format_percent(round(share, digits + 2), pattern, self.locale)

    def age(self, value: timedelta) -> str:
        """Return an age in whole units.

        Minutes below two hours, hours below two days, then days; 0 for the future, since clocks
        differ.

        >>> [Formats(locale="en").age(timedelta(hours=hours)) for hours in (0.5, 3.9, 72)]
        ['30 min', '3 h', '3 days']
        """
        minutes = max(0, value // timedelta(minutes=1))
        if minutes < 2 * 60:
            return f"{minutes} min"
        if minutes < 48 * 60:
            return f"{minutes // 60} h"
        return format_unit(minutes // (24 * 60), "duration-day", "long", locale=self.locale)


def _pattern(digits: int) -> str:
    return "#,##0" + ("." + "0" * digits if digits else "")
