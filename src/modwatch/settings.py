"""All settings, in one frozen object, read once at the edge from `MODWATCH_*`.

Every field's description is its documentation; the README's table is generated from it
(`modwatch settings --markdown`) and tested against it.
"""

import datetime
import os
import re
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import Literal

from pydantic import Field, SecretStr, ValidationError, model_validator
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails
from pydantic_settings import BaseSettings, SettingsConfigDict
from pydantic_settings import SettingsError as NotJsonError

from modwatch.errors import SettingsError
from modwatch.source_settings import (
    CommunitySourceSettings,
    FileSourceSettings,
    ReplaySourceSettings,
    SourceSettings,
    SqlSourceSettings,
)

__all__ = [
    "CommunitySourceSettings",
    "FileSourceSettings",
    "ReplaySourceSettings",
    "Settings",
    "SourceSettings",
    "SqlSourceSettings",
    "load_settings",
    "settings_table",
]

_HTTP = re.compile(r"https?://[!-~]+")
_MAIL = re.compile(r"[\w.+-]+@[\w.-]+", re.ASCII)

#: Variables of the demo and its data, which share the prefix.
_NOT_SETTINGS = {"MODWATCH_DATA", "MODWATCH_DEMO_STACK"}


class Settings(BaseSettings):
    """What one installation of Modwatch is told.

    >>> Settings(review_fraction=0.05).review_fraction
    0.05
    """

    model_config = SettingsConfigDict(
        env_prefix="MODWATCH_", env_nested_delimiter="__", frozen=True, extra="forbid"
    )

    home: Path = Field(Path("var"), description="Folder of everything that a run leaves behind")
    lake: str | None = Field(
        None, description="Folder or object-store URL of the Delta tables; `HOME/lake` by default"
    )
    database_url: SecretStr | None = Field(
        None, description="PostgreSQL URL; unset: an embedded server in `HOME/postgres`"
    )
    mlflow_url: str = Field("http://127.0.0.1:5000", description="MLflow tracking server")
    console_url: str = Field("http://127.0.0.1:8090", description="Address of the review console")
    airflow_url: str = Field("http://127.0.0.1:8080", description="Address of Airflow's pages")
    source: SourceSettings = Field(
        default_factory=CommunitySourceSettings,
        description="Where comments come from: `kind` is files, sql, replay or community",
    )
    first_day: datetime.date = Field(
        datetime.date(2010, 1, 1), description="First day that schedules and backfills cover"
    )
    last_day: datetime.date | None = Field(
        None, description="Last day that the schedules cover; unset: no end"
    )
    model_name: str = Field("toxicity", description="Name in the model registry")
    shard_rows: int = Field(50_000, ge=1, description="Comments that one scoring task takes")
    torch_threads: int = Field(2, ge=1, description="CPU threads of one scoring task")
    strategy: Literal["uncertainty", "toxicity", "hybrid"] = Field(
        "uncertainty", description="Review score: what is reviewed first"
    )
    toxic_share: float = Field(
        0.5, ge=0, le=1, description="Share of the capacity by toxicity, for `hybrid`"
    )
    review_fraction: float = Field(
        0.05, gt=0, le=1, description="α: share of the day's comments that people see"
    )
    slice_share: float = Field(
        0.1, ge=0, lt=1, description="ρ: share of the capacity spent on the random slice"
    )
    second_opinion_share: float = Field(
        0.05,
        ge=0,
        le=1,
        description="Share of the reviewed comments that a second person labels "
        "too, to know how often people err; 0 turns it off",
    )
    gold_share: float = Field(
        0.02,
        ge=0,
        le=0.5,
        description="Gold comments that a moderator meets unmarked, as a share of their own labels",
    )
    retest_share: float = Field(
        0.02,
        ge=0,
        le=0.5,
        description="Comments that a moderator labels once more, two weeks later or more, as a "
        "share of their own labels",
    )
    sampling_salt: SecretStr = Field(
        SecretStr(""), description="Secret that makes the random slice unpredictable to outsiders"
    )
    lease_minutes: float = Field(10, gt=0, description="How long a moderator holds an item")
    queue_rules: Path | None = Field(
        None,
        description="TOML file on how the queue serves each reason, on top of the rules that come "
        "with Modwatch",
    )
    policy: Path | None = Field(
        None, description="TOML file of the policy that moderators decide by; unset: Modwatch's own"
    )
    require_code: bool = Field(
        False, description="Whoever decides toxic must name a code of the policy"
    )
    show_reasons: bool = Field(
        False,
        description="Moderators see why a comment was sent to them, except where that would spoil "
        "a comparison; unset, everybody labels blind",
    )
    decision_webhook_url: SecretStr | None = Field(
        None,
        description="Where decisions are posted to the platform as signed JSON; unset: nowhere",
    )
    decision_webhook_secret: SecretStr = Field(
        SecretStr(""), description="Secret that signs what is posted to the platform"
    )
    oidc_issuer: str | None = Field(
        None, description="OpenID Connect provider that people may log in with; unset: none"
    )
    oidc_client_id: str = Field("", description="How the provider knows this installation")
    oidc_client_secret: SecretStr = Field(
        SecretStr(""), description="What this installation proves itself to the provider with"
    )
    oidc_role_claim: str = Field(
        "roles", description="Claim of the provider's token that holds a person's roles"
    )
    oidc_roles: dict[str, str] = Field(
        default_factory=dict,
        description="Roles of the console by value of that claim, as a JSON map",
    )
    window_days: int = Field(14, ge=1, description="Trailing days that are measured again")
    history_days: int = Field(14, ge=1, description="Trailing days that a day is checked against")
    reference_first_day: datetime.date | None = Field(
        None, description="First day of the fixed reference of drift; unset: the first with scores"
    )
    reference_days: int = Field(
        14, ge=1, description="How many days with scores the fixed reference of drift has"
    )
    max_text_length: int = Field(
        50_000, ge=1, description="Characters; longer comments are quarantined"
    )
    alert_rules: Path | None = Field(
        None, description="TOML file of alert rules, on top of those that come with Modwatch"
    )
    alert_webhook_url: SecretStr | None = Field(
        None, description="Where alerts are posted as signed JSON; unset: nowhere"
    )
    alert_webhook_secret: SecretStr = Field(
        SecretStr(""), description="Secret that signs what is posted to the webhook"
    )
    alert_smtp_url: SecretStr | None = Field(
        None,
        description="Mail server for alerts, `smtp[s]://[user:password@]host[:port]"
        "[?starttls=auto, required or off]`; unset: no mail",
    )
    alert_mail_from: str = Field("", description="Sender of alert mails")
    alert_mail_to: tuple[str, ...] = Field((), description="Who gets alert mails, as a JSON list")
    alert_timeout: float = Field(
        10, gt=0, le=60, description="Seconds that one step of delivering an alert may take"
    )

    @model_validator(mode="after")
    def _days_in_order(self) -> "Settings":
        if self.last_day and self.first_day > self.last_day:
            raise ValueError("MODWATCH_FIRST_DAY is after MODWATCH_LAST_DAY; swap them")
        return self

    @model_validator(mode="after")
    def _channels_are_whole(self) -> "Settings":
        webhook = self.alert_webhook_url
        if webhook and not _HTTP.fullmatch(webhook.get_secret_value()):
            raise ValueError("MODWATCH_ALERT_WEBHOOK_URL is no address; write https://host/path")
        if webhook and not self.alert_webhook_secret.get_secret_value():
            raise ValueError("MODWATCH_ALERT_WEBHOOK_SECRET is missing; alerts are sent signed")
        addresses = (self.alert_mail_from, *self.alert_mail_to) if self.alert_smtp_url else ()
        if len(addresses) == 1 or not all(map(_MAIL.fullmatch, addresses)):
            raise ValueError(
                "MODWATCH_ALERT_SMTP_URL needs MODWATCH_ALERT_MAIL_FROM and "
                "MODWATCH_ALERT_MAIL_TO: plain addresses such as ops@example.org"
            )
        return self

    @model_validator(mode="after")
    def _outside_is_whole(self) -> "Settings":
        platform = self.decision_webhook_url
        if platform and not _HTTP.fullmatch(platform.get_secret_value()):
            raise ValueError("MODWATCH_DECISION_WEBHOOK_URL is no address; write https://host/path")
        if platform and not self.decision_webhook_secret.get_secret_value():
            raise ValueError(
                "MODWATCH_DECISION_WEBHOOK_SECRET is missing; decisions are sent signed"
            )
        if self.oidc_issuer and not (self.oidc_client_id and self.oidc_roles):
            raise ValueError(
                "MODWATCH_OIDC_ISSUER needs MODWATCH_OIDC_CLIENT_ID and MODWATCH_OIDC_ROLES, a "
                'JSON map such as {"moderators": "moderator"}'
            )
        return self

    @property
    def lake_root(self) -> str:
        """The lake's folder or URL."""
        return self.lake or str(self.home / "lake")

    @property
    def checks_root(self) -> str:
        """Where validation results and pages are kept: beside the tables."""
        return f"{self.lake_root.rstrip('/')}/_checks"

    @property
    def models_folder(self) -> Path:
        """Local copies of registered models, by version."""
        return self.home / "models"


def load_settings() -> Settings:
    """Return the settings of this process, from the environment.

    Raises:
        SettingsError: a value is out of range, or a variable is none of ours; the message names it.
    """
    _refuse_unknown(os.environ)
    try:
        return Settings()
    except ValidationError as exc:
        raise SettingsError("; ".join(_sentence(error) for error in exc.errors())) from None
    except NotJsonError as exc:  # it names the field, and nothing of the value
        field = "".join(re.findall(r'field "(\w+)"', str(exc))).upper()
        raise SettingsError(
            f'MODWATCH_{field} is not JSON; write lists as ["a", "b"] and maps as {{"a": "b"}}'
        ) from None


def _refuse_unknown(names: Iterable[str]) -> None:
    """Refuse a misspelt variable, which would otherwise be ignored without a word."""
    known = {f"MODWATCH_{name.upper()}" for name in Settings.model_fields} | _NOT_SETTINGS
    for name in names:
        ours = name.upper().startswith("MODWATCH_") and "__" not in name
        if ours and name.upper() not in known:
            near = get_close_matches(name.upper(), known, n=1)
            remedy = f"did you mean {near[0]}?" if near else "unset it"
            raise SettingsError(f"{name} is no setting of Modwatch; {remedy}")


def _sentence(error: ErrorDetails) -> str:
    """Return one pydantic error as a sentence, without the value (it may be a secret)."""
    where = "__".join(str(part) for part in error["loc"]).upper()
    return f"MODWATCH_{where}: {error['msg']}" if where else str(error["msg"])


def settings_table() -> str:
    """Return every setting as a Markdown table: variable, default, meaning."""
    rows = ["| variable | default | meaning |", "|---|---|---|"]
    for name, info in Settings.model_fields.items():
        if name == "source":
            rows.append(
                "| `MODWATCH_SOURCE__KIND` | `community` | Where comments come from: "
                "`files`, `sql`, `replay` or `community` |"
            )
        else:
            rows.append(_row(f"MODWATCH_{name}", info))
    for model in SourceSettings.__origin__.__args__:  # type: ignore[attr-defined]
        kind = model.model_fields["kind"].default
        for name, info in model.model_fields.items():
            if name != "kind":
                rows.append(_row(f"MODWATCH_SOURCE__{name}", info, prefix=f"source `{kind}`: "))
    return "\n".join(rows)


def _row(variable: str, info: FieldInfo, prefix: str = "") -> str:
    if info.is_required():
        default = "required"
    else:
        value = info.get_default(call_default_factory=True)
        value = value.get_secret_value() if isinstance(value, SecretStr) else value
        default = "" if value in (None, "", {}, ()) else f"`{value}`"
    return f"| `{variable.upper()}` | {default} | {prefix}{info.description} |"
