import numpy as np
import pyarrow as pa
import pytest

from modwatch.data.validation.profiles import profile_scores
from modwatch.data.validation.scores import valid_scores, validate_scores

IDS = [f"c{number}" for number in range(1000)]


def run(batches, day, ids=IDS, **options):
    comment_ids = [pa.array(ids, pa.string())]
    return validate_scores(batches, day=day, comment_ids=comment_ids, **options)


def failed(checked):
    return {result.name for result in checked.result.failed_of("day")}


@pytest.fixture
def prob():
    return np.random.default_rng(1).beta(1, 9, size=len(IDS))


@pytest.fixture
def trailing():
    """Profiles of four days of scores drawn as `prob` is."""
    rng = np.random.default_rng(2)

    def build(version="1"):
        draws = [rng.beta(1, 9, len(IDS)).astype(np.float32) for _ in range(4)]
        return [profile_scores(past, past > 0.5, [version]) for past in draws]

    return build


def test_good_scores_pass(scores, day, prob, trailing):
    prob[:2] = 0.0, 1.0
    checked = run([scores(IDS[500:], prob[500:]), scores(IDS[:500], prob[:500])], day)

    assert checked.result.status == "passed"
    assert checked.quarantined.num_rows == 0
    assert run([scores(IDS, prob)], day, trailing=trailing()).result.status == "passed"


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (float("nan"), "missing_probability"),
        (1.0001, "probability_out_of_range"),
        (-0.0001, "probability_out_of_range"),
        (float("inf"), "probability_out_of_range"),
    ],
)
def test_a_bad_probability_is_quarantined_and_the_rest_goes_on(scores, day, prob, value, reason):
    prob[3] = value
    batch = scores(IDS, prob)

    checked = run([batch], day)

    assert [(r["comment_id"], r["rule"], r["stage"]) for r in checked.quarantined.to_pylist()] == [
        ("c3", reason, "scores")
    ]
    assert failed(checked) == {"unscored"}
    assert checked.result.status == "warned"
    kept = [i for b in valid_scores([batch], checked) for i in b["comment_id"].to_pylist()]
    assert kept == [i for i in IDS if i != "c3"]


def test_cut_comments_are_counted_and_warned_of(scores, day, prob):
    batch = scores(IDS, prob)
    cut = np.isin(np.arange(len(IDS)), [3, 700])
    batch = batch.set_column(batch.schema.get_field_index("cut"), "cut", pa.array(cut))

    checked = run([batch], day)

    (result,) = (result for result in checked.result.results if result.name == "cut_comments")
    assert (result.passed, result.severity, result.observed) == (False, "warning", "2")
    assert failed(checked) == {"cut_comments"}
    assert checked.result.status == "warned"


def test_scores_that_do_not_belong_together_reject_the_day(scores, day, prob):
    whole, first, rest = (
        scores(IDS[part], prob[part]) for part in (slice(None), slice(500), slice(500, None))
    )
    other = rest.schema.get_field_index("threshold"), pa.array([0.7] * 500)
    for batches, options, name in (
        ([whole, scores(["c7"], [0.5])], {}, "double_scores"),
        ([whole, scores(["stranger"], [float("nan")])], {}, "unknown_scores"),
        ([whole], {"stale": 1}, "stale_scores"),  # of comments that have changed since
        ([first, scores(IDS[500:], prob[500:], version="2")], {}, "several_model_versions"),
        ([first, rest.set_column(other[0], "threshold", other[1])], {}, "several_model_versions"),
    ):
        checked = run(batches, day, **options)
        assert failed(checked) == {name}
        assert checked.result.rejected
        assert checked.quarantined.num_rows == 0


@pytest.mark.parametrize(
    ("missing", "names"),
    [
        (1, {"unscored"}),
        (10, {"unscored"}),
        (11, {"unscored", "unscored_many"}),
        (1000, {"unscored", "unscored_many"}),
    ],
)
def test_missing_scores(scores, day, prob, missing, names):
    checked = run([scores(IDS[missing:], prob[missing:])], day)

    assert failed(checked) == names
    assert checked.result.rejected == ("unscored_many" in names)


def test_no_scores_for_no_comments_pass(day):
    assert run([], day, ids=[]).result.status == "passed"


def test_other_roles_are_left_out(scores, day, prob):
    challenger = scores(IDS, 1 - prob, version="2", role="challenger")

    assert run([scores(IDS, prob), challenger], day).result.status == "passed"


def test_shifted_probabilities_are_a_warning(scores, day, prob, trailing):
    checked = run([scores(IDS, 1 - prob)], day, trailing=trailing())

    assert failed(checked) == {"score_shift", "flagged_shift"}
    assert checked.result.status == "warned"


def test_another_model_version_is_not_compared(scores, day, prob, trailing):
    checked = run([scores(IDS, 1 - prob)], day, trailing=trailing(version="0"))

    assert checked.result.status == "passed"


def test_few_scores_are_not_compared(scores, day, prob, trailing):
    checked = run([scores(IDS[:300], 1 - prob[:300])], day, ids=IDS[:300], trailing=trailing())

    assert checked.result.status == "passed"


def test_while_there_are_few_trailing_days_the_models_own_reference_is_compared(
    scores, day, prob, trailing
):
    held_out = trailing()[0]
    usual = run([scores(IDS, prob)], day, held_out=held_out)
    (shift,) = (rule for rule in usual.result.results if rule.name == "score_shift")
    assert shift.passed
    assert "against held-out comments of the model" in shift.observed

    drifted = run([scores(IDS, np.sqrt(prob))], day, held_out=held_out)
    assert failed(drifted) == {"score_shift", "flagged_shift"}
    (flagged,) = (rule for rule in drifted.result.results if rule.name == "flagged_shift")
    assert flagged.observed.endswith(" on held-out comments of the model")
    assert all("held-out" in rule.expectation for rule in (shift, flagged))

    other = run([scores(IDS, np.sqrt(prob))], day, held_out=trailing(version="2")[0])
    assert failed(other) == {"flagged_shift"}, "of another model: no distance of scores"
