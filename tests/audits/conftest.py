"""An audit of the small lake that is carried out once, of which each test has a copy."""

from contextlib import ExitStack

import pytest
from audit_path import STEPS
from databases import empty
from kept_audits import keep_steps
from review_fixtures import ann, ben, engine, new_item, session_engine
from small_audits import label_everything, make_small_home, same_audit_draws, small_installation

from modwatch.installation.resources import open_resources
from modwatch.review.people.accounts import create_moderator

__all__ = ["ann", "ben", "engine", "new_item", "session_engine"]

#: The small audit, and the labels that people give between two of its steps.
LABELLED = {
    **{name: STEPS[name] for name in ("plan", "approve", "draw")},
    "label": label_everything,
    **{name: STEPS[name] for name in ("seal", "estimate", "sign_off", "publish")},
}


@pytest.fixture(scope="session")
def carried_out(migrated_queue_url, queue_owner, tmp_path_factory):
    """The small audit after each of its steps."""
    empty(queue_owner)
    folder = tmp_path_factory.mktemp("carried_out")
    home = make_small_home(folder / "home", migrated_queue_url)
    with same_audit_draws(), open_resources(home.settings) as resources:
        for labeller in ("ann", "ben"):
            create_moderator(resources.database, labeller, "moderator")
        return keep_steps(resources, LABELLED, queue_owner, folder / "kept")


@pytest.fixture
def after(carried_out, queue_url, queue_owner, tmp_path, same_draws):
    """Return a function that opens a copy of the small audit as it was after a step."""
    home = small_installation(tmp_path / "copy", queue_url)
    with ExitStack() as opened:
        yield lambda step: opened.enter_context(carried_out[step].opened(queue_owner, home))


@pytest.fixture
def published(after):
    """The small audit, carried out to its end."""
    return after("publish")
