"""An audit by command line, killed at every step, and reports of the DSA checked."""

import json
import shutil
from pathlib import Path

import pytest
from killing import run

from installation import MONDAY, TO_THE_QUEUE, TUESDAY, Installation, known_labels
from modwatch.cli.main import main
from modwatch.installation.resources import open_resources
from modwatch.review.people.accounts import create_moderator
from review.labelling import label_all

# MLflow 3.17 uses a loader strategy that SQLAlchemy 2.1 deprecates.
pytestmark = pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated")

PLAN = ["audit", "plan", "january", str(MONDAY), str(TUESDAY), "--labels", "100"]
GOLDEN = Path(__file__).parents[1] / "golden" / "dsa" / "automated_means.csv"


@pytest.fixture
def home(install, monkeypatch):
    """Two days of scored comments."""
    made = install()
    for day in (MONDAY, TUESDAY):
        made.run(*TO_THE_QUEUE[: TO_THE_QUEUE.index("route")], day=day)
    for name, value in made.env.items():
        monkeypatch.setenv(name, value)
    return made


def label_everything() -> None:
    with open_resources() as resources:
        truth = dict(known_labels(resources.lake))
        for name in ("ann", "ben"):
            person = create_moderator(resources.database, name, "moderator")
            label_all(resources.database, person, truth.__getitem__)


def evidence(home: Installation) -> Path:
    return home.home / "lake" / "_audits" / "january"


def test_an_audit_step_by_step_tells_and_keeps_no_comment(home, capfd, tmp_path):
    everything: list[str] = []

    def run_audit(*arguments: str, status: int = 0) -> str:
        assert main(["audit", *arguments]) == status
        out, err = capfd.readouterr()
        everything.append(out + err)
        return out + err

    assert "plan " in run_audit(*PLAN[1:], "--by", "eva")
    assert "after it was planned" in run_audit("draw", "january", status=1)
    run_audit("approve", "january", "--by", "eve", "--note", "as agreed")
    assert run_audit("draw", "january") == "100 comments are drawn\n"
    sample = (evidence(home) / "sample-1.csv").read_bytes().decode()
    assert run_audit("redraw", str(evidence(home) / "plan.json")) == sample
    assert "\n100 items: 0 decided, 100 waiting" in run_audit("status", "january")
    assert "100 items are not decided" in run_audit("seal", "january", status=1)
    label_everything()
    assert run_audit("seal", "january") == "100 comments have a label\n"
    assert "precision" in run_audit("estimate", "january")
    run_audit("sign-off", "january", "--by", "fay")
    assert run_audit("status").startswith("january  signed off by fay at ")
    shown = run_audit("status", "january")
    assert "approved by eve: as agreed\n" in shown
    assert "precision" in shown
    verified = run_audit("verify", "january")
    assert verified.splitlines()[-1] == (
        "january: no problems found in files, signatures, timestamps, lake, decision log, register"
    )
    assert "note: the step approved by 'eve' is not signed" in verified

    elsewhere = shutil.copytree(evidence(home), tmp_path / "elsewhere")
    assert "no problems found" in run_audit("verify", "--files", str(elsewhere))
    result = elsewhere / "result.json"
    result.write_bytes(result.read_bytes() + b" ")
    assert run_audit("verify", "--files", str(elsewhere), status=1).splitlines()[1:] == [
        "  PROBLEM: result.json was changed after it was sealed",
        f"{elsewhere}: 1 problems found in files",
    ]
    assert "is not a folder" in run_audit("verify", "--files", str(result), status=1)
    assert "no audit is called 'other'" in run_audit("verify", "other", status=1)
    assert "does not exist" in run_audit("redraw", str(tmp_path / "plan.json"), status=1)

    everything += [path.read_text() for path in evidence(home).iterdir()]
    with open_resources() as resources:
        texts = (
            resources.lake.table("comments", MONDAY, columns=["text"]).column("text").to_pylist()
        )
    assert any(len(words) > 8 for words in texts)
    assert not [1 for words in texts if len(words) > 8 and words in "\n".join(everything)]


@pytest.mark.soak
def test_a_step_killed_anywhere_and_run_again_leaves_what_an_undisturbed_one_leaves(home):
    for step, arguments in (
        ("plan", [*PLAN, "--by", "eva"]),
        ("approve", ["audit", "approve", "january", "--by", "eve"]),
        ("draw", ["audit", "draw", "january"]),
        ("seal", ["audit", "seal", "january"]),
        ("estimate", ["audit", "estimate", "january"]),
    ):
        if step == "seal":
            label_everything()
        traces = 1
        while run(arguments, home.env, dies_at=traces).killed:
            traces *= 2
        assert traces >= 4
        assert run(arguments, home.env).status == 0
    with open_resources() as resources:
        assert resources.audit("january").verify() == []
        assert resources.audit("january").progress().items == 100
        actions = [event.action for event in resources.audit_store.chain("january")]
    assert actions == ["planned", "approved", "drawn", "labelled", "estimated"]
    assert json.loads((evidence(home) / "result.json").read_text())["labelled"] == 100


def test_a_report_of_the_dsa_is_checked(capsys, tmp_path):
    assert main(["audit", "validate-dsa", str(GOLDEN)]) == 0
    assert "no problems found" in capsys.readouterr().out
    broken = tmp_path / "broken.csv"
    broken.write_bytes(GOLDEN.read_bytes().replace(b"Precision", b"Exactness", 1))
    assert main(["audit", "validate-dsa", str(broken)]) == 1
    printed = capsys.readouterr().out
    assert printed.startswith("5, Indicator: ")
    assert printed.count("\n") == 1
    with pytest.raises(SystemExit, match="2"):
        main(["audit", "validate-dsa", str(tmp_path / "missing.csv")])
    assert "missing.csv': No such file" in capsys.readouterr().err
