"""A day in another script or language, where the source names no language."""

import datetime
import re
from collections import Counter
from functools import partial

import numpy as np
import pyarrow as pa
import pytest
from lake_days import put_comments, put_profile, put_scores

from installation import MONDAY
from modwatch.data.validation.languages import languages, scripts
from modwatch.data.validation.profiles import trailing_findings
from modwatch.installation.resources import Resources, open_resources
from modwatch.monitoring.incidents.incidents import MetricValue, incidents, watched
from modwatch.monitoring.incidents.rules import load_rules
from modwatch.monitoring.incidents.store import IncidentRecord, last_incidents, locked
from modwatch.monitoring.measurements import references
from modwatch.pipeline import daily
from modwatch.settings import Settings
from modwatch.statistics.drift.profile import Profile

WORDS = {
    "en": "the people who write here think that this is not a good answer to what was asked",
    "de": "die Leute die hier schreiben halten das nicht für eine gute Antwort auf diese Frage",
    "ru": "люди которые здесь пишут думают что это не самый хороший ответ на этот вопрос",
    "sr": "ljudi koji ovde pišu misle da to nije dobar odgovor na ono što je neko pitao",
}


@pytest.fixture
def resources(tmp_path, queue_url, monkeypatch):
    shorter = partial(references.ReferencePlan, fixed_days=3)
    monkeypatch.setattr(references, "ReferencePlan", shorter)
    settings = Settings(home=tmp_path, database_url=queue_url)
    with open_resources(settings) as wiring:
        yield wiring


def texts(rng: np.random.Generator, size: int, **shares: float) -> list[str]:
    """Return texts of half a sentence in languages with these shares."""
    chosen = rng.choice([*shares], size, p=[*shares.values()])
    return [" ".join(rng.permutation(WORDS[name].split())[:8]) for name in chosen]


def put(resources: Resources, number: int, size: int, **shares: float) -> datetime.date:
    day, rng = MONDAY + datetime.timedelta(days=number), np.random.default_rng([3, number])
    put_comments(resources.lake, day, size, text=texts(rng, size, **shares), platform="forum")
    put_scores(resources.lake, day, rng.beta(0.6, 5, size).astype(np.float32))
    put_profile(resources.lake, day)
    return day


def evening(resources: Resources, day: datetime.date) -> int:
    daily.detect_drift(resources, day)
    return daily.raise_alerts(resources, day)


def active(resources: Resources) -> dict[str, IncidentRecord]:
    with locked(resources.database, "incident") as connection:
        known = last_incidents(connection, "incident")
    return {name: record for name, record in known.items() if record.is_active}


def test_a_day_in_cyrillic_is_one_alert_with_amounts(resources):
    for number in range(5):
        assert evening(resources, put(resources, number, 400, en=0.98, ru=0.02)) == 0
    day = put(resources, 5, 400, ru=1.0)
    assert evening(resources, day) == 1
    assert evening(resources, put(resources, 6, 400, ru=1.0)) == 0
    (incident,) = active(resources).values()
    assert (incident.name, incident.severity, incident.since) == ("scores", "warning", day)
    assert incident.headline.startswith(
        "Comments are in another script than on the days before: "
        "Cyrillic 100 % of comments, usually "
    )
    assert set(incident.members) == {
        "script_changed[script,trailing]",
        "detected_language_changed[detected_language,trailing]",
    }
    assert not re.search("[а-я]", incident.text)
    assert evening(resources, put(resources, 7, 400, en=0.98, ru=0.02)) == 1
    assert active(resources) == {}


def test_another_language_in_the_same_script_is_one_alert(resources):
    for number in range(4):
        assert evening(resources, put(resources, number, 400, en=1.0)) == 0
    assert evening(resources, put(resources, 4, 400, en=0.3, de=0.7)) == 1
    (incident,) = active(resources).values()
    assert incident.rule == "detected_language_changed"
    assert incident.headline.endswith(": de 68.5 % of comments, usually 0 %")


def test_small_days_are_not_compared(resources):
    for number in range(4):
        assert evening(resources, put(resources, number, 190, en=1.0)) == 0
    assert evening(resources, put(resources, 4, 190, ru=1.0)) == 0


def test_a_year_of_an_ordinary_mix_has_no_alert():
    """The mix varies from day to day, and is another on weekends."""
    mix = {"de": 0.4, "en": 0.3, "ru": 0.2, "sr": 0.1}
    rng = np.random.default_rng(11)
    pool = {name: shown(rng, name) for name in mix}
    rules = [rule for rule in load_rules() if rule.feature in ("script", "detected_language")]
    days: list[Profile] = []
    values: list[MetricValue] = []
    for number in range(365):
        share = rng.dirichlet(150 * np.array([*mix.values()]))
        if number % 7 > 4:
            share[0] *= 0.8
        size = int(rng.integers(210, 700))
        chosen = rng.choice([*mix], size, p=share / share.sum())
        rows = [pool[name][rng.integers(len(pool[name]))] for name in chosen]
        parts = {
            feature: Counter(row[at] for row in rows)
            for at, feature in enumerate(("script", "detected_language"))
        }
        days.append(Profile(comments=size, categories=parts))
        found = trailing_findings(days[-1], days[-15:-1])
        names = ("metric", "feature", "reference", "value", "low", "high", "n")
        values += [
            MetricValue(
                day=MONDAY + datetime.timedelta(days=number),
                **{name: getattr(finding, name) for name in names},
                status=finding.status,
            )
            for finding in found.values()
        ]
    series = [one for rule in rules for one in watched(rule, values).values()]
    assert sum(value.status == "ok" for one in series for value in one) > 720
    assert [incidents(rule, one) for rule in rules for one in watched(rule, values).values()] == [
        [],
        [],
    ]


def shown(rng: np.random.Generator, name: str) -> list[tuple[str, str]]:
    """Return script and language as they are detected in texts of a language."""
    some = pa.array(texts(rng, 300, **{name: 1.0}))
    return [*zip(scripts(some), languages(some), strict=True)]
