"""The languages: every message is translated, and what is written depends on the language alone."""

import functools
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from babel.messages.catalog import Catalog, Message
from babel.messages.extract import extract_from_dir
from babel.messages.pofile import read_po
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import Environment, StrictUndefined, nodes

from modwatch.review.console import i18n
from modwatch.review.console.i18n import LANGUAGES, Formats, install, negotiate, translator
from modwatch.statistics.collaboration.review_strategies import REVIEW_SCORES

CONSOLE = Path(i18n.__file__).parent
METHODS = [
    ("**.py", "python"),
    ("templates/**.html", "jinja2.ext:babel_extract"),
    ("static/**.js", "javascript"),
]
#: The templates' whitespace and blocks are read as `render` and `install` read them.
OPTIONS = {
    "templates/**.html": {
        "trimmed": "true",
        "silent": "false",
        "newstyle_gettext": "true",
        "trim_blocks": "true",
        "lstrip_blocks": "true",
    }
}
#: What a person reads in a tag, and what needs no translation wherever it stands.
SPOKEN = re.compile(r"""(?:aria-label|title|placeholder|alt|aria-description)=["']([^"']*)["']""")
NAMES = {"Modwatch", "UTC", "Enter", "Esc", "Ctrl", "Shift", "Alt", "Tab"}
#: gettext's, and those that the script fills in.
PLACEHOLDER = re.compile(r"%\(\w+\)[a-z]|%%|%[a-z]|\{\w+\}")

Key = tuple[str | None, str, str | None]


@functools.cache
def extracted() -> dict[Key, set[str]]:
    """Every message of the console, as context, singular and plural, and the files it stands in."""
    found: dict[Key, set[str]] = {}
    for file, _, message, _, context in extract_from_dir(CONSOLE, METHODS, OPTIONS):
        singular, plural = message if isinstance(message, tuple) else (message, None)
        found.setdefault((context, singular, plural), set()).add(file)
    for score in REVIEW_SCORES.values():
        for message in (score.reason, score.explanation):
            found.setdefault((None, message, None), set()).add("review_strategies.py")
    return found


def entries(locale: str) -> dict[Key, Message]:
    with (CONSOLE / "locales" / f"{locale}.po").open("rb") as file:
        catalogue: Catalog = read_po(file, locale=locale, abort_invalid=True)
    return {key(message): message for message in catalogue if message.id}


def key(message: Message) -> Key:
    singular, plural = message.id if isinstance(message.id, tuple) else (message.id, None)
    return message.context, singular, plural


def quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def to_paste(missing: dict[Key, set[str]]) -> Iterator[str]:
    for (context, singular, plural), files in sorted(missing.items(), key=lambda item: item[0][1]):
        yield f"\n#: {' '.join(sorted(files))}"
        if context is not None:
            yield f"msgctxt {quoted(context)}"
        yield f"msgid {quoted(singular)}"
        if plural is None:
            yield 'msgstr ""'
        else:
            yield f'msgid_plural {quoted(plural)}\nmsgstr[0] ""\nmsgstr[1] ""'


@pytest.mark.parametrize("locale", sorted(set(LANGUAGES) - {"en"}))
class TestCatalogue:
    def test_every_message_is_translated(self, locale):
        known = {
            entry: message
            for entry, message in entries(locale).items()
            if all(message.string if isinstance(message.string, tuple) else (message.string,))
        }
        missing = {entry: files for entry, files in extracted().items() if entry not in known}
        if missing:
            result = (
                f"{len(missing)} messages lack a translation; add to console/locales/{locale}.po"
            )
            # Without the marks that pytest puts before the lines of an assertion.
            pytest.fail("\n".join([f"{result}:", *to_paste(missing)]), pytrace=False)

    def test_every_entry_is_used_and_none_is_a_guess(self, locale):
        unused = [singular for _, singular, _ in set(entries(locale)) - set(extracted())]
        listed = "\n".join(sorted(unused))
        assert not unused, f"take out of console/locales/{locale}.po:\n{listed}"
        assert [message.id for message in entries(locale).values() if message.fuzzy] == []

    def test_placeholders_are_kept(self, locale):
        for (_, singular, plural), message in entries(locale).items():
            wanted = [singular, *([] if plural is None else [plural])]
            for source, string in zip(wanted, strings(message), strict=True):
                assert placeholders(string) == placeholders(source), f"{source}: mend {string}"


def strings(message: Message) -> tuple[str, ...]:
    return message.string if isinstance(message.string, tuple) else (message.string,)


def placeholders(text: str) -> list[str]:
    return sorted(PLACEHOLDER.findall(text))


def test_no_text_stands_outside_a_message():
    files = {file for files in extracted().values() for file in files}
    assert not [file for file in files if file.endswith(".js")]  # the script has none of its own
    environment = Environment(extensions=["jinja2.ext.i18n"])
    for template in (CONSOLE / "templates").glob("*.html"):
        data = environment.parse(template.read_text("utf-8")).find_all(nodes.TemplateData)
        page = re.sub(r"<!--.*?-->", "", "".join(node.data for node in data), flags=re.DOTALL)
        texts = [re.sub(r"<[^>]*>", " ", page), *SPOKEN.findall(page)]
        words = {word for text in texts for word in re.findall(r"[^\W\d_]{2,}", text)}
        words -= NAMES | {"nbsp", "middot", "amp", "times"}
        assert not words, f"put into a message in {template.name}: {', '.join(sorted(words))}"


def test_a_header_is_negotiated_and_the_preference_goes_first():
    for header, language in (
        ("de", "de"), ("de-AT,en;q=0.9", "de"), ("en-GB,de;q=0.9", "en"),
        ("DE ; Q=0.7, en;q=0.3", "de"), ("en;q=0.3,de;q=0.7", "de"), ("fr,de;q=0.1", "de"),
        ("de;q=0", "en"), ("de;q=nan,en;q=0.1", "en"), ("de;q=7", "en"), ("de;level=1", "en"),
        ("deutsch", "en"), ("*", "en"), ("", "en"), (None, "en"),
    ):  # fmt: skip
        assert negotiate(header) == language, header
    assert negotiate("en", "de") == "de"
    assert negotiate("de", "en") == "en"
    for unknown in (None, "", "fr", 7, ["de"]):
        assert negotiate("de", unknown) == "de"


@given(header=st.text(max_size=200), preference=st.none() | st.text() | st.integers())
def test_any_header_gives_a_language(header, preference):
    assert negotiate(header, preference) in LANGUAGES


class TestTranslator:
    def test_what_has_no_translation_stays_english(self):
        assert translator("de").gettext("no such message") == "no such message"
        assert translator("de").ngettext("%(num)s cat", "%(num)s cats", 2) == "%(num)s cats"
        assert translator("en").gettext("") == translator("de").gettext("") == ""

    @pytest.mark.parametrize("locale", ["en", "de"])
    def test_templates_escape_what_they_put_into_a_message(self, locale):
        environment = Environment(autoescape=True, undefined=StrictUndefined)
        install(environment, locale)
        template = environment.from_string(
            "{% trans name=name %}\n  Hello\n  {{ name }}\n{% endtrans %}|"
            "{{ _('Hi %(who)s', who=name) }}|{{ locale }}|{{ formats.number(1234) }}"
        )
        number = {"en": "1,234", "de": "1.234"}[locale]
        assert template.render(name="<b>") == f"Hello &lt;b&gt;|Hi &lt;b&gt;|{locale}|{number}"


class TestFormats:
    EN, DE = Formats(locale="en"), Formats(locale="de")

    def test_times_are_in_utc(self):
        east = datetime(2026, 1, 1, 1, 30, tzinfo=timezone(timedelta(hours=9)))
        assert self.EN.moment(east) == "Dec 31, 2025, 16:30 UTC"
        assert self.DE.moment(east) == "31.12.2025, 16:30 UTC"
        assert self.DE.time(east.astimezone(UTC)) == "16:30 UTC"

    def test_figures(self):
        assert self.EN.number(1_234_567) == "1,234,567"
        assert self.DE.number(0.5, digits=2) == "0,50"
        assert self.EN.percent(1) == "100%"
        assert self.DE.percent(0.0625, digits=2) == "6,25\xa0%"

    def test_an_age_is_never_rounded_up(self):
        for age, english, german in (
            (timedelta(seconds=-90), "0 min", "0 min"),
            (timedelta(seconds=59), "0 min", "0 min"),
            (timedelta(minutes=119, seconds=59), "119 min", "119 min"),
            (timedelta(hours=2), "2 h", "2 h"),
            (timedelta(hours=47, minutes=59), "47 h", "47 h"),
            (timedelta(hours=48), "2 days", "2 Tage"),
            (timedelta(days=400), "400 days", "400 Tage"),
        ):
            assert (self.EN.age(age), self.DE.age(age)) == (english, german)
