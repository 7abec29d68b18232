import datetime
from pathlib import Path

import pytest
from pydantic import ValidationError

from modwatch.errors import SettingsError
from modwatch.settings import Settings, load_settings, settings_table

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what a test sets is set."""
    import os

    for name in [name for name in os.environ if name.startswith("MODWATCH_")]:
        monkeypatch.delenv(name)


def test_without_any_variable_the_synthetic_community_is_the_source() -> None:
    settings = load_settings()
    assert settings.source.kind == "community"
    assert settings.lake_root == str(Path("var") / "lake")
    assert settings.checks_root == str(Path("var") / "lake" / "_checks")


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("MODWATCH_REVIEW_FRACTION", "0"),
        ("MODWATCH_REVIEW_FRACTION", "-0.1"),
        ("MODWATCH_REVIEW_FRACTION", "1.5"),
        ("MODWATCH_REVIEW_FRACTION", "nan"),
        ("MODWATCH_REVIEW_FRACTION", "half"),
        ("MODWATCH_SLICE_SHARE", "1"),
        ("MODWATCH_TOXIC_SHARE", "2"),
        ("MODWATCH_STRATEGY", "guessing"),
        ("MODWATCH_SHARD_ROWS", "0"),
        ("MODWATCH_WINDOW_DAYS", "0"),
        ("MODWATCH_LEASE_MINUTES", "0"),
        ("MODWATCH_FIRST_DAY", "yesterday"),
        ("MODWATCH_SOURCE__KIND", "carrier pigeons"),
    ],
)
def test_an_impossible_value_is_refused_by_its_variable(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(SettingsError) as caught:
        load_settings()
    assert variable.removesuffix("__KIND") in str(caught.value)


@pytest.mark.parametrize("value", ["0.000001", "0.05", "1"])
def test_every_review_fraction_above_0_up_to_1_will_do(
    monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("MODWATCH_REVIEW_FRACTION", value)
    assert load_settings().review_fraction == float(value)


def test_an_unknown_strategy_is_answered_with_the_known_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MODWATCH_STRATEGY", "guessing")
    with pytest.raises(SettingsError, match=r"uncertainty.*toxicity.*hybrid"):
        load_settings()


def test_a_missing_or_unknown_setting_of_a_source_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODWATCH_SOURCE__KIND", "files")
    with pytest.raises(SettingsError, match="PATH"):
        load_settings()
    monkeypatch.setenv("MODWATCH_SOURCE__PATH", "incoming")
    assert load_settings().source.path == "incoming"
    monkeypatch.setenv("MODWATCH_SOURCE__PATHS", "incoming")
    with pytest.raises(SettingsError, match="PATHS"):
        load_settings()


def test_days_out_of_order_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODWATCH_FIRST_DAY", "2026-01-05")
    monkeypatch.setenv("MODWATCH_LAST_DAY", "2026-01-04")
    with pytest.raises(SettingsError, match=r"MODWATCH_FIRST_DAY is after MODWATCH_LAST_DAY"):
        load_settings()


WEBHOOK = {"WEBHOOK_URL": "https://hook/x", "WEBHOOK_SECRET": "hunter2"}
MAIL = {
    "SMTP_URL": "smtp://mod:hunter2@mail",
    "MAIL_FROM": "modwatch@example.org",
    "MAIL_TO": '["ops@example.org"]',
}


def set_alerts(monkeypatch: pytest.MonkeyPatch, values: dict[str, str]) -> None:
    for name, value in values.items():
        monkeypatch.setenv(f"MODWATCH_ALERT_{name}", value)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({**WEBHOOK, "WEBHOOK_URL": "file:///etc/hunter2"}, "MODWATCH_ALERT_WEBHOOK_URL"),
        ({**WEBHOOK, "WEBHOOK_URL": "https://hunter2\r\nX: y"}, "MODWATCH_ALERT_WEBHOOK_URL"),
        ({**WEBHOOK, "WEBHOOK_SECRET": ""}, "MODWATCH_ALERT_WEBHOOK_SECRET"),
        ({**MAIL, "MAIL_FROM": ""}, "MODWATCH_ALERT_MAIL_FROM"),
        ({**MAIL, "MAIL_TO": "[]"}, "MODWATCH_ALERT_MAIL_TO"),
        ({**MAIL, "MAIL_TO": '["a@b\\nBcc: c@d"]'}, "MODWATCH_ALERT_MAIL_TO"),
        ({"TIMEOUT": "0"}, "MODWATCH_ALERT_TIMEOUT"),
    ],
)
def test_half_a_channel_is_refused(
    monkeypatch: pytest.MonkeyPatch, values: dict[str, str], said: str
) -> None:
    set_alerts(monkeypatch, values)
    with pytest.raises(SettingsError, match=said) as caught:
        load_settings()
    assert "hunter2" not in str(caught.value)


def test_whole_channels_are_taken_and_shown_without_secrets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    set_alerts(monkeypatch, WEBHOOK | MAIL)
    settings = load_settings()
    assert settings.alert_mail_to == ("ops@example.org",)
    assert "hunter2" not in repr(settings)


def test_secrets_stand_in_no_representation_and_no_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODWATCH_DATABASE_URL", "postgresql://mod:hunter2@db/x")
    monkeypatch.setenv("MODWATCH_SAMPLING_SALT", "hunter2")
    monkeypatch.setenv("MODWATCH_SOURCE__KIND", "sql")
    monkeypatch.setenv("MODWATCH_SOURCE__URL", "postgresql://mod:hunter2@db/x")
    with pytest.raises(SettingsError) as caught:  # the query is missing
        load_settings()
    assert "hunter2" not in str(caught.value)
    assert caught.value.__cause__ is None
    monkeypatch.setenv("MODWATCH_SOURCE__QUERY", "SELECT 1")
    settings = load_settings()
    assert "hunter2" not in repr(settings)
    assert "hunter2" not in settings.model_dump_json()


def test_lists_and_maps_are_json(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODWATCH_SOURCE__KIND", "files")
    monkeypatch.setenv("MODWATCH_SOURCE__PATH", "x")
    monkeypatch.setenv("MODWATCH_SOURCE__COLUMNS", '{"text": "body"}')
    assert load_settings().source.columns == {"text": "body"}


@pytest.mark.parametrize("variable", ["MODWATCH_ALERT_MAIL_TO", "MODWATCH_SOURCE__COLUMNS"])
def test_what_is_no_json_is_named_and_not_quoted(
    monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(variable, "hunter2@example.org")
    with pytest.raises(SettingsError, match=variable.partition("__")[0]) as caught:
        load_settings()
    assert "JSON" in str(caught.value)
    assert "hunter2" not in str(caught.value)
    assert caught.value.__suppress_context__


def test_settings_do_not_change(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = load_settings()
    with pytest.raises(ValidationError):
        settings.review_fraction = 0.5
    monkeypatch.setenv("MODWATCH_REVIEW_FRACTION", "0.5")
    assert settings.review_fraction == 0.05


def test_the_lake_may_lie_elsewhere() -> None:
    settings = Settings(home=Path("h"), lake="s3://bucket/lake/")
    assert settings.lake_root == "s3://bucket/lake/"
    assert settings.checks_root == "s3://bucket/lake/_checks"
    assert settings.models_folder == Path("h") / "models"


def test_the_table_of_the_readme_is_what_the_code_says() -> None:
    readme = (ROOT / "README.md").read_text()
    missing = [row for row in settings_table().splitlines() if row not in readme]
    assert missing == [], "run `modwatch settings` and put its table in the README"


def test_the_table_has_every_setting_once() -> None:
    rows = settings_table().splitlines()[2:]
    names = [row.split("`")[1] for row in rows]
    for name in Settings.model_fields:
        if name != "source":
            assert names.count(f"MODWATCH_{name.upper()}") == 1
    assert names.count("MODWATCH_SOURCE__KIND") == 1
    assert datetime.date(2010, 1, 1).isoformat() in next(r for r in rows if "FIRST_DAY" in r)


def test_a_misspelt_variable_is_refused_with_the_nearest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODWATCH_REVIEW_FRACTON", "0.1")
    with pytest.raises(SettingsError, match="did you mean MODWATCH_REVIEW_FRACTION"):
        load_settings()
