import datetime

import pytest

from modwatch.common.errors import SettingsError
from modwatch.data.validation.rules import Thresholds
from modwatch.monitoring.incidents.incidents import MetricValue, incidents
from modwatch.monitoring.incidents.metrics import with_usual_volumes
from modwatch.monitoring.incidents.rules import SEVERITIES, load_rules
from modwatch.statistics.drift.seasons import Volume, usual_factor

RULE = """
[[rules]]
name = "mine"
severity = "warning"
metric = "psi"
direction = "above"
open = { bound = 0.3, compare = "low", days = 2 }
close = { bound = 0.1 }
look_at = "The scores."
"""


@pytest.fixture
def load(tmp_path):
    """Load rules from a text: `load(text)`."""

    def loaded(text: str):
        path = tmp_path / "rules.toml"
        path.write_text(text, encoding="utf-8")
        return {rule.name: rule for rule in load_rules(path)}

    return loaded


@pytest.mark.parametrize(
    ("share", "steady"),
    [(0.3, False), (0.35, False), (2.95, False), (3.05, False), (0.6, True), (0.65, True),
     (1.55, True), (1.65, True)],
)  # fmt: skip
def test_the_volume_has_the_bounds_of_data_validation(share, steady):
    """Those of the thresholds, or closer where the volume has varied little."""
    day, bounds = datetime.date(2026, 3, 2), Thresholds()
    past = {
        day - datetime.timedelta(days=back): Volume(rows=1_000, ratio=1.0)
        for back in range(1, 30 if steady else 4)
    }
    factor = usual_factor(day, past)
    assert factor == (1.6 if steady else bounds.high_volume)
    value = MetricValue(day=day, metric="volume_ratio", feature="comments", value=share, n=1_000)
    judged = with_usual_volumes([value], past)
    opened = [rule.name for rule in load_rules() if rule.metric == "volume_ratio"
              and incidents(rule, judged)]  # fmt: skip
    warned = not max(bounds.low_volume, 1 / factor) <= share <= min(bounds.high_volume, factor)
    assert opened == ([] if not warned else ["volume_low" if share < 1 else "volume_high"])


def test_the_rules_of_modwatch_cover_what_ops_watch():
    rules = load_rules()
    assert {rule.severity for rule in rules} == set(SEVERITIES)
    watched = {rule.metric for rule in rules}
    assert watched >= {
        *("checks_rejected", "checks_warned", "volume_ratio", "psi", "flagged_share_change"),
        *("window_accuracy", "window_oc_accuracy", "window_review_efficiency", "window_ece"),
        *("completion", "queue_age_oldest_hours"),
    }
    psi = {rule.reference for rule in rules if rule.metric == "psi"}
    assert psi == {"fixed", "trailing"}
    for rule in rules:  # what is estimated opens by its interval: noise raises no alert
        if rule.metric.startswith(("window_", "psi", "flagged_share", "missing_share")):
            assert rule.open.compare != "value", rule.name


def test_a_fall_of_ten_points_is_critical_and_one_of_two_a_warning():
    rules = {rule.name: rule for rule in load_rules()}
    for metric in ("accuracy", "oc_accuracy"):
        warning, critical = rules[f"{metric}_fell"], rules[f"{metric}_fell_far"]
        assert (warning.open.bound, warning.severity) == (-0.02, "warning")
        assert (critical.open.bound, critical.severity) == (-0.1, "critical")
        low = rules[f"{metric}_low"]
        assert {warning.name, critical.name} < set(low.unless)
        assert {warning.cause, critical.cause, low.cause} == {"quality"}
    assert {name for rule in rules.values() for name in rule.unless} < set(rules)


def test_rules_of_ones_own_come_on_top_or_in_place_of_ours(load):
    shipped = {rule.name for rule in load_rules()}
    assert set(load(RULE)) == {*shipped, "mine"}
    assert load(RULE)["mine"].open.bound == 0.3
    replaced = load(RULE.replace("mine", "queue_old"))
    assert set(replaced) == shipped
    assert replaced["queue_old"].metric == "psi"
    assert "queue_old" not in load('disabled = ["queue_old"]')
    assert set(load(f"keep_defaults = false\n{RULE}")) == {"mine"}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('name = "mine"', 'name = "My rule"', "rule 'My rule': name"),
        ('name = "mine"', "", "rule number 1: name: Field required"),
        ('severity = "warning"', 'severity = "fatal"', "rule 'mine': severity"),
        ("bound = 0.3", 'bound = "high"', "rule 'mine': open.bound"),
        ("bound = 0.3", "bound = nan", "rule 'mine': open.bound"),
        ("days = 2", "days = 0", "rule 'mine': open.days"),
        ("days = 2", "dais = 2", "rule 'mine': open.dais"),
        ("bound = 0.1", "bound = 0.4", "rule 'mine': close.bound must not be above"),
        ('direction = "above"', 'direction = "below"', "close.bound must not be below"),
        ('"low"', '"middle"', "rule 'mine': open.compare"),
        (
            '"low"',
            '"high"',
            "'mine': close.compare value cannot be combined with open.compare high",
        ),
        ('"low"', '"insufficient"', "rule 'mine': open.compare and close.compare must both be"),
        ('look_at = "The scores."', "", "rule 'mine': look_at: Field required"),
        ("days = 2", "days = 2, x = 1", "rule 'mine': open.x"),
        ('name = "mine"', 'name = "mine"\ntitle = "{value.x}"', "rule 'mine': title: may contain"),
        ('name = "mine"', 'name = "mine"\ncause = "A b"', "rule 'mine': cause"),
        ('metric = "psi"', 'metric = "psi"\nreference = "last"', "rule 'mine': reference"),
        ("[[rules]]", "rules = 3\n[[ruels]]", "rules"),
        ("close = {", "close = ", "cannot be read as TOML"),
    ],
)
def test_a_mistake_is_named_by_rule_and_field(load, old, new, message):
    with pytest.raises(SettingsError) as caught:
        load(RULE.replace(old, new, 1))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_name_twice_or_leaving_out_what_is_not_there_is_refused(load):
    with pytest.raises(SettingsError, match="rule 'mine': name: used more than once"):
        load(RULE + RULE)
    with pytest.raises(
        SettingsError, match=r"disabled: unknown default rule 'queue_odl'.*queue_old"
    ):
        load('disabled = ["queue_odl"]')


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(SettingsError, match=r"none\.toml cannot be read"):
        load_rules(tmp_path / "none.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(SettingsError, match="UnicodeDecodeError"):
        load_rules(tmp_path / "binary.toml")
