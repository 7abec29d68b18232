import stat
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest
from pydantic import ValidationError
from sqlalchemy import text

from installation import MONDAY, TUESDAY, Installation
from modwatch.common.errors import SettingsError, SourceError
from modwatch.data.sources.delimited import TextFormat
from modwatch.data.sources.files import FileSource
from modwatch.data.sources.landing import OwnScores
from modwatch.data.sources.sql import SqlSource
from modwatch.installation.resources import open_channels, open_resources
from modwatch.monitoring.incidents.apprise_channel import AppriseChannel
from modwatch.monitoring.incidents.channels import MailChannel, WebhookChannel
from modwatch.settings import EMBEDDED, Settings, current_settings_table
from modwatch_lab.community import Community, Drift
from modwatch_lab.replay import ReplaySource

# MLflow 3.17 uses a loader strategy that SQLAlchemy 2.1 deprecates.
pytestmark = pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated")

Install = Callable[..., Installation]


def test_files_are_opened_with_every_setting():
    columns = {"text": "body"}
    source = {
        "kind": "files",
        "path": "in/{dt}.csv",
        "timestamp_column": "posted",
        "assume_timezone": "UTC",
        "encoding": "latin-1",
        "delimiter": "tab",
        "quoting": "none",
        "escape": "~",
        "votes": ["ann", "ben"],
        "generate_ids": "true",
        "day": "{dt}",
        "platform": "forum",
        "columns": columns,
    }
    assert Settings(source=source).source.open() == FileSource(
        path="in/{dt}.csv",
        timestamp_column="posted",
        assume_timezone="UTC",
        form=TextFormat(encoding="latin-1", delimiter="\t", quoting="none", escape="~"),
        votes=("ann", "ben"),
        generate_ids=True,
        day="{dt}",
        platform="forum",
        columns=columns,
    )


def test_sql_is_opened_with_its_secret():
    query = "SELECT * FROM c WHERE t >= :start AND t < :end"
    url = "postgresql+psycopg://reader:hunter2@db/forum"
    source = Settings(source={"kind": "sql", "url": url, "query": query}).source.open()
    assert source == SqlSource(url=url, query=query)
    assert "hunter2" not in repr(source)


def test_sources_of_scores_are_opened_with_what_they_leave_out():
    own = {"own_scores": True, "own_threshold": 0.7, "own_model_version": "rules-1"}
    settings = Settings(source={"kind": "files", "path": "in.csv", **own})
    scores = OwnScores(threshold=0.7, model_version="rules-1")
    assert settings.source.open() == FileSource(path="in.csv", own_scores=scores)
    assert settings.own_scores
    query = {"url": "sqlite://", "query": "SELECT 1 WHERE t >= :start AND t < :end"}
    settings = Settings(source={"kind": "sql", **query, "own_scores": True})
    assert settings.source.open() == SqlSource(**query, own_scores=OwnScores())
    assert not Settings(source={"kind": "files", "path": "in.csv"}).own_scores
    assert not Settings().own_scores
    with pytest.raises(ValidationError, match="own_model_version"):
        Settings(source={"kind": "files", "path": "in.csv", "own_model_version": "a b"})


def test_a_community_is_opened_with_its_drift():
    source = {"kind": "community", "seed": 3, "comments_per_day": 9, "drift_from": "2026-01-06"}
    assert Settings(source=source).source.open() == Community(
        seed=3, comments_per_day=9, drift=Drift(start=TUESDAY)
    )


def test_a_replay_is_opened_with_its_corpus(tmp_path):
    path = tmp_path / "c.csv"
    path.write_text("id,text,parent,label,api\n1,an invented remark,,0,0.1\n")
    source = {"kind": "replay", "path": str(path), "first_day": "2026-01-05", "days": 1}
    opened = Settings(source=source).source.open()
    assert isinstance(opened, ReplaySource)
    assert [batch.num_rows for batch in opened.read(MONDAY)] == [1]


def test_a_corpus_of_no_known_format_is_refused(tmp_path):
    source = {"kind": "replay", "path": str(tmp_path), "first_day": "2026-01-05"}
    with pytest.raises(SourceError, match="weather"):
        Settings(source={**source, "corpus": "weather"}).source.open()


def test_channels_are_those_that_the_settings_name():
    assert open_channels(Settings()) == ()
    webhook = {"alert_webhook_url": "https://hook/x", "alert_webhook_secret": "hunter2"}
    mail = {
        "alert_smtp_url": "smtps://mod:hunter2@mail?from=m%2Bx@example.org&to=ops@example.org"
        "&starttls=off&to=lead@example.org",
    }
    posted, mailed = open_channels(Settings(**webhook, **mail))
    assert isinstance(posted, WebhookChannel)
    assert isinstance(mailed, MailChannel)
    assert (posted.url, posted.secret) == ("https://hook/x", "hunter2")
    assert (mailed.server.host, mailed.server.tls) == ("mail", True)
    assert (mailed.sender, mailed.server.starttls) == ("m+x@example.org", "off")
    assert mailed.recipients == ("ops@example.org", "lead@example.org")
    assert "hunter2" not in repr((posted, mailed))


def test_services_of_apprise_are_channels_and_stay_secret():
    settings = Settings(alert_channels=("json://ops:hunter2@127.0.0.1/x",))
    (service,) = open_channels(settings)
    assert isinstance(service, AppriseChannel)
    assert service.url == "json://ops:hunter2@127.0.0.1/x"
    assert "hunter2" not in repr((settings, service, service.name)) + current_settings_table(
        settings, {}
    )
    with pytest.raises(SettingsError, match="entry 1 of MODWATCH_ALERT_CHANNELS") as caught:
        open_channels(Settings(alert_channels=("slack://hunter2",)))
    assert "hunter2" not in str(caught.value)


def test_opening_touches_nothing(tmp_path):
    home = tmp_path / "home"
    with open_resources(Settings(home=home)):
        pass
    assert not home.exists()


def test_the_policy_is_that_of_the_settings():
    settings = Settings(review_fraction=0.2, slice_share=0.3, strategy="hybrid", max_text_length=9)
    with open_resources(settings) as resources:
        policy = resources.policy
        assert (policy.review_fraction, policy.slice_share) == (0.2, 0.3)
        assert policy.strategy == "hybrid"
        assert resources.thresholds.max_text_length == 9


def test_a_given_salt_is_used_and_nothing_is_kept(tmp_path):
    with open_resources(Settings(home=tmp_path / "home", sampling_salt="given")) as resources:
        assert resources.sampling_salt == "given"
    assert not (tmp_path / "home").exists()


def test_a_salt_of_its_own_is_made_once_and_for_its_owner_only(tmp_path):
    def salt(_: int) -> str:
        with open_resources(Settings(home=tmp_path)) as resources:
            return resources.sampling_salt

    with ThreadPoolExecutor(8) as pool:
        salts = set(pool.map(salt, range(32)))
    assert len(salts) == 1
    assert len(salts.pop()) == 64
    kept = tmp_path / "secrets" / "sampling_salt"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert [path.name for path in kept.parent.iterdir()] == ["sampling_salt"]


def test_a_salt_that_cannot_be_kept_names_the_settings(tmp_path):
    (tmp_path / "home").write_text("a file where a folder should be")
    with (
        open_resources(Settings(home=tmp_path / "home")) as resources,
        pytest.raises(SettingsError, match="MODWATCH_SAMPLING_SALT or MODWATCH_HOME"),
    ):
        _ = resources.sampling_salt


def test_a_model_is_fetched_once_for_all_tasks(install):
    home = install()
    with open_resources(home.settings) as resources:
        version = resources.registry.champion_version()
        first, again = resources.scorer(version), resources.scorer(version)
        assert first.model_version == again.model_version == version
        assert len(list(resources.settings.models_folder.iterdir())) == 1


def test_without_a_database_url_the_error_names_the_setting_and_its_values(tmp_path):
    with open_resources(Settings(home=tmp_path)) as resources:
        with pytest.raises(SettingsError) as caught:
            _ = resources.database
        assert str(caught.value) == (
            "MODWATCH_DATABASE_URL is not set; set it to postgresql://user:password@host/database, "
            "or to embedded for a server in MODWATCH_HOME"
        )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("services")
def test_an_embedded_database_is_migrated_and_stopped():
    # Not pytest's folder, which is closed to other users: the server of a root has its own.
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        settings = Settings(home=Path(folder), database_url=EMBEDDED)
        with open_resources(settings) as resources, resources.database.connect() as connection:
            assert connection.scalar(text("SELECT count(*) FROM review_item")) == 0
        assert [p for p in psutil.process_iter() if folder in _command(p)] == []


def _command(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""
