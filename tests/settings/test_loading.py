import os
from pathlib import Path

import pytest

from modwatch.common.errors import SettingsError
from modwatch.settings import Settings, load_settings


@pytest.fixture(autouse=True)
def _clean(monkeypatch):
    """Only what a test sets is set."""
    for name in [name for name in os.environ if name.startswith("MODWATCH_")]:
        monkeypatch.delenv(name)


def test_without_any_variable_there_is_no_source():
    settings = load_settings()
    assert settings.source is None
    assert settings.lake_root == str(Path("var") / "lake")
    assert settings.checks_root == str(Path("var") / "lake" / "_checks")


@pytest.mark.parametrize(
    ("variable", "value", "expected"),
    [
        ("REVIEW_FRACTION", "0", "a number in (0, 1], got 0"),
        ("REVIEW_FRACTION", "1.5", "a number in (0, 1], got 1.5"),
        ("REVIEW_FRACTION", "nan", "a number in (0, 1], got nan"),
        ("REVIEW_FRACTION", "one half", "a number in (0, 1], got 'one half'"),
        ("SLICE_SHARE", "1", "a number in [0, 1), got 1"),
        ("FOLLOW_UP_SHARE", "2", "a number in [0, 1], got 2"),
        ("SOURCE__KIND", "pigeons", "files, sql, community or replay, got pigeons"),
        ("SHARD_TOKENS", "0", "an integer of at least 1, got 0"),
        ("WINDOW_DAYS", "1.5", "an integer of at least 1, got 1.5"),
        ("REQUIRE_CODE", "maybe", "true or false, got maybe"),
        ("FIRST_DAY", "yesterday", "a date such as 2026-01-31, got yesterday"),
        ("ALERT_CHANNELS", '{"hunter2": 1}', 'a JSON list such as ["a", "b"]'),
        ("SCORER", "http://mod:hunter2@host name", "valid text"),
        ("SCORER_TOKEN", "hunter2\n", "visible ASCII characters, without a line break at the end"),
        ("SCORER_TOKEN", "hünter2", "visible ASCII characters, without a line break at the end"),
        ("OIDC_ROLES", '{"a": 1}', 'a JSON map such as {"a": "b"}'),
    ],
)
def test_the_error_for_an_invalid_value_names_variable_range_and_value(
    monkeypatch, variable, value, expected
):
    monkeypatch.setenv(f"MODWATCH_{variable}", value)
    with pytest.raises(SettingsError) as caught:
        load_settings()
    assert str(caught.value) == f"MODWATCH_{variable} must be {expected}"


NO_KIND = "MODWATCH_SOURCE__KIND is not set; set it to files, sql, community or replay"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            "SOURCE__KIND=files",
            "MODWATCH_SOURCE__KIND=files requires MODWATCH_SOURCE__PATH; set it "
            "(File, folder or glob; `{dt}` stands for the day)",
        ),
        (
            "SOURCE__KIND=community SOURCE__QUERY=x",
            "MODWATCH_SOURCE__QUERY does not apply to MODWATCH_SOURCE__KIND=community; unset it",
        ),
        ("SOURCE__URL=sqlite:///a.db", NO_KIND),
        ("SOURCE__PATH=a SOURCE__QUERY=x", NO_KIND),
        (
            "REVIEW_FRACTON=x",
            "MODWATCH_REVIEW_FRACTON is not a setting of Modwatch; "
            "did you mean MODWATCH_REVIEW_FRACTION?",
        ),
        (
            "SOURCE_KIND=x",
            "MODWATCH_SOURCE_KIND is not a setting of Modwatch; "
            "did you mean MODWATCH_SOURCE__KIND?",
        ),
        ("XYZZY=x", "MODWATCH_XYZZY is not a setting of Modwatch; unset it"),
        (
            "FIRST_DAY=2026-01-05 LAST_DAY=2026-01-04",
            "MODWATCH_FIRST_DAY is after MODWATCH_LAST_DAY; swap them",
        ),
        (
            "FIRST_DAY=today SHARD_TOKENS=few",
            "MODWATCH_FIRST_DAY must be a date such as 2026-01-31, got today; "
            "MODWATCH_SHARD_TOKENS must be an integer of at least 1, got few",
        ),
    ],
)
def test_variables_that_do_not_fit_are_named_at_once(monkeypatch, given, message):
    for assignment in given.split():
        name, value = assignment.split("=")
        monkeypatch.setenv(f"MODWATCH_{name}", value)
    with pytest.raises(SettingsError) as caught:
        load_settings()
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        ({"PATH": "incoming", "TIMESTAMP_COLUMN": "posted"}, "files"),
        ({"PATH": "corpus", "FIRST_DAY": "2026-01-05"}, "replay"),
        ({"URL": "sqlite:///a.db", "QUERY": "SELECT"}, "sql"),
        ({"SEED": "3"}, "community"),
    ],
)
def test_the_kind_of_a_source_follows_from_its_variables(monkeypatch, given, kind):
    for name, value in given.items():
        monkeypatch.setenv(f"MODWATCH_SOURCE__{name}", value)
    assert load_settings().source.kind == kind


@pytest.mark.parametrize("value", ['{"kind": "sql", "url": "x://mod:hunter2@db', '["hunter2"]'])
def test_an_invalid_source_in_json_is_not_quoted(monkeypatch, value):
    monkeypatch.setenv("MODWATCH_SOURCE", value)
    with pytest.raises(SettingsError, match="MODWATCH_SOURCE__KIND must be files") as caught:
        load_settings()
    assert "hunter2" not in str(caught.value)


WEBHOOK = {"WEBHOOK_URL": "https://hook/x", "WEBHOOK_SECRET": "hunter2"}
SMTP = "smtp://mod:hunter2@mail"
MAIL = {"SMTP_URL": f"{SMTP}?from=modwatch@example.org&to=ops@example.org"}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({**WEBHOOK, "WEBHOOK_URL": "file:///etc/hunter2"}, "MODWATCH_ALERT_WEBHOOK_URL"),
        ({**WEBHOOK, "WEBHOOK_URL": "https://hunter2\r\nX: y"}, "MODWATCH_ALERT_WEBHOOK_URL"),
        ({**WEBHOOK, "WEBHOOK_SECRET": ""}, "MODWATCH_ALERT_WEBHOOK_SECRET"),
        ({**WEBHOOK, "WEBHOOK_SECRET": "whsec_hunter2"}, "base64 of 24 to 64 bytes"),
        ({**WEBHOOK, "WEBHOOK_SECRET": f"whsec_{'a' * 31}!"}, "base64 of 24 to 64 bytes"),
        ({**WEBHOOK, "WEBHOOK_SECRET": f"whsec_{'a' * 92}"}, "base64 of 24 to 64 bytes"),
        ({"SMTP_URL": f"{SMTP}?to=ops@example.org"}, "MODWATCH_ALERT_SMTP_URL requires"),
        ({"SMTP_URL": f"{SMTP}?from=a@b&from=c@d&to=e@f"}, "MODWATCH_ALERT_SMTP_URL requires"),
        ({"SMTP_URL": f"{SMTP}?from=ops@example.org"}, "MODWATCH_ALERT_SMTP_URL requires"),
        ({"SMTP_URL": f"{SMTP}?from=a@b&to=a@b%0ABcc:+c@d"}, "MODWATCH_ALERT_SMTP_URL requires"),
    ],
)
def test_half_a_channel_is_rejected_and_whole_ones_are_shown_without_secrets(
    monkeypatch, values, message
):
    for name, value in values.items():
        monkeypatch.setenv(f"MODWATCH_ALERT_{name}", value)
    with pytest.raises(SettingsError, match=message) as caught:
        load_settings()
    assert "hunter2" not in str(caught.value)
    for name, value in (WEBHOOK | MAIL).items():
        monkeypatch.setenv(f"MODWATCH_ALERT_{name}", value)
    settings = load_settings()
    assert "hunter2" not in repr(settings)


def test_half_a_provider_is_rejected(monkeypatch):
    monkeypatch.setenv("MODWATCH_OIDC_ISSUER", "https://id.example.org")
    with pytest.raises(SettingsError, match="requires MODWATCH_OIDC_CLIENT_ID"):
        load_settings()


def test_secrets_stand_in_no_representation_and_no_message(monkeypatch):
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


@pytest.mark.parametrize("variable", ["MODWATCH_ALERT_CHANNELS", "MODWATCH_SOURCE__COLUMNS"])
def test_what_is_no_json_is_named_and_not_quoted(monkeypatch, variable):
    monkeypatch.setenv(variable, "hunter2@example.org")
    with pytest.raises(SettingsError, match=f"{variable} is not JSON; use a JSON ") as caught:
        load_settings()
    assert "hunter2" not in str(caught.value)
    assert caught.value.__suppress_context__


def test_a_file_of_another_name_is_refused_and_one_that_is_not_there_is_the_default(
    monkeypatch, tmp_path
):
    monkeypatch.setenv("MODWATCH_CONFIG", str(tmp_path / "config"))
    with pytest.raises(SettingsError, match=r"config, which is no folder"):
        load_settings()
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "..data").mkdir()  # of a mounted ConfigMap
    assert load_settings().file("policy.toml") is None
    (tmp_path / "config" / "policy.toml").touch()
    assert load_settings().file("policy.toml") == tmp_path / "config" / "policy.toml"
    (tmp_path / "config" / "alert.toml").touch()
    with pytest.raises(SettingsError, match=r"alert\.toml in MODWATCH_CONFIG is none of alerts"):
        load_settings()


def test_the_lake_may_lie_elsewhere():
    settings = Settings(home=Path("h"), lake="s3://bucket/lake/")
    assert settings.lake_root == "s3://bucket/lake/"
    assert settings.checks_root == "s3://bucket/lake/_checks"
    assert settings.models_folder == Path("h") / "models"


def test_numbers_paths_and_maps_are_read(monkeypatch):
    monkeypatch.setenv("MODWATCH_REVIEW_FRACTION", "1")
    monkeypatch.setenv("MODWATCH_SOURCE__PATH", "incoming")
    monkeypatch.setenv("MODWATCH_SOURCE__COLUMNS", '{"text": "body"}')
    monkeypatch.setenv("modwatch_oidc_roles__staff", "moderator")
    settings = load_settings()
    assert settings.review_fraction == 1
    assert settings.source.path == "incoming"
    assert settings.source.columns == {"text": "body"}
    assert settings.oidc_roles == {"staff": "moderator"}
    assert Settings(review_fraction=1e-6).review_fraction == 1e-6
