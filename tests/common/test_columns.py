import json

import pytest

from modwatch.common.columns import COLUMNS, RESERVED, own_columns
from modwatch.common.errors import SettingsError
from modwatch.data.lake.schemas import SOURCED, TABLES
from modwatch.settings import load_settings

TEXT = {"type": "text"}
REFUSED = [
    ({"text": TEXT}, "'text' is one of Modwatch's; choose another name"),
    ({"author_id": TEXT}, "'author_id' is one of Modwatch's"),
    *(({name: TEXT}, f"{name!r} is named like one that Modwatch adds") for name in (
        "dt", "row", "origin", "prob", "flagged", "salt", "faults", "hidden", "reference_x",
    )),
    ({"Channel": TEXT}, "'Channel' has no plain name; write up to 40"),
    ({"a" * 41: TEXT}, "has no plain name"),
    ({"a-b": TEXT}, "has no plain name"),
    ({"_a": TEXT}, "has no plain name"),
    ({"a": "text"}, "'a' is no JSON map; write one"),
    ({"a": {}}, "'a' has the type 'None'; choose one of text, number"),
    ({"a": {"type": "json"}}, "'a' has the type 'json'; choose one of"),
    ({"a": {"type": "text", "group_by": True}}, "'a' has group_by; it may have type"),
    ({"a": {"type": "text", "erasable": "yes"}}, "'a' has a fact that is neither true nor false"),
    ({"a": {"type": "number", "groups_by": True}}, "'a' has too many values to group by"),
    ({"a": {"type": "text", "hidden_when_blind": True}}, "'a' is hidden_when_blind and never"),
    ({"a": {"type": "time", "shown_in_queue": True}}, "'a' is a time, which would tell"),
]  # fmt: skip


@pytest.mark.parametrize(("given", "message"), REFUSED)
def test_what_can_be_no_column_is_named_with_the_remedy(given, message, monkeypatch):
    monkeypatch.setenv("MODWATCH_COLUMNS", json.dumps(given))
    with pytest.raises(SettingsError) as caught:
        load_settings()
    assert message in str(caught.value)
    assert "MODWATCH_COLUMNS" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ('{"a": {"type": "text"}, "a": {"type": "number"}}', "names a twice; name it once"),
        ('{"a": {"type": "text", "type": "number"}}', "names type twice"),
        ("{", "is no JSON map"),
        ("[]", "JSON map"),
    ],
)
def test_a_name_stands_once_in_a_map(written, message, monkeypatch):
    monkeypatch.setenv("MODWATCH_COLUMNS", written)
    with pytest.raises(SettingsError, match="MODWATCH_COLUMNS") as caught:
        load_settings()
    assert message in str(caught.value)


def test_the_environment_names_columns_with_their_facts(monkeypatch):
    monkeypatch.setenv("MODWATCH_COLUMNS", '{"select": {"type": "text", "groups_by": true}}')
    assert load_settings().columns == own_columns({"select": {**TEXT, "groups_by": True}})


def test_no_column_of_a_table_can_be_named_anew():
    tables = (*SOURCED, "segment_counts", "scores", "staged_scores")
    every = {name for table in tables for name in TABLES[table].names}
    known = {column.name for column in COLUMNS}
    assert every - known - {"threshold", "shard", "piece", "digest"} <= RESERVED
