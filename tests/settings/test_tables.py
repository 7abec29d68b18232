from itertools import pairwise
from pathlib import Path

from modwatch.data.sources.settings import SqlSourceSettings
from modwatch.settings import Settings, current_settings_table


def row(settings: Settings, variable: str, **from_file: Path) -> list[str]:
    """Return variable, value and origin; the value is empty when there are two words only."""
    heads, *rows = current_settings_table(settings, from_file).splitlines()
    lines = [line for line in rows if variable in line]
    assert len(lines) == 1
    starts = [heads.index(head) for head in ("variable", "value", "origin", "meaning")]
    return [lines[0][a:b].strip() for a, b in pairwise(starts)]


def test_current_values_come_with_their_origin():
    settings = Settings(review_fraction=0.2, home=Path("h"))
    fraction = ["MODWATCH_REVIEW_FRACTION", "0.2", "environment"]
    assert row(settings, "MODWATCH_REVIEW_FRACTION") == fraction
    assert row(settings, "MODWATCH_SLICE_SHARE")[1:] == ["0.1", "default"]
    assert row(settings, "MODWATCH_LAKE ")[1:] == ["", "default"]
    assert row(settings, "MODWATCH_SOURCE__KIND")[1:] == ["", "default"]


def test_what_the_settings_file_set_comes_from_it():
    settings = Settings(review_fraction=0.2, home=Path("h"))
    added = {"modwatch_home": Path("modwatch.env"), "MODWATCH_LAKE": Path("modwatch.env")}
    assert row(settings, "MODWATCH_HOME", **added)[1:] == ["h", "modwatch.env"]
    assert row(settings, "MODWATCH_REVIEW_FRACTION", **added)[1:] == ["0.2", "environment"]
    assert row(settings, "MODWATCH_LAKE ", **added)[1:] == ["", "default"], "no such value"


def test_secrets_are_masked():
    source = SqlSourceSettings(url="x://mod:hunter2@db/x", query="SELECT 1\n  WHERE :start")
    settings = Settings(
        database_url="postgresql://mod:hunter2@db/x",
        sampling_salt="hunter2",
        mlflow_url="https://mod:hunter2@mlflow/x",
        decision_webhook_secret="",
        source=source,
    )
    assert "hunter2" not in current_settings_table(settings)
    assert row(settings, "MODWATCH_SAMPLING_SALT")[1:] == ["****", "environment"]
    assert row(settings, "MODWATCH_MLFLOW_URL")[1:] == ["https://****@mlflow/x", "environment"]
    assert row(settings, "MODWATCH_DECISION_WEBHOOK_SECRET")[1:] == ["", "environment"]
    assert row(settings, "MODWATCH_ALERT_WEBHOOK_SECRET")[1:] == ["", "default"]
    assert row(settings, "MODWATCH_SOURCE__URL")[1:] == ["****", "environment"]
    assert row(settings, "MODWATCH_SOURCE__QUERY")[1] == "SELECT 1 WHERE :start"


def test_only_the_variables_of_the_source_are_shown_and_maps_as_json():
    roles = Settings(oidc_roles={"staff": "moderator"})
    assert row(roles, "MODWATCH_OIDC_ROLES")[1] == '{"staff": "moderator"}'
    table = current_settings_table(Settings(source={"kind": "community"}))
    assert "MODWATCH_SOURCE__SEED" in table
    assert "MODWATCH_SOURCE__PATH" not in table
