"""Opens the parts of an installation from its settings: lake, source, database, model.

Each part opens at first use, so that a task pays only for what it uses: the review database takes
0.2 s to import, the statistics of audits 0.5 s, a model 4 s.
"""

import logging
import secrets
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, unquote, urlsplit

from modwatch.common.addresses import Site
from modwatch.common.errors import NoChampionError, SettingsError
from modwatch.common.files import kept
from modwatch.data.lake.delta import Lake
from modwatch.data.lake.files import Folder
from modwatch.data.sources.landing import Source
from modwatch.data.validation.result import CheckStore
from modwatch.data.validation.rules import Rule, Thresholds
from modwatch.models.registry import MODEL_NAME, Registry
from modwatch.monitoring.incidents.channels import (
    Channel,
    MailChannel,
    Retry,
    SmtpServer,
    WebhookChannel,
    routed,
)
from modwatch.monitoring.incidents.rules import AlertRule, load_routes, load_rules
from modwatch.routing.design import RoutingPolicy
from modwatch.settings import Settings, load_settings

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from modwatch.audits.store import AuditStore
    from modwatch.audits.witnesses import Witnesses
    from modwatch.audits.workflow import Audit
    from modwatch.common.ledger.timestamps import Authority
    from modwatch.models.scoring.remote import RemoteScorer
    from modwatch.models.scoring.scorer import Scorer
    from modwatch.monitoring.measurements.references import ReferencePlan
    from modwatch.review.embedded import EmbeddedServer
    from modwatch.review.queue.lanes import Lanes
    from modwatch.statistics.divergence.mentions import Terms
    from modwatch.statistics.drift.profile import Profile
    from modwatch.statistics.drift.seasons import Calendar

_log = logging.getLogger(__name__)

#: Value of the setting `scorer` by which tasks score themselves.
_LOCAL = "local"


@dataclass(frozen=True)
class Resources:
    """The adapters of one process. Open it with `open_resources`."""

    settings: Settings
    _exit: ExitStack
    _local_scorers: dict[str, "Scorer"] = field(default_factory=dict, repr=False)

    @cached_property
    def lake(self) -> Lake:
        """The Delta tables."""
        return Lake(root=self.settings.lake_root, columns=self.settings.columns)

    @cached_property
    def checks(self) -> CheckStore:
        """Results and pages of data validation."""
        return CheckStore(root=self.settings.checks_root)

    @property
    def site(self) -> Site:
        """Where MLflow, the console and Airflow are."""
        return Site(
            mlflow_url=self.settings.mlflow_url,
            console_url=self.settings.console_url,
            airflow_url=self.settings.airflow_url,
        )

    @property
    def audit_store(self) -> "AuditStore":
        """The evidence of audits."""
        from modwatch.audits.review_items import audit_lock
        from modwatch.audits.store import AuditStore

        return AuditStore(
            root=f"{self.settings.lake_root.rstrip('/')}/_audits",
            lock=lambda audit: audit_lock(self.database, audit),
        )

    @property
    def witness_folder(self) -> Folder | None:
        """Where witnesses of the decision log are kept; None: nowhere."""
        root = self.settings.witness_folder
        return None if root is None else Folder(root=root, holds="witnesses")

    @cached_property
    def authority(self) -> "Authority | None":
        """The time-stamping authority; None: none. Raises TimestampError for unreadable roots."""
        from modwatch.common.ledger.timestamps import Authority, read_roots

        url, roots = self.settings.timestamp_url, self.settings.file("timestamps.pem")
        if roots is None:
            return None
        return Authority(url=url.get_secret_value() if url else "", roots=read_roots(roots))

    @cached_property
    def witnesses(self) -> "Witnesses":
        """Who vouches for the steps of audits: signers and a time-stamping authority, if set."""
        from modwatch.audits.witnesses import Witnesses
        from modwatch.common.ledger.signatures import read_signers

        signers = self.settings.file("signers.toml")
        return Witnesses(
            signers=read_signers(signers) if signers else None, authority=self.authority
        )

    def audit(self, name: str) -> "Audit":
        """Return the audit `name`, whether or not it is planned yet."""
        from modwatch.audits.workflow import Audit

        return Audit(
            name=name,
            store=self.audit_store,
            lake=self.lake,
            database=self.database,
            lanes=self.lanes,
            witnesses=self.witnesses,
            place=self.witness_folder,
        )

    @cached_property
    def identity_terms(self) -> "Terms":
        """The words of each identity, for comments whose source names no groups."""
        from modwatch.statistics.divergence.mentions import read_identity_terms

        return read_identity_terms(self.settings.file("identities.toml"))

    @cached_property
    def source(self) -> Source:
        """Where comments come from; raises SettingsError when no source is set."""
        if self.settings.source is None:
            raise SettingsError(
                "MODWATCH_SOURCE__KIND is not set; set it and the variables of your source, or let "
                "`modwatch init` propose them"
            )
        folder, own = self.settings.home / "source", self.settings.columns
        opened: Source = self.settings.source.open(folder, own)
        return opened

    @cached_property
    def database(self) -> "Engine":
        """The review database."""
        from modwatch.review.database import connect

        url = self.settings.database_url
        if url is None:
            raise SettingsError(
                "MODWATCH_DATABASE_URL is not set; set it to "
                "postgresql://user:password@host/database, or to embedded for a server in "
                "MODWATCH_HOME"
            )
        embedded = self.settings.is_embedded
        engine = connect(self._embedded_url() if embedded else url.get_secret_value())
        self._exit.callback(engine.dispose)
        return engine

    def migrate(self) -> None:
        """Bring the review database up to date; nothing when it is."""
        from modwatch.review.database import role_of
        from modwatch.review.migrate import upgrade

        owner, url = self.settings.database_owner_url, self.settings.database_url
        if owner is None or url is None or self.settings.is_embedded:
            upgrade(self.database)
        else:  # before the first migration, the application may not even connect
            upgrade(owner.get_secret_value(), application=role_of(url.get_secret_value()))

    def compact_database(self) -> bool:
        """Remove what was erased from the files of the embedded database; False for another."""
        from modwatch.review.database import connect
        from modwatch.review.erasure import compact

        if not self.settings.is_embedded:
            return False
        owner = connect(self.embedded_server.url("modwatch"), pool_size=1)
        try:
            compact(owner)
        finally:
            owner.dispose()
        return True

    @property
    def thresholds(self) -> Thresholds:
        """Bounds of the validation rules."""
        return Thresholds(max_text_length=self.settings.max_text_length)

    @cached_property
    def expectations(self) -> tuple[Rule, ...]:
        """What every day is validated by besides the built-in rules.

        Raises SettingsError when an expectation of the file cannot be evaluated.
        """
        from modwatch.data.validation.own_expectations import load_expectations

        path = self.settings.file("expectations.json")
        return load_expectations(path, self.settings.columns) if path else ()

    @property
    def policy(self) -> RoutingPolicy:
        """How many comments people see, and which: the settings that are named as its fields."""
        names = {each.name for each in fields(RoutingPolicy)}
        return RoutingPolicy(**self.settings.model_dump(include=names))

    @property
    def lanes(self) -> "Lanes":
        """How the queue serves each reason."""
        from modwatch.review.queue.lanes import load_lanes

        return load_lanes(self.settings.file("queues.toml"))

    @cached_property
    def sampling_salt(self) -> str:
        """The secret of the random slice: the setting, or one made once and kept in HOME."""
        if given := self.settings.sampling_salt.get_secret_value():
            return given
        path = self.settings.home / "secrets" / "sampling_salt"
        try:
            return kept(path, secrets.token_hex(32))
        except OSError as exc:
            raise SettingsError(
                f"no secret can be kept in {path}; set MODWATCH_SAMPLING_SALT or MODWATCH_HOME"
            ) from exc

    @property
    def registry(self) -> Registry:
        """The versions of the model that scores."""
        return Registry(tracking_uri=self.settings.mlflow_url)

    def planned_version(self) -> str:
        """Return the version that scores a day: the champion, or that of the model server.

        Raises NoChampionError when there is no champion, ModelError when the server has no model.
        """
        if self.settings.scorer == _LOCAL:
            return self.registry.champion_version()
        return self._remote_scorer(None).model_version

    def scorer(self, version: str) -> "Scorer":
        """Return the scorer of `version`: on a model server, or in this process.

        For the latter it is fetched from the registry at most once.
        """
        if self.settings.scorer != _LOCAL:
            return self._remote_scorer(version)
        return self.local_scorer(version)

    def local_scorer(self, version: str) -> "Scorer":
        """Return the in-process scorer of `version`, fetched from the registry at most once.

        The one that was asked for last stays open: all shards of a day share it.
        """
        from modwatch.models.scoring.opening import open_scorer

        settings = self.settings
        if version not in self._local_scorers:
            self._local_scorers.clear()
            fetched = self.registry.fetch(version, settings.models_folder)
            self._local_scorers[version] = open_scorer(
                fetched.folder,
                model_version=version,
                threshold=fetched.threshold,
                stated_class=fetched.stated_class,
                device=settings.device,
                threads=settings.torch_threads,
                precision=settings.precision,
            )
        return self._local_scorers[version]

    def model_reference(self, version: str) -> "Profile | None":
        """Return held-out comments as `version` scores them.

        None: the model server or the registry does not know them.
        """
        from modwatch.models.reference import from_json

        if self.settings.scorer != _LOCAL:
            return None
        try:
            stored = self.registry.stored_reference(version, self.settings.models_folder)
        except NoChampionError:  # deleted since it scored the day
            return None
        return from_json(stored, model_version=version)

    @property
    def reference_plan(self) -> "ReferencePlan":
        """How the days are chosen that a day is compared with."""
        from modwatch.monitoring.incidents.actions import acceptances
        from modwatch.monitoring.measurements.references import ReferencePlan, accepted_levels

        accepted = acceptances(self.database) if self.settings.database_url else {}
        return ReferencePlan(
            accepted=accepted_levels(self.alert_rules, accepted),
            rules=self.alert_rules,
            fixed_first=self.settings.reference_first_day,
            calendar=self.calendar,
        )

    @cached_property
    def calendar(self) -> "Calendar":
        """The days that are known to be unusual; raises SettingsError when the file is invalid."""
        from modwatch.data.validation.calendar import load_calendar

        return load_calendar(self.settings.file("calendar.toml"))

    def _remote_scorer(self, version: str | None) -> "RemoteScorer":
        from modwatch.models.scoring.remote import RemoteScorer

        settings = self.settings
        token = settings.scorer_token
        server, _, place = settings.scorer.partition("/v2/models/")
        model, _, stated = map(unquote, place.rstrip("/").partition("/versions/"))
        return self._exit.enter_context(
            RemoteScorer(
                server,
                model=model or MODEL_NAME,
                model_version=version or stated or None,
                threshold=settings.scorer_threshold,
                token=None if token is None else token.get_secret_value(),
            )
        )

    @cached_property
    def alert_rules(self) -> tuple[AlertRule, ...]:
        """What alerts are raised about; raises SettingsError when a rule is impossible."""
        return load_rules(self.settings.file("alerts.toml"))

    @cached_property
    def alert_channels(self) -> tuple[Channel, ...]:
        """Where alerts go: to the webhook, by mail, to services of Apprise, or nowhere."""
        path = self.settings.file("alerts.toml")
        return routed(open_channels(self.settings), load_routes(path), self.alert_rules)

    @cached_property
    def embedded_server(self) -> "EmbeddedServer":
        """The embedded PostgreSQL, if `database` is on it."""
        from modwatch.review.embedded import embedded

        return self._exit.enter_context(embedded(self.settings.home / "postgres"))

    def _embedded_url(self) -> str:
        from modwatch.review.embedded import APPLICATION
        from modwatch.review.migrate import upgrade

        server = self.embedded_server
        url = server.application_url("modwatch")
        upgrade(server.url("modwatch"), application=APPLICATION)  # no other process migrates it
        return url


@contextmanager
def open_resources(settings: Settings | None = None) -> Iterator[Resources]:
    """Open the resources of `settings`, or of the environment; close what was opened at the end.

    Raises:
        SettingsError: a setting is impossible.
    """
    with ExitStack() as stack:
        yield Resources(settings or load_settings(), stack)


def open_channels(settings: Settings) -> tuple[Channel, ...]:
    """Return the channels of alerts that the settings name."""
    retry = Retry()
    channels: list[Channel] = []
    if settings.alert_webhook_url:
        url = settings.alert_webhook_url.get_secret_value()
        secret = settings.alert_webhook_secret.get_secret_value()
        channels.append(WebhookChannel(url=url, secret=secret, retry=retry))
    if settings.alert_smtp_url:
        smtp = settings.alert_smtp_url.get_secret_value()
        server, query = SmtpServer.from_url(smtp), parse_qs(urlsplit(smtp).query)
        (sender,), recipients = query["from"], tuple(query["to"])
        channels.append(
            MailChannel(server=server, sender=sender, recipients=recipients, retry=retry)
        )
    if urls := [url.get_secret_value() for url in settings.alert_channels]:
        try:
            from modwatch.monitoring.incidents.apprise_channel import AppriseChannel
        except ModuleNotFoundError:
            raise SettingsError(
                "MODWATCH_ALERT_CHANNELS requires Apprise; pip install 'modwatch[alerts]'"
            ) from None
        channels.extend(AppriseChannel.from_urls(urls, retry))
    return tuple(channels)
