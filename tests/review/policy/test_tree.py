import threading
import tomllib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Engine, select

from modwatch.common.errors import QueueError, SettingsError
from modwatch.review.database import json_digest
from modwatch.review.policy import tree as module
from modwatch.review.policy.tree import (
    CATEGORIES,
    Policy,
    check,
    check_reason,
    load_policy,
    register_policy,
)
from modwatch.review.tables import policy_version

SHIPPED = Path(module.__file__).with_name("policy.toml")
POLICY = load_policy()
CODES = [node.code for node in POLICY.nodes]

MINIMAL = """
version = "1"

[[node]]
code = "bad"
label = 1
dsa_category = "STATEMENT_CATEGORY_VIOLENCE"
title = { en = "Bad", de = "Schlecht" }
description = { en = "It is bad.", de = "Es ist schlecht." }

[[node]]
code = "bad.worse"
parent = "bad"
label = 1
key = "w"
title = { en = "Worse", de = "Schlechter" }
description = { en = "It is worse.", de = "Es ist schlechter." }

[[node]]
code = "good"
label = 0
key = "g"
title = { en = "Good", de = "Gut" }
description = { en = "It is good.", de = "Es ist gut." }

[reasons]
skip.unsure = { en = "Unsure", de = "Unsicher" }
escalate.other = { en = "Other", de = "Anderes" }
correct.slip = { en = "Slip", de = "Versehen" }
close.other = { en = "Other", de = "Anderes" }
"""

#: What is changed in the minimal policy, into what, and what the refusal names.
REFUSED = [
    ('parent = "bad"', 'parent = "nowhere"', "bad.worse", "unknown parent nowhere"),
    ('parent = "bad"', 'parent = "bad.worse"', "bad.worse", "its own ancestor"),
    ('parent = "bad"', 'parent = "good"', "bad.worse", "label", "good"),
    ('code = "good"', 'code = "bad"', "code bad", "2 nodes"),
    ('key = "g"', 'key = "w"', "key w", "2 nodes"),
    ('key = "g"', 'key = "gg"', "node 'good': key"),
    ('{ en = "Worse", de = "Schlechter" }', '{ en = "Worse" }', "'bad.worse': title.de"),
    ('{ en = "Good", de = "Gut" }', '{ en = " ", de = "Gut" }', "node 'good': title.en"),
    ("CATEGORY_VIOLENCE", "CATEGORY_VIOLINS", "node bad ", "STATEMENT_CATEGORY_VIOLINS"),
    ('dsa_category = "STATEMENT_CATEGORY_VIOLENCE"', "", "node bad ", "lacks a DSA"),
    ('key = "w"', 'dsa_keyword = "KEYWORD_SUICIDE"', "bad.worse", "KEYWORD_SUICIDE"),
    ('key = "g"', 'dsa_category = "STATEMENT_CATEGORY_VIOLENCE"', "node good ", "not toxic"),
    ("label = 0", "label = 2", "node 'good': label"),
    ('code = "good"', 'colour = "red"', "node number 3"),
    ('code = "good"', 'code = "So good!"', "node 'So good!': code"),
    ('version = "1"', "", "own.toml: version:"),
    ("correct.slip", "correct.Slip", "reasons.correct.Slip"),
    ("close.other", "skip.other", "reasons.close is empty"),
    ("close.other", "praise.other", "reasons.praise"),
]

Write = Callable[[str], Path]


@pytest.fixture
def write(tmp_path):
    def put(content: str) -> Path:
        (tmp_path / "own.toml").write_text(content, encoding="utf-8")
        load_policy.cache_clear()
        return tmp_path / "own.toml"

    yield put
    load_policy.cache_clear()


def changed(policy: Policy, tmp_path: Path, title: str) -> Policy:
    """The same version with another title."""
    file = tmp_path / f"{title}.toml"
    file.write_text(SHIPPED.read_text(encoding="utf-8").replace('"Insult"', f'"{title}"'))
    return load_policy(file)


class TestShipped:
    def test_two_levels_and_few_leaves(self):
        parents = {node.parent for node in POLICY.nodes}
        leaves = [node for node in POLICY.nodes if node.code not in parents]
        assert len(leaves) <= 30
        assert {node.label for node in leaves} == {0, 1}
        for node in leaves:
            assert node.parent is None or POLICY.code(node.parent).parent is None

    def test_a_restriction_has_a_category_and_nothing_else_has(self):
        for node in POLICY.nodes:
            assert (node.dsa_category in CATEGORIES) == (node.label == 1)

    def test_a_child_has_its_parents_category_unless_it_says_another(self):
        categories = {node.code: node.dsa_category for node in POLICY.nodes}
        assert categories["hate.slur"] == categories["hate"]
        assert categories["hate.women"] != categories["hate"]
        assert categories["criticism"] is None

    def test_the_languages_differ(self):
        for node in POLICY.nodes:
            assert node.description.in_locale("de") != node.description.in_locale("en")
            assert node.description.in_locale("fr") == node.description.en
            assert node.description.en.endswith(".")
            assert node.description.de.endswith(".")


class TestFile:
    def test_an_own_file_takes_the_place_of_all(self, write):
        own = load_policy(write(MINIMAL))
        assert [node.code for node in own.nodes] == ["bad", "bad.worse", "good"]
        assert own.code("bad.worse").dsa_category == "STATEMENT_CATEGORY_VIOLENCE"

    def test_what_cannot_be_is_refused_by_name(self, write):
        for old, new, *names in REFUSED:
            assert MINIMAL.count(old) >= 1
            with pytest.raises(SettingsError) as refusal:
                load_policy(write(MINIMAL.replace(old, new, 1)))
            for name in [*names, ".toml"]:
                assert name in str(refusal.value)

    def test_what_is_no_policy_is_refused(self, write):
        circle = MINIMAL.replace('code = "bad"', 'code = "bad"\nparent = "bad.worse"')
        with pytest.raises(SettingsError, match="its own ancestor"):
            load_policy(write(circle))
        third = MINIMAL[MINIMAL.index('[[node]]\ncode = "bad.worse"') :].partition("\n\n")[0]
        third = third.replace("bad.worse", "worst").replace('"bad"', '"bad.worse"')
        third = third.replace('key = "w"\n', "")
        with pytest.raises(SettingsError, match="worst is on a third level"):
            load_policy(write(MINIMAL.replace("[reasons]", f"{third}\n\n[reasons]")))
        for content in ("version = ", "node = 3", 'node = ["a", "b"]', ""):
            with pytest.raises(SettingsError, match=r"\.toml"):
                load_policy(write(content))

    def test_a_missing_file_is_named(self, tmp_path):
        with pytest.raises(SettingsError, match=r"nowhere\.toml"):
            load_policy(tmp_path / "nowhere.toml")


class TestDigest:
    def test_every_content_counts_and_the_order_of_fields_does_not(self, write):
        before = load_policy(write(MINIMAL)).digest
        moved = MINIMAL.replace('label = 0\nkey = "g"', 'key = "g"\nlabel = 0')
        assert moved != MINIMAL
        assert load_policy(write(moved)).digest == before

        for old, new in (
            ("It is worse", "It is far worse"), ('key = "w"', ""), ("Slip", "Slips"),
        ):  # fmt: skip
            assert load_policy(write(MINIMAL.replace(old, new))).digest != before


class TestCheck:
    @given(code=st.sampled_from(CODES), label=st.sampled_from([0, 1]))
    def test_a_code_passes_with_its_label_only(self, code, label):
        if POLICY.code(code).label == label:
            check(POLICY, label, code, required=True)
        else:
            with pytest.raises(QueueError, match=f"the code {code} .* not {label}"):
                check(POLICY, label, code)

    @given(code=st.text(max_size=200).filter(lambda code: code not in CODES))
    def test_an_unknown_code_is_refused(self, code):
        with pytest.raises(QueueError, match="has no code") as refusal:
            check(POLICY, 1, code)
        assert len(str(refusal.value)) < 1_000

    def test_none_passes_where_none_is_required(self):
        check(POLICY, 1, None)
        with pytest.raises(QueueError, match="choose one"):
            check(POLICY, 1, None, required=True)


class TestReasons:
    def test_each_action_has_its_own(self):
        assert {action: list(reasons) for action, reasons in POLICY.reasons.items()} == {
            "skip": ["unsure", "language", "conflict_of_interest", "distressing", "technical"],
            "escalate": ["policy_gap", "context", "other", "legal", "severe"],
            "correct": ["slip", "new_context", "policy", "appeal"],
            "close": ["spam_wave", "duplicate", "outdated", "platform_removed", "other"],
        }

    def test_only_listed_reasons_pass(self):
        for action, reasons in POLICY.reasons.items():
            for reason in reasons:
                check_reason(POLICY, action, reason)
            for reason in ("boredom", "", None):
                with pytest.raises(QueueError, match=f"not a reason to {action}"):
                    check_reason(POLICY, action, reason)
        check_reason(POLICY, "label", None)  # an action without a list takes none
        with pytest.raises(QueueError, match="leave it out"):
            check_reason(POLICY, "label", "slip")


def stored(engine: Engine) -> tuple[str, str, dict[str, Any]]:
    columns = policy_version.c
    with engine.connect() as connection:
        row = connection.execute(select(columns.version, columns.digest, columns.content)).one()
    return row[0], row[1], row[2]


class TestRegister:
    def test_what_is_stored_once_is_the_policy_and_stays(self, engine, tmp_path):
        start = threading.Barrier(4)

        def register(_: int) -> None:
            start.wait()
            register_policy(engine, POLICY)

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(register, range(4)))
        version, digest, content = stored(engine)  # of the only row
        assert (version, digest) == (POLICY.version, POLICY.digest)
        assert json_digest(content) == digest
        with pytest.raises(SettingsError, match="choose a new version"):
            register_policy(engine, changed(POLICY, tmp_path, "Slight"))
        assert stored(engine)[1:] == (POLICY.digest, POLICY.content)


class TestPage:
    def test_its_example_is_a_policy_once_it_has_the_reasons(self, write):
        page = (Path(__file__).parents[3] / "docs" / "policy.md").read_text(encoding="utf-8")
        example = page.split("```toml\n")[1].split("```")[0]
        reasons = SHIPPED.read_text(encoding="utf-8").partition("[reasons.skip]")
        assert tomllib.loads(example)["node"]
        assert len(load_policy(write(example + "".join(reasons[1:]))).nodes) == 3
