"""What is tried before a day is read: space, clocks, and whose lake it is."""

import datetime

import pytest
from databases import empty, scalar

from installation import MONDAY, TUESDAY
from modwatch.cli.main import main
from modwatch.common.errors import DatabaseError, SettingsError, StackError
from modwatch.installation.environment import require_environment, require_space
from modwatch.installation.resources import open_resources
from modwatch.pipeline import daily
from modwatch.settings import Settings

# MLflow 3.17 uses a loader strategy that SQLAlchemy 2.1 deprecates.
pytestmark = pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated")


@pytest.fixture
def second(files, tmp_path):
    """Another installation with the lake of `files`, and an embedded database of its own."""
    lake = str(files.settings.lake_root)
    return files.but(home=tmp_path / "second", lake=lake, database_url="embedded")


@pytest.mark.usefixtures("services")
def test_two_installations_do_not_write_one_lake(files, second, monkeypatch, capsys):
    files.run("ingest")
    files.run("ingest")  # again: it is its own
    lake = files.settings.lake_root
    with open_resources(second.settings) as other:
        before = other.lake.table("landed", MONDAY)
        with pytest.raises(SettingsError, match=f"the lake {lake} belongs to another installation"):
            daily.ingest(other, MONDAY)
        assert other.lake.table("landed", MONDAY) == before

    for name, value in second.env.items():
        monkeypatch.setenv(name, value)
    assert main(["migrate", "--claim-lake"]) == 0
    assert f"the lake {lake} belongs to this review database" in capsys.readouterr().out
    second.run("ingest")
    with (
        open_resources(files.settings) as first,
        pytest.raises(SettingsError, match="--claim-lake"),
    ):
        daily.ingest(first, MONDAY)


def test_a_database_that_was_lost_is_named_before_a_day_is_replaced(files, queue_owner):
    files.run("ingest")
    empty(queue_owner)
    with open_resources(files.settings) as anew:
        with pytest.raises(SettingsError, match="belongs to another installation"):
            daily.ingest(anew, TUESDAY)
        assert scalar(anew.database, "SELECT count(*) FROM event") == 0, "it claims nothing"


@pytest.mark.parametrize(("hours", "which"), [(-3, "behind"), (26, "ahead of")])
def test_a_clock_far_from_the_database_is_refused(files, hours, which):
    with open_resources(files.settings) as resources:
        now = datetime.datetime.now(datetime.UTC)
        require_environment(resources, at=now + datetime.timedelta(minutes=30))
        with pytest.raises(DatabaseError, match=rf"clock is {abs(hours)}\.0 hours {which} that"):
            require_environment(resources, at=now + datetime.timedelta(hours=hours))


def test_a_disk_that_is_nearly_full_is_named_before_anything_starts(tmp_path):
    settings = Settings(home=tmp_path / "home", lake="s3://bucket/lake")
    require_space(settings, least=1)
    with pytest.raises(StackError, match=rf"are free in {tmp_path}, .* set MODWATCH_HOME"):
        require_space(settings, least=10**18)
    assert not settings.home.exists()
