"""The simulated moderators at a real console, over HTTP."""

import datetime
import threading
from collections.abc import Callable, Iterator

import pytest

from installation import MONDAY, TO_THE_QUEUE, Installation, known_labels
from modwatch.demo.people import DEMO_PEOPLE, Shift, hire, visitor_token
from modwatch.review.console.server import listen, server
from modwatch.review.people import authenticate
from modwatch.review.queue import counts, decisions
from modwatch.wiring import Wiring, open_wiring

# MLflow 3.17 uses a loader strategy that SQLAlchemy 2.1 deprecates.
pytestmark = pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated")


@pytest.fixture
def staffed(install: Callable[..., Installation]) -> Iterator[Wiring]:
    """An installation with a day in the queue and a console that answers."""
    with listen("127.0.0.1", 0) as listener:
        home = install(console_url=f"http://127.0.0.1:{listener.getsockname()[1]}")
        home.run(*TO_THE_QUEUE)
        with open_wiring(home.settings) as at:
            console = server(at.database)
            thread = threading.Thread(target=console.run, kwargs={"sockets": [listener]})
            thread.start()
            yield at
            console.should_exit = True
            thread.join(20)


def test_a_shift_works_the_queue_until_it_is_empty(staffed: Wiring) -> None:
    shift = Shift(staffed, hire(staffed.database))
    shift.work()
    state = counts(staffed.database, MONDAY)
    assert state.waiting == state.leased == 0
    again = sum(
        part.num_rows for part in decisions(staffed.database, MONDAY, kind="second_opinion")
    )
    assert again > 0
    assert state.decided == shift.decisions == staffed.lake.count("routed", MONDAY) + again
    shift.work()
    assert shift.decisions == state.decided


def test_the_moderators_know_the_truth_and_err_by_their_seed(staffed: Wiring) -> None:
    people = hire(staffed.database)
    Shift(staffed, people).work()
    by_name = {name: person for (name, _, _), person in zip(DEMO_PEOPLE, people, strict=True)}
    truth = dict(known_labels(staffed.lake))
    first, second = (
        [row for part in decisions(staffed.database, MONDAY, kind=kind) for row in part.to_pylist()]
        for kind in ("review", "second_opinion")
    )
    by_first = {row["comment_id"]: row["moderator"] for row in first}
    assert second
    assert all(by_first[row["comment_id"]] != row["moderator"] for row in second)
    for row in [*first, *second]:
        person, comment_id = by_name[row["moderator"]], row["comment_id"]
        assert row["label"] == person.label(comment_id, truth[comment_id])
        assert row["seconds"] == pytest.approx(person.seconds(comment_id))


def test_hiring_twice_hires_the_same_people(staffed: Wiring) -> None:
    first, again = hire(staffed.database), hire(staffed.database)
    for one, other in zip(first, again, strict=True):
        person = authenticate(staffed.database, one.token)
        assert person == authenticate(staffed.database, other.token)
        assert person.role == "moderator"


def test_a_visitor_may_decide_and_not_for_ever(staffed: Wiring) -> None:
    person = authenticate(staffed.database, visitor_token(staffed.database))
    assert (person.pseudonym, person.role, person.reviews) == ("visitor", "lead", True)
    from sqlalchemy import text

    with staffed.database.connect() as connection:
        query = text("SELECT max(expires_at - created_at) FROM access_token")
        assert connection.scalar(query) == datetime.timedelta(hours=12)
