from dataclasses import replace
from datetime import date

import numpy as np
import pytest

from modwatch.audits.dsa.statement import Missing, Rate, ScopeValues
from modwatch.audits.dsa.vocabulary import (
    NAM_TOTAL,
    NAM_TRUSTED_FLAGGER,
    OWN_INITIATIVE,
    TOTAL,
    Provider,
)
from modwatch.common.errors import DsaReportError

NONE = Missing(reason="nobody looked")


def rate(**changes) -> Rate:
    fields = {"value": 0.5, "low": 0.4, "high": 0.6, "labels": 10, "method": "sample"}
    return Rate(**fields | changes)


def counted(solely, others=0) -> ScopeValues:
    return ScopeValues(solely=solely, not_solely=others, accuracy=NONE, precision=NONE, recall=NONE)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"value": 0.7}, "low ≤ value ≤ high"),
        ({"value": float("nan")}, "low ≤ value ≤ high"),
        ({"high": 1.2}, "low ≤ value ≤ high"),
        ({"low": -0.1}, "low ≤ value ≤ high"),
        ({"labels": 0}, "labels: must be at least 1"),
        ({"labels": 1.5}, "labels: must be a whole number"),
        ({"level": 95}, "level: must be in"),
        ({"method": " "}, "method: must not be empty"),
        ({"method": "a\x00b"}, "method: character 2 is a control character"),
        ({"method": "\u202eelpmas"}, "method: character 1 is a control character"),
        ({"method": "\ud800"}, "method: character 1 is a control character"),
    ],
)
def test_impossible_rates_are_refused(changes, message):
    with pytest.raises(DsaReportError, match=message):
        rate(**changes)


def test_the_ends_of_an_interval_may_be_the_value():
    for changes in ({"value": 0.4}, {"low": 0.5, "high": 0.5}, {"labels": 1}):
        assert rate(**changes).value in (0.4, 0.5)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Missing(reason=""), "reason: must not be empty"),
        (lambda: Missing(reason="few", labels=-1), "labels: must not be negative"),
        (lambda: counted(-1), "solely: must .*negative"),
        (lambda: counted(1.0), "solely: must .*whole"),
        (lambda: counted("1"), "solely: must .*whole"),
    ],
)
def test_impossible_reasons_and_counts_are_refused(make, message):
    with pytest.raises(DsaReportError, match=message):
        make()


def test_every_scope_that_is_asked_for_is_stated(report):
    scopes = dict(report().scopes)
    del scopes[NAM_TOTAL]

    with pytest.raises(DsaReportError, match="unknown: NAM Total"):
        report(scopes=scopes)
    with pytest.raises(DsaReportError, match="missing or unknown"):
        report(provider=Provider.INTERMEDIARY, scopes=report().scopes)


@pytest.mark.parametrize(
    ("part", "whole", "provider"),
    [
        (OWN_INITIATIVE, TOTAL, Provider.PLATFORM),
        ("de", TOTAL, Provider.VLOP),
        (NAM_TRUSTED_FLAGGER, NAM_TOTAL, Provider.PLATFORM),
    ],
)
def test_no_part_exceeds_its_whole(report, part, whole, provider):
    scopes = {**report(provider).scopes, part: counted(np.int64(10**6))}

    with pytest.raises(DsaReportError, match=f"{part} exceeds {whole}"):
        report(provider, scopes=scopes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"service": ""}, "service: must not be empty"),
        ({"audit": "\x1b[2J"}, "audit: character 1 is a control character"),
        ({"end": date(2025, 1, 1)}, "end: must not be before start"),
    ],
)
def test_an_impossible_report_is_refused(report, changes, message):
    with pytest.raises(DsaReportError, match=message):
        report(**changes)


def test_a_text_must_not_be_empty(qualitative):
    with pytest.raises(DsaReportError, match="safeguards: must not be empty"):
        replace(qualitative, safeguards="\n")
