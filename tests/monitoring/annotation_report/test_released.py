"""Further reports of a file: what they and the earlier ones show together."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from modwatch.cli.main import main
from modwatch.common.errors import SourceError
from modwatch.monitoring.annotation_report.released import report_of_file

GROUPINGS = ["gender", "gender,age"]


@pytest.fixture
def file(tmp_path):
    """Return a file of 12 women, 10 of them in their 20s, and 12 such men."""
    rng, people, items = np.random.default_rng(0), 24, 40
    number = np.tile(np.arange(people), items)
    table = pd.DataFrame(
        {
            "item": np.repeat(np.arange(items), people),
            "annotator": number,
            "label": rng.integers(0, 2, people * items),
            "gender": np.where(number < 12, "woman", "man"),
            "age": np.where(number % 12 < 10, "20s", "30s"),
        }
    )
    path = tmp_path / "mine.csv"
    table.to_csv(path, index=False)
    return path


def names(file: Path, groups: list[str]) -> list[tuple[str, ...]]:
    _, report = report_of_file(file, groups)
    assert [one.name for one in report.groupings] == groups
    return [one.groups.names if one.groups else () for one in report.groupings]


@pytest.mark.parametrize("order", [GROUPINGS, GROUPINGS[::-1]])
def test_two_reports_tell_of_no_few_people(file, order):
    """Women of all ages less those in their 20s would be two women."""
    (first,), (second,) = names(file, order[:1]), names(file, order[1:])
    assert len(first) > 0
    assert second == ()
    assert names(file, order) == [first, second]


def test_a_report_that_is_made_again_is_the_same(file):
    kept = file.with_name("mine.csv.groups.json")
    assert names(file, ["gender"]) == names(file, ["gender"]) == [("man", "woman")]
    assert json.loads(kept.read_text())["groups"] == {"gender": ["man", "woman"]}
    assert names(file, []) == []


def test_without_groups_nothing_is_kept(file):
    report_of_file(file, [])
    assert not file.with_name("mine.csv.groups.json").exists()


def test_another_content_minimum_or_reading_is_refused(file):
    names(file, ["gender"])
    for options in ({"minimum": 6}, {"reading": {"classes": ["1", "0"]}}):
        with pytest.raises(SourceError, match="or a minimum of 5"):
            report_of_file(file, ["gender"], **options)
    file.write_text(file.read_text() + "40,0,1,woman,20s\n")
    with pytest.raises(SourceError, match=r"delete .* if none was published"):
        report_of_file(file, ["age"])


def test_the_command_names_what_it_cannot_keep_or_read(file, capsys):
    kept = file.with_name("mine.csv.groups.json")
    kept.write_text("half a fi")
    command = ["annotations", "report", str(file), "--group", "gender"]
    assert main([*command, "--output", str(file.parent / "out")]) == 1
    assert f"{kept} keeps which groups were reported" in capsys.readouterr().err
    assert not (file.parent / "out").exists()
    kept.unlink()
    kept.mkdir()
    with pytest.raises(SourceError, match="cannot be read and written"):
        report_of_file(file, ["gender"])
