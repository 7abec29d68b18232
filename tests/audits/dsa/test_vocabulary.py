import csv
import hashlib
import io
import itertools

from modwatch.audits.dsa.vocabulary import (
    ALL_QUALITATIVE,
    APPLICABILITY,
    COLUMNS,
    COUNTRIES,
    LANGUAGES,
    LANGUAGES_ONLY,
    NAM_TOTAL,
    NAM_TRUSTED_FLAGGER,
    OWN_INITIATIVE,
    PLACEHOLDER_PERIOD,
    PLACEHOLDER_SCOPE,
    QUALITATIVE,
    RATES,
    REQUIRED_OF,
    SECTION,
    TOTAL,
    Indicator,
    Provider,
    counts_of,
    indicators_of,
)

#: The Commission's English CSV of part 8, document 113338 of its newsroom: 5345 bytes.
PUBLISHED = "1a687f468468b25b214f505c4a6cb906d6ee8cc80d20f5a60eca383cc1bea71d"
#: Names that end in a blank there.
BLANK = {Indicator.MEASURES_SOLELY.value, Indicator.NOTICES_SOLELY.value, OWN_INITIATIVE}


def test_the_words_make_the_file_that_the_commission_publishes():
    first, last = next(iter(LANGUAGES)), list(LANGUAGES)[-1]
    places = (first, PLACEHOLDER_SCOPE, last)
    rows = [
        (scope, indicator)
        for scope in (TOTAL, OWN_INITIATIVE, NAM_TOTAL, NAM_TRUSTED_FLAGGER)
        for indicator in indicators_of(scope)
    ]
    rows += [(place, indicator) for indicator in counts_of(first) for place in places]
    rows += list(zip(places, RATES, strict=True)) * 3
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for scope, indicator in rows:
        words = APPLICABILITY[REQUIRED_OF.get(scope, Provider.VLOP)]
        names = [f"{name} " if name in BLANK else name for name in (indicator.value, scope)]
        writer.writerow([words, "", PLACEHOLDER_PERIOD, SECTION, *names, "", ""])

    content = text.getvalue().encode()

    assert hashlib.sha256(content).hexdigest() == PUBLISHED


def test_the_languages_are_those_of_the_treaties():
    assert len(LANGUAGES) == 24
    assert list(LANGUAGES) == sorted(LANGUAGES)
    assert not set(COUNTRIES) & set(LANGUAGES)
    assert set(LANGUAGES_ONLY) < set(LANGUAGES)


def test_each_kind_of_provider_has_the_scopes_of_those_before_it():
    scopes = [kind.scopes for kind in Provider]

    assert [len(scope) for scope in scopes] == [2, 3, 4, 28]
    assert all(more[: len(less)] == less for less, more in itertools.pairwise(scopes))


def test_the_texts_on_automated_means_are_asked_of_all():
    assert len(ALL_QUALITATIVE) == 11
    assert all(ALL_QUALITATIVE[name] is Provider.INTERMEDIARY for name in QUALITATIVE)
