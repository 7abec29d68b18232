"""Numbers of labels that Wei, Zufall & Jia print.

Not to be had from what is printed: Table 1, "Stratified", needs the positives of each of the eight
strata; Table 3 but its first row needs the classifiers' scores of CivilComments.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from modwatch.common.errors import DesignError
from modwatch_lab.sample_size import required_labels

TABLE_2 = {
    0.1: (865, 3458, 13830),
    0.059: (1532, 6127, 24508),
    0.01: (9508, 38031, 152122),
    0.001: (95941, 383762, 1535047),
}


@pytest.mark.parametrize(
    ("prevalence", "relative", "labels"),
    [
        (prevalence, relative, labels)
        for prevalence, row in TABLE_2.items()
        for relative, labels in zip((0.2, 0.1, 0.05), row, strict=True)
    ],
)
def test_table_2_to_the_unit(prevalence, relative, labels):
    assert required_labels(prevalence, relative_error=relative) == labels


@pytest.mark.parametrize(("relative", "labels"), [(0.2, 2247), (0.1, 8986), (0.05, 35942)])
def test_table_3_random_sampling(relative, labels):
    assert required_labels(0.041, relative_error=relative) == pytest.approx(labels, abs=1)


#: Lower end of the interval of the prevalence in percent, and random labels.
TABLE_1 = {
    "r/politics": (6.42, 1401),
    "r/AskReddit": (4.29, 2142),
    "r/sex": (2.63, 3556),
    "r/pcmasterrace": (3.61, 2567),
    # Printed as 3.74 to 4.76: digits changed places, as the line's other figures tell.
    "r/wow": (3.76, 2455),
    "r/legaladvice": (1.25, 7591),
}


@pytest.mark.parametrize(("low", "labels"), TABLE_1.values(), ids=TABLE_1)
def test_table_1_random_labels_are_those_of_the_lower_bound(low, labels):
    """The table prints two decimals of a percentage."""
    least, most = (required_labels((low + sign * 0.005) / 100) for sign in (1, -1))
    assert least <= labels <= most < 1.01 * least


@given(st.floats(1e-6, 1), st.floats(0.01, 1), st.floats(0.01, 0.99))
def test_labels_are_the_least_whole_number_that_does(prevalence, relative, confidence):
    labels = required_labels(prevalence, relative_error=relative, confidence=confidence)
    exact = (1 - prevalence) / prevalence * (stats.norm.ppf((1 + confidence) / 2) / relative) ** 2
    assert labels >= max(1, exact - 1e-6)
    assert labels - 1 <= exact + 1e-6


@pytest.mark.parametrize(
    ("given", "refused"),
    [
        ({"prevalence": 0}, r"must be in \(0, 1\], got 0"),
        ({"prevalence": 1.1}, r"must be in \(0, 1\]"),
        ({"prevalence": 0.1, "relative_error": 0}, "above 0, got 0"),
        ({"prevalence": 0.1, "confidence": 1}, r"Confidence must be in \(0, 1\)"),
    ],
)
def test_what_no_sample_has_is_refused(given, refused):
    with pytest.raises(DesignError, match=refused):
        required_labels(**given)
