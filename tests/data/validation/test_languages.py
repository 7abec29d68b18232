"""Scripts and languages of texts: hostile ones, and real ones."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from published import real_data

from modwatch.data.validation.languages import languages, scripts
from modwatch.data.validation.profiles import LOOKED_AT, profile_comments
from modwatch.data.validation.result import InvalidRows

LATIN, CYRILLIC = "an invented comment about nothing ", "выдуманный комментарий ни о чём "

HOSTILE = {
    "empty": ("", "none"),
    "emoji": ("😀🎉👍🏽" * 40, "none"),
    "zalgo": ("".join(letter + "\u0301\u0330\u034f" * 30 for letter in LATIN), "Latin"),
    "right-to-left marks": ("\u202e\u200f\u2067" * 50 + LATIN, "Latin"),
    "long": (CYRILLIC * 3_000, "Cyrillic"),
    "mixed": (LATIN + CYRILLIC * 2, "Cyrillic"),
    "homoglyphs": (LATIN.replace("e", "е").replace("o", "о"), "Latin"),
    "mathematical letters": ("𝓬𝓸𝓶𝓶𝓮𝓷𝓽", "other"),
    "NUL and unassigned": ("\x00\ufffe\U000e0001" * 50, "none"),
}


@pytest.mark.parametrize(("text", "script"), HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_text_has_a_script_and_a_language(text, script):
    assert scripts(pa.array([text])) == [script]
    (language,) = languages(pa.array([text]))
    assert 2 <= len(language) <= 3
    assert language.isascii()


def test_no_text_at_all():
    none = pa.array([], pa.string())
    assert (scripts(none), languages(none)) == ([], [])


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Das habe ich so nicht gesagt.", "de"),
        ("Je ne suis pas du tout d'accord.", "fr"),
        ("Я с этим совсем не согласен.", "ru"),
        ("Я з цим зовсім не погоджуюся.", "uk"),
        ("لا أتفق مع هذا الرأي على الإطلاق", "ar"),
        ("इससे मैं बिल्कुल सहमत नहीं हूँ, दोस्त", "hi"),
        ("저는 그 의견에 전혀 동의하지 않습니다 여러분", "ko"),
    ],
)
def test_the_language_of_a_sentence(text, language):
    assert languages(pa.array([text])) == [language]


NO_EVIDENCE = {
    "one letter": "w" * 20,
    "laughter": "haha" * 9,
    "slang": "wtf lol omg lmao",
    "a word again and again": "genau genau genau genau genau",
    "a link": "https://www.example.org/die-sache-mit-dem-hund",
    "accounts and tags": "@hans_und_grete #wirsindmehr grete@example.org",
    "a path": "see var/log/noch/eine/datei/im/ordner",
    "names": "John Smith, Maria Garcia, Jürgen Müller",
    "clubs": "Bayern München Dortmund Schalke Leipzig",
    "acronyms of gamers": "thx bro gg wp ez",
    "numbers": "12 345 678 910 1112 131415",
}


@pytest.mark.parametrize("text", NO_EVIDENCE.values(), ids=NO_EVIDENCE)
def test_what_says_nothing_of_a_language_names_none(text):
    assert languages(pa.array([text])) == ["und"]


def test_links_and_capitals_do_not_hide_a_language():
    texts = [
        "Siehe https://example.org/the/news: das habe ich so nie gesagt",
        "THIS IS AN OUTRAGE!",
    ]
    assert languages(pa.array(texts)) == ["de", "en"]


def test_of_real_short_and_long_comments_what_is_named_is_right():
    """They are in English: two streams, 1,000 of fewer than 60 characters and 1,000 others."""
    talk = pd.read_csv(real_data("wikipedia_talk/context_gc.csv.gz"), usecols=["text"])["text"]
    civil = real_data("civil_comments_cctk/comments_with_ratings.parquet")
    civil = pd.read_parquet(civil, columns=["text"])["text"]
    every = pd.concat([part.astype(str).sample(4_000, random_state=0) for part in (talk, civil)])
    short = every.str.len() < 60
    for part, least in ((every[short], 0.65), (every[~short], 0.98)):
        found = pd.Series(languages(pa.array(part.head(1_000), pa.string())))
        named = found[found != "und"]
        assert len(named) >= least * 1_000
        assert (named == "en").mean() >= 0.98


def test_real_comments_in_english():
    """Of those with 12 letters or more, 95 % are found to be English, and all are Latin."""
    rows = pd.read_csv(real_data("wikipedia_talk/context_gc.csv.gz"), usecols=["text"], nrows=1_500)
    texts = pa.array(rows["text"].astype(str), pa.string())
    found = [name for name in languages(texts) if name != "und"]
    assert found.count("en") > 0.95 * len(found) > 1_000
    assert scripts(texts).count("Latin") > 0.99 * len(texts)


def test_of_a_large_day_some_texts_are_looked_at(landed):
    """Also where every second comment is of another feed."""
    size = 40_000
    texts = [LATIN if row % 2 else CYRILLIC for row in range(size)]
    batches = [
        landed(size // 4, start=start, text=texts[start : start + size // 4])
        for start in range(0, size, size // 4)
    ]
    valid = InvalidRows(
        day=batches[0]["dt"][0].as_py(), reason=np.zeros(size, np.int16), reasons=()
    )
    made = profile_comments(batches, valid).categories
    assert sum(made["script"].values()) == pytest.approx(LOOKED_AT, rel=0.05)
    assert made["script"]["Cyrillic"] == pytest.approx(LOOKED_AT / 2, rel=0.1)
    assert made["detected_language"] == {}  # the source names the language of each


def test_a_day_in_another_script_is_a_warning_and_is_published(landed, validate):
    """The bounds are those of languages that the source names."""
    usual = [validate(landed(250, text=[LATIN] * 250, language=[None] * 250)).profile] * 3
    batch = landed(250, text=[CYRILLIC] * 250, language=[None] * 250)
    checked = validate(batch, trailing=usual).result
    warned = {rule.name: rule.observed for rule in checked.failed_of("day")}
    assert warned == {
        "detected_language_shift": "1.000 bits; ru 100 %",
        "script_shift": "1.000 bits; Cyrillic 100 %",
    }
    assert (checked.status, checked.valid) == ("warned", 250)
