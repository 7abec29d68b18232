"""The settings: one frozen object with a field per environment variable, `MODWATCH_…`.

The description of a field is its documentation in docs/settings.md and in `modwatch settings`.
"""

import datetime
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, cast
from urllib.parse import parse_qs

from pydantic import (
    BeforeValidator,
    Field,
    IPvAnyNetwork,
    SecretStr,
    field_validator,
    model_validator,
)
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from modwatch.common.columns import Column, own_columns
from modwatch.common.text import LONGEST_TEXT
from modwatch.settings.sources import SOURCES, AnySource

_HTTP = re.compile(r"https?://[!-~]+")

#: The key of a webhook's secret with the prefix `whsec_`, as Standard Webhooks requires.
_SIGNING_KEY = re.compile(
    r"whsec_(?=.{32,88}$)([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?"
)
_TOKEN = re.compile(r"[!-~]+")
_MAIL = re.compile(r"[\w.+-]+@[\w.-]+", re.ASCII)

#: The value of `database_url` for an embedded server.
EMBEDDED = "embedded"


#: What a file in the folder of the setting `config` has, by its name.
FILES = {
    "alerts.toml": "alert rules, which extend the built-in ones, and routes",
    "calendar.toml": "holidays and closed weekdays, whose volumes are unusual",
    "expectations.json": "a suite of Great Expectations that is evaluated on every day, in "
    "addition to the built-in rules",
    "identities.toml": "words by which a comment mentions an identity, for comments whose source "
    "names no `groups`; otherwise English words",
    "policy.toml": "the moderation policy, in place of the built-in one",
    "queues.toml": "queue rules per reason, which extend the built-in ones",
    "signers.toml": "the public keys of those who approve and sign audits, lines of "
    '`"name" = "key"`',
    "timestamps.pem": "the root certificates of the time-stamping authority",
}


class Settings(BaseSettings):
    """The settings of one installation of Modwatch.

    >>> Settings(review_fraction=0.05).review_fraction
    0.05
    """

    model_config = SettingsConfigDict(
        env_prefix="MODWATCH_", env_nested_delimiter="__", frozen=True, extra="forbid"
    )

    home: Path = Field(Path("var"), description="Folder for all local data")
    config: Path | None = Field(
        None,
        description="Folder of files that change what Modwatch does, each if it is there: "
        + ", ".join(f"`{name}` ({what})" for name, what in FILES.items()),
    )
    lake: str | None = Field(
        None, description="Folder or object-store URL of the Delta tables; `HOME/lake` by default"
    )
    database_url: SecretStr | None = Field(
        None,
        description="PostgreSQL URL of the review database, or `embedded` for a server in "
        "`HOME/postgres`, for demos and tests",
    )
    database_owner_url: SecretStr | None = Field(
        None,
        description="PostgreSQL URL of the owner of its tables, for `modwatch migrate` alone; it "
        "gives the user of `MODWATCH_DATABASE_URL` the privileges that the application needs; "
        "default: that user owns the tables",
    )
    mlflow_url: str = Field("http://127.0.0.1:5000", description="MLflow tracking server")
    console_url: str = Field("http://127.0.0.1:8090", description="URL of the review console")
    trusted_proxies: tuple[IPvAnyNetwork, ...] = Field(
        (),
        description="Addresses or networks of the proxies whose `X-Forwarded-For` and "
        "`X-Forwarded-Proto` the console believes, as a JSON list; default: none",
    )
    witness_folder: str | None = Field(
        None,
        description="Folder or object-store URL, out of reach of whoever can write to the review "
        "database, that gets a witness of the decision log every day; default: none",
    )
    timestamp_url: SecretStr | None = Field(
        None,
        description="Time-stamping authority (RFC 3161) that witnesses evidence; default: none",
    )
    require_second_factor: bool = Field(
        False,
        description="Leads and admins who sign in with a password need a one-time code, too",
    )
    airflow_url: str = Field(
        "http://127.0.0.1:8080", description="URL of the Airflow web interface"
    )
    source: AnySource | None = None
    columns: Annotated[tuple[Column, ...], NoDecode, BeforeValidator(own_columns)] = Field(
        (),
        description="Columns of comments that the platform adds, as a JSON map of names to a "
        "`type` (text, number, integer, boolean or time) and, as far as they are true, "
        "`groups_by`, `shown_in_queue`, `erasable` and `hidden_when_blind`: docs/extending.md",
    )
    first_day: datetime.date = Field(
        datetime.date(2010, 1, 1), description="First day that is run, by schedules or by hand"
    )
    last_day: datetime.date | None = Field(
        None, description="Last day of the schedules; default: no end"
    )
    training_data: tuple[str, ...] = Field(
        (), description="Files of labelled comments that `train_model` trains on, as a JSON list"
    )
    evaluation_data: Path | None = Field(
        None,
        description="File of labelled comments that every new model is compared with the champion "
        "on; the same or similar comments are left out of training",
    )
    scorer: str = Field(
        "local",
        pattern=r"^(local|https?://\S+)$",
        description="What scores comments: `local` (the task itself), or the URL of a server with "
        "the Open Inference Protocol V2, such as `modwatch serve`; with `/v2/models/NAME` and "
        "`/versions/VERSION` behind it, a model other than `toxicity`, and a version other than "
        "the newest that the server names (one that names none, such as MLServer, may need it)",
    )
    scorer_threshold: float | None = Field(
        None,
        ge=0,
        le=1,
        description="Comments with a higher probability from that server are flagged; default: "
        "the threshold of the server, or else 0.5",
    )
    scorer_token: SecretStr | None = Field(
        None, description="Token that the server asks for, and that `modwatch serve` asks for"
    )
    scorer_pool: str = Field(
        "default_pool",
        pattern=r"^[A-Za-z0-9_.-]+$",
        description="Airflow pool of the tasks that score; its slots limit how many run at a time, "
        "such as one for each GPU",
    )
    shard_tokens: int = Field(
        2_000_000,
        ge=1,
        description="Number of subwords per scoring task, estimated from the length of the "
        "comments",
    )
    torch_threads: int = Field(2, ge=1, description="CPU threads per scoring task")
    device: str = Field(
        "auto",
        pattern=r"^(auto|cpu|cuda(:\d+)?)$",
        description="Where models are trained and applied: `auto` (the first CUDA device, or the "
        "CPU), `cpu`, `cuda` or `cuda:n`",
    )
    precision: Literal["auto", "fp32", "bf16"] = Field(
        "auto",
        description="Precision of the encoder in scoring: `fp32`, `bf16`, or `auto`: bfloat16 if "
        "the device is faster with it and the model's decisions stay the same",
    )
    strategy: str = Field(
        "uncertainty",
        description="Review strategy: the name of a review score of docs/metrics.md",
    )
    false_negative_cost: float | None = Field(
        None,
        ge=0,
        description="Cost of a toxic comment that is not flagged, in any unit; default: both costs "
        "are those for which the model's threshold is the best one",
    )
    false_positive_cost: float | None = Field(
        None, ge=0, description="Cost of another comment that is flagged, in the same unit"
    )
    platform_costs: dict[str, float] = Field(
        default_factory=dict,
        description="Factor on both costs by platform, as a JSON map; default: 1",
    )
    cost_by_views: bool = Field(
        False,
        description="Whether the source's column `views`, over its mean of the day, is a factor on "
        "both costs",
    )
    review_fraction: float = Field(
        0.05, gt=0, le=1, description="Review fraction α: share of the day's comments to review"
    )
    slice_share: float = Field(
        0.1, ge=0, lt=1, description="ρ: share of the capacity for the random slice"
    )
    confirmation_share: float = Field(
        0.13,
        ge=0,
        le=1,
        description="Expected number of confirmations, as a share of the reviewed capacity, in "
        "[0, 1]; 0 turns them off",
    )
    follow_up_share: float = Field(
        0.2,
        ge=0,
        le=1,
        description="Follow-ups, as a share of the comments without a label when the review of a "
        "day is over, in [0, 1]; 0 turns them off",
    )
    shared_false_positive: float = Field(
        0.2,
        ge=0,
        lt=1,
        description="Largest probability that a second person also labels a comment toxic that is "
        "not, if a first one did; all intervals allow for it, and gold items can show more",
    )
    shared_false_negative: float = Field(
        0.3, ge=0, lt=1, description="The same for labels of toxic comments that say otherwise"
    )
    gold_share: float = Field(
        0.02,
        ge=0,
        le=0.5,
        description="Gold items per moderator, as a share of their labels",
    )
    retest_share: float = Field(
        0.02,
        ge=0,
        le=0.5,
        description="Retests per moderator, as a share of their labels; a retest comes two weeks "
        "or more after the first label",
    )
    sampling_salt: SecretStr = Field(
        SecretStr(""),
        description="Secret key of the random slice; without it the slice is predictable",
    )
    require_code: bool = Field(False, description="Require a policy code for every toxic label")
    show_reasons: bool = Field(
        False,
        description="Show moderators why a comment is in the queue, except where that would bias a "
        "comparison",
    )
    decision_webhook_url: SecretStr | None = Field(
        None,
        description="URL that receives decisions as signed JSON; default: none",
    )
    decision_webhook_secret: SecretStr = Field(
        SecretStr(""), description="Secret that signs the decision webhook"
    )
    oidc_issuer: str | None = Field(
        None, description="Issuer URL of the OpenID Connect provider for logins; default: none"
    )
    oidc_client_id: str = Field("", description="OIDC client ID")
    oidc_client_secret: SecretStr = Field(SecretStr(""), description="OIDC client secret")
    oidc_role_claim: str = Field("roles", description="OIDC token claim with the roles of a person")
    oidc_roles: dict[str, str] = Field(
        default_factory=dict,
        description="Console role for each value of that claim, as a JSON map",
    )
    window_days: int = Field(
        14, ge=1, description="Trailing days that are measured again as labels arrive"
    )
    reference_first_day: datetime.date | None = Field(
        None,
        description="First day of the fixed drift reference; default: held-out comments of the "
        "model, or the first day with its scores",
    )
    max_text_length: int = Field(
        LONGEST_TEXT,
        ge=1,
        description="Maximum length in characters; longer comments are quarantined at ingestion",
    )
    alert_webhook_url: SecretStr | None = Field(
        None, description="URL that receives alerts as signed JSON; default: none"
    )
    alert_webhook_secret: SecretStr = Field(
        SecretStr(""), description="Secret that signs the alert webhook"
    )
    alert_smtp_url: SecretStr | None = Field(
        None,
        description="Mail server for alerts, `smtp[s]://[user:password@]host[:port]"
        "?from=ADDRESS&to=ADDRESS[&to=…][&starttls=auto, required or off]`, sender and recipients "
        "percent-encoded; default: no mail",
    )
    alert_channels: tuple[SecretStr, ...] = Field(
        (),
        description="Services that receive alerts, such as Slack, Teams or PagerDuty, as a JSON "
        "list of Apprise URLs",
    )

    alert_measured_by: int = Field(
        12,
        ge=0,
        le=23,
        description="Hour, UTC, by which `modwatch alerts check-heartbeat` expects the day before "
        "to be measured",
    )

    keep_landed: int = Field(30, ge=1, description="Days that landed rows are kept")
    keep_quarantine: int = Field(90, ge=1, description="Days that quarantined rows are kept")
    keep_comments: int = Field(
        400, ge=1, description="Days that comments are kept: texts, authors and threads"
    )
    keep_scores: int = Field(
        1830,
        ge=1,
        description="Days that rows by comment without a text are kept: scores, what was routed, "
        "labels. Figures are kept for ever",
    )
    keep_runs: int = Field(
        400, ge=1, description="Days that the runs of days in MLflow are kept, with their files"
    )
    keep_old_files: int = Field(
        1,
        ge=1,
        le=7,
        description="Days that files of the Delta tables are kept after they are replaced",
    )

    @model_validator(mode="after")
    def _files_are_known(self) -> "Settings":
        if self.config is None:
            return self
        if not self.config.is_dir():
            raise ValueError(f"MODWATCH_CONFIG names {self.config}, which is no folder; make it")
        found = {path.name for path in self.config.iterdir() if not path.name.startswith(".")}
        if unknown := found - FILES.keys():
            raise ValueError(
                f"{min(unknown)} in MODWATCH_CONFIG is none of {', '.join(FILES)}; rename or "
                "remove it"
            )
        return self

    @model_validator(mode="after")
    def _days_are_in_order(self) -> "Settings":
        if self.last_day and self.first_day > self.last_day:
            raise ValueError("MODWATCH_FIRST_DAY is after MODWATCH_LAST_DAY; swap them")
        return self

    @model_validator(mode="after")
    def _services_are_complete(self) -> "Settings":
        _check_webhook("ALERT", self.alert_webhook_url, self.alert_webhook_secret)
        if self.alert_smtp_url:
            _check_mail(self.alert_smtp_url.get_secret_value())
        _check_webhook("DECISION", self.decision_webhook_url, self.decision_webhook_secret)
        if self.oidc_issuer and not (self.oidc_client_id and self.oidc_roles):
            raise ValueError(
                "MODWATCH_OIDC_ISSUER requires MODWATCH_OIDC_CLIENT_ID and MODWATCH_OIDC_ROLES, a "
                'JSON map such as {"moderators": "moderator"}'
            )
        url = self.timestamp_url
        if url and not _HTTP.fullmatch(url.get_secret_value()):
            raise ValueError("MODWATCH_TIMESTAMP_URL is not a URL; use https://host/path")
        if url and not self.file("timestamps.pem"):
            raise ValueError(
                "MODWATCH_TIMESTAMP_URL requires timestamps.pem in MODWATCH_CONFIG, with the root "
                "certificates of the authority, to verify its answers"
            )
        return self

    @model_validator(mode="after")
    def _scorer_token_fits_a_header(self) -> "Settings":
        token = self.scorer_token
        if token is not None and not _TOKEN.fullmatch(token.get_secret_value()):
            raise ValueError(
                "MODWATCH_SCORER_TOKEN must be visible ASCII characters, without a line break at "
                "the end"
            )
        return self

    @field_validator("strategy")
    @classmethod
    def _strategy_is_known(cls, strategy: str) -> str:
        if strategy == cls.model_fields["strategy"].default:
            return strategy  # the import takes a second
        from modwatch.statistics.collaboration.review_strategies import (  # noqa: PLC0415
            all_review_scores,
        )

        known = all_review_scores()
        if strategy not in known:
            raise ValueError(f"MODWATCH_STRATEGY must be one of {', '.join(known)}")
        return strategy

    @model_validator(mode="after")
    def _what_is_read_is_kept(self) -> "Settings":
        window = "the window is measured and published again as labels arrive"
        # The days of the window have windows of their own, and the month before is audited.
        read = {
            "landed": (self.window_days, window),
            "quarantine": (self.window_days, window),
            "comments": (max(2 * self.window_days, 31), f"{window}, and a month is audited"),
            "scores": (
                max(self.keep_runs + self.window_days, 91),
                "days in MLflow are published again, and twelve weeks of labels reported",
            ),
            "runs": (self.window_days, window),
        }
        for name, (days, why) in read.items():
            if getattr(self, f"keep_{name}") < days:
                raise ValueError(
                    f"MODWATCH_KEEP_{name.upper()} must be at least {days} days with the other "
                    f"settings: {why}"
                )
        return self

    def file(self, name: str) -> Path | None:
        """Return a file of `FILES` in the folder `config`; None where it is not there."""
        path = None if self.config is None else self.config / name
        return path if path and path.exists() else None

    @property
    def own_scores(self) -> bool:
        """Whether the source brings scores, so that no model scores its comments."""
        return self.source is not None and self.source.brings_scores

    @property
    def is_embedded(self) -> bool:
        """Whether the review database is in the embedded server."""
        return self.database_url == SecretStr(EMBEDDED)

    @property
    def lake_root(self) -> str:
        """The lake's folder or URL."""
        return self.lake or str(self.home / "lake")

    @property
    def checks_root(self) -> str:
        """The folder of validation results and pages, next to the tables."""
        return f"{self.lake_root.rstrip('/')}/_checks"

    @property
    def models_folder(self) -> Path:
        """Local copies of registered models, by version."""
        return self.home / "models"


def _check_mail(url: str) -> None:
    """Raise ValueError for a URL of a mail server without a sender and recipients."""
    query = parse_qs(url.partition("?")[2])
    senders, recipients = query.get("from", []), query.get("to", [])
    if len(senders) != 1 or not recipients or not all(map(_MAIL.fullmatch, senders + recipients)):
        raise ValueError(
            "MODWATCH_ALERT_SMTP_URL requires ?from=ADDRESS&to=ADDRESS, with `&to=` for each "
            "further recipient: plain addresses such as ops@example.org"
        )


def _check_webhook(what: str, url: SecretStr | None, secret: SecretStr) -> None:
    """Raise ValueError for a webhook of alerts or decisions that is no URL, or has no secret."""
    name = f"MODWATCH_{what}_WEBHOOK"
    if url and not _HTTP.fullmatch(url.get_secret_value()):
        raise ValueError(f"{name}_URL is not a URL; use https://host/path")
    if url and not secret.get_secret_value():
        raise ValueError(f"{name}_URL requires {name}_SECRET to sign {what.lower()}s; set it")
    if (key := secret.get_secret_value()).startswith("whsec_") and not _SIGNING_KEY.fullmatch(key):
        raise ValueError(
            f"{name}_SECRET is not base64 of 24 to 64 bytes after `whsec_`; create one with "
            "`echo whsec_$(openssl rand -base64 32)`"
        )


@dataclass(frozen=True, kw_only=True)
class Variable:
    """An environment variable, and the field that it sets."""

    name: str
    field: str
    info: FieldInfo
    #: The only `MODWATCH_SOURCE__KIND` it applies to; None: it always applies.
    source: str | None = None


#: `MODWATCH_SOURCE__KIND` decides the class of `Settings.source`, so it is a field of none of them.
SOURCE_KIND = Variable(
    name="MODWATCH_SOURCE__KIND",
    field="source",
    info=FieldInfo(
        annotation=cast(Any, Literal)[tuple(SOURCES)],
        default=None,
        description=f"Kind of the source of comments ({', '.join(map('`{}`'.format, SOURCES))}); "
        "default: the one that the other variables of the source fit",
    ),
)


def variables() -> Iterator[Variable]:
    """Yield every environment variable, those of a single kind of source last."""
    for field, info in Settings.model_fields.items():
        name = f"MODWATCH_{field.upper()}"
        yield SOURCE_KIND if field == "source" else Variable(name=name, field=field, info=info)
    for source, model in SOURCES.items():
        fields = {field: info for field, info in model.model_fields.items() if field != "kind"}
        for field, info in sorted(fields.items(), key=lambda item: not item[1].is_required()):
            name = f"MODWATCH_SOURCE__{field.upper()}"
            yield Variable(name=name, field=field, info=info, source=source)
