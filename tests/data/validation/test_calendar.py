"""The calendar file: what it says of a day, and what is refused."""

import re
from datetime import date
from pathlib import Path

import pytest

from modwatch.common.errors import SettingsError
from modwatch.data.validation.calendar import load_calendar
from modwatch.statistics.drift.seasons import Calendar

OPS = (Path(__file__).parents[3] / "docs" / "ops.md").read_text()


def entry(name: str, first: str, last: str = "", volume: str = "0.3") -> str:
    until = f"last = {last}\n" if last else ""
    return f'[[days]]\nname = "{name}"\nfirst = {first}\n{until}volume = {volume}\n'


CHRISTMAS = entry("Christmas", "2026-12-24", "2026-12-26")


@pytest.fixture
def load(tmp_path):
    def load(text: str | bytes) -> Calendar:
        path = tmp_path / "calendar.toml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return load_calendar(path)

    return load


def test_the_example_of_the_docs_is_read(load):
    (example,) = re.findall(r"<!-- calendar -->\n```toml\n(.*?)```", OPS, re.DOTALL)
    calendar = load(example)
    assert [*calendar.days] == [*(date(2026, 12, day) for day in (24, 25, 26)), date(2026, 9, 20)]
    assert calendar.explanation(date(2026, 9, 20), 2.5) == (
        "Election, when 3 times the usual volume is expected"
    )
    assert (calendar.weekdays[5], calendar.weekdays[6]) == (0.1, 0.0)


@pytest.mark.parametrize(
    ("volume", "ratio", "explained"),
    [
        ("0.3", 0.3, True),
        ("0.3", 0.09, False),
        ("0.3", 0.9, True),
        ("0.3", 1.1, False),
        ("3", 8.9, True),
        ("3", 9.1, False),
        ("3", 0.5, False),
        ("0", 0.4, True),
    ],
)
def test_a_day_is_explained_between_the_usual_volume_and_the_expected(
    load, volume, ratio, explained
):
    calendar = load(entry("Event", "2026-05-01", volume=volume))
    assert bool(calendar.explanation(date(2026, 5, 1), ratio)) is explained
    assert not calendar.explanation(date(2026, 5, 2), ratio)


def test_an_entry_within_a_longer_one_counts_in_its_place(load):
    school = entry("School holidays", "2026-12-20", "2027-01-06", "0.7")
    for text in (CHRISTMAS + school, school + CHRISTMAS):
        days = load(text).days
        assert days[date(2026, 12, 23)] == days[date(2026, 12, 27)] == ("School holidays", 0.7)
        assert days[date(2026, 12, 25)] == ("Christmas", 0.3)


def test_a_closed_weekday_may_be_empty_and_another_may_not(load):
    calendar = load("[weekdays]\nsunday = 0\nfriday = 0.1")
    explained = [bool(calendar.explanation(date(2026, 1, day), 0.0)) for day in range(5, 12)]
    assert explained == [False] * 6 + [True]
    assert calendar.weekdays == {4: 0.1, 5: 0.3, 6: 0.0}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (CHRISTMAS + CHRISTMAS, r"day 'Christmas', 2026-12-24: overlaps 'Christmas', 2026-12-24"),
        (entry("X", "2026-12-26", "2026-12-24"), r"day 'X', 2026-12-26: last must be 0 to 59 days"),
        (entry("X", "2026-02-30"), "cannot be read as TOML"),
        (entry("X", '"soon"'), "day 'X': first"),
        (entry("X", "2026-02-03", volume="-1"), "day 'X': volume"),
        (entry("", "2026-02-03"), "day '': name"),
        (entry("X", "2026-02-03") + "yearly = true", "day 'X': yearly"),
        ("[[days]]\nfirst = 2026-01-01\nvolume = 1", "day number 1: name"),
        ("[weekdays]\nsonntag = 0", "weekdays.sonntag"),
        ("days = [3]", "day number 1"),
        ("[[days]\n", "cannot be read as TOML"),
        ("# Fête".encode("latin-1"), "UnicodeDecodeError"),
    ],
)
def test_a_mistake_is_refused_with_the_entry(load, text, message):
    with pytest.raises(SettingsError, match=message):
        load(text)
    with pytest.raises(SettingsError, match=r"none\.toml.*FileNotFoundError"):
        load_calendar(Path("none.toml"))
