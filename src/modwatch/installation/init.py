"""`modwatch init`: from a folder or a database of comments to a settings file."""

import datetime
import json
import shlex
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, cast
from urllib.parse import urlsplit

from pydantic import TypeAdapter

from modwatch.common.days import can_have_comments, require_possible
from modwatch.common.errors import SettingsError
from modwatch.data.sources.delimited import Dialect, TextFormat
from modwatch.data.sources.files import FileSource
from modwatch.data.sources.inspection import (
    TimeFormat,
    describe,
    describe_choice,
    look,
    propose,
    propose_score,
    shown_names,
    usable_names,
)
from modwatch.data.sources.landing import FILLABLE
from modwatch.data.sources.own_data import (
    FileData,
    Sample,
    TableData,
    Times,
    database_url,
    table_names,
)
from modwatch.data.sources.readers import dialect_of
from modwatch.data.sources.sql import SqlSource
from modwatch.installation.resources import source_of
from modwatch.installation.stack.installation import is_free
from modwatch.installation.trial import try_source
from modwatch.settings import EMBEDDED, Settings, SourceSettings
from modwatch.settings.fields import variables
from modwatch.settings.file import DEFAULT, VARIABLE, Entry, render, write

#: What a column is of a comment, and the options that answer for it.
_REQUIRED = {
    "comment_id": ("the id", "--column comment_id=COLUMN, or of files --generate-ids"),
    "text": ("the text", "--column text=COLUMN"),
    "created_at": (
        "the time",
        "--column created_at=COLUMN, --time-format FORMAT for times in another form, or of files "
        "--day DATE as the day of all rows",
    ),
}
_PARTS = ("AIRFLOW", "MLFLOW", "CONSOLE")


@dataclass(frozen=True, kw_only=True)
class InitOptions:
    """Answers that are known beforehand; None and empty ones are asked for."""

    #: File, folder or database URL.
    source: str | None
    #: Of a database.
    table: str | None
    #: `NAME=COLUMN`.
    column: Sequence[str]
    day_first: bool
    month_first: bool
    timezone: str | None
    #: Format of strptime of the times.
    time_format: str | None
    encoding: str | None
    #: Of text files.
    delimiter: str | None
    quoting: str | None
    escape: str | None
    #: The source has no ids.
    generate_ids: bool
    #: Columns with one vote each, with commas between them.
    votes: str | None
    platform: str | None
    #: Column of probabilities, or `none`.
    own_scores: str | None
    #: First day to run; of files without times, the day of all rows.
    day: datetime.date | None
    home: Path | None
    #: The settings file.
    output: Path
    #: Replace a settings file.
    force: bool
    #: Take every default.
    yes: bool


def with_file(path: Path) -> str:
    """Return the prefix of a command that reads this settings file, empty for the default.

    >>> with_file(Path("modwatch.env")), with_file(Path("my forum.env"))
    ('', "MODWATCH_SETTINGS_FILE='my forum.env' ")
    """
    is_default = path.absolute() == Path(DEFAULT).absolute()
    return "" if is_default else f"{VARIABLE}={shlex.quote(str(path))} "


@dataclass(frozen=True, kw_only=True)
class Dialogue:
    """Asks on a terminal; with `--yes` it accepts every proposal."""

    yes: bool

    def ask(self, question: str, proposed: str | None, option: str) -> str:
        """Return an answer; raise SettingsError that names the option without a terminal."""
        if self.yes or not sys.stdin.isatty():
            if self.yes and proposed is not None:
                return proposed
            raise SettingsError(f"{question} is open; add {option}, or run on a terminal")
        shown = f" [{proposed}]" if proposed is not None else ""
        while True:
            answer = input(f"{question}{shown}: ").strip() or proposed
            if answer:
                return answer

    def choose(
        self,
        question: str,
        choices: Sequence[str],
        proposed: str | None,
        option: str,
        given: str | None = None,
    ) -> str:
        """Return one of `choices`; `given` is the answer of the option."""
        while True:
            answer = given or self.ask(f"{question} ({', '.join(choices)})", proposed, option)
            if answer in choices:
                return answer
            if given or self.yes or not sys.stdin.isatty():
                raise SettingsError(
                    f"{answer!r} is not one of {', '.join(choices)}; correct {option}"
                )
            print(f"{answer!r} is not one of them")


@dataclass(frozen=True, kw_only=True)
class _Reading:
    """How to read a source."""

    columns: Mapping[str, str]
    #: None: the source has no times.
    times: Times | None
    #: Column of probabilities; None: a model scores.
    score: str | None
    votes: Sequence[str]


def write_settings(options: InitOptions) -> datetime.date:
    """Write a settings file for comments of a file, folder or database; return the day to run.

    What the options leave open is asked on the terminal.

    Raises:
        SettingsError: a question is open and cannot be asked, an answer is impossible, the
            settings file exists, or most of the first rows would be quarantined.
    """
    if options.output.exists() and not options.force:
        raise SettingsError(
            f"{options.output} exists; `{with_file(options.output)}modwatch up` reads it, and "
            "--force replaces it"
        )
    dialogue = Dialogue(yes=options.yes)
    given = options.source or dialogue.ask("Folder, file or database URL", None, "SOURCE")
    data = _data(given, options, dialogue)
    sample = data.sample()
    if not sample.rows:
        raise SettingsError(f"{sample.where} has no row; point to data with comments")
    reading = _reading(data, sample, options, dialogue)
    if isinstance(data, FileData):
        data = data.dated(reading.times)
        days = data.days(reading.times) or Counter(filter(None, [options.day]))
    else:
        days = data.days(cast(Times, reading.times))
    if strange := Counter({day: days[day] for day in days if not can_have_comments(day)}):
        days -= strange
        print(
            f"Rows of days before 1990 or to come: {strange.total():,}. They land on no day; "
            "correct their times, or read them otherwise (--time-format, --timezone)."
        )
    if not days:
        raise SettingsError("all times are before 1990 or to come; add --time-format")
    chosen = options.day or _last_whole_day(days)
    require_possible(chosen, min(days))
    source = _source_settings(data, sample, reading, options)
    _try(source, chosen)
    of_source = "" if "://" in given else f", of `modwatch init {given}`"
    entries = _entries(source, min(days), options)
    write(options.output, render(f"Settings of Modwatch{of_source}.", entries))
    print(f"\n{options.output} is written; {len(days)} days were found, the last is {max(days)}.")
    return chosen


def _try(source: Mapping[str, object], day: datetime.date) -> None:
    """Validate the first rows as these settings read them, and print what becomes of them."""
    given = {name.lower(): value for name, value in source.items()}
    settings: SourceSettings = TypeAdapter(SourceSettings).validate_python(given)
    opened = cast(FileSource | SqlSource, source_of(settings))
    if isinstance(opened, SqlSource) and (undated := opened.undated()):
        print(f"\n{undated:,} rows have no time that the database can read; they are on no day.")
    print(f"\n{try_source(opened, day)}")


def _data(given: str, options: InitOptions, dialogue: Dialogue) -> FileData | TableData:
    url = database_url(given)
    if url is None:
        files = FileData.find(given, form=TextFormat(**_text_format(options)))
        dialect = dialect_of(files.files[0], form=files.form)
        if dialect != Dialect():
            quotes = "no quotation marks" if not dialect.quoted else "quotation marks"
            escape = f", and {dialect.escape} before them" if dialect.escape else ""
            print(f"Text is read with {dialect.delimiter!r} between fields, {quotes}{escape}.\n")
        return files
    if options.generate_ids:
        raise SettingsError("--generate-ids is for files; make a view of the table with ids")
    tables = table_names(url)
    proposed = tables[0] if len(tables) == 1 else None
    return TableData(
        url=url, table=dialogue.choose("Table", tables, proposed, "--table", options.table)
    )


def _text_format(options: InitOptions) -> dict[str, Any]:
    given = {
        name: getattr(options, name) for name in ("encoding", "delimiter", "quoting", "escape")
    }
    given["delimiter"] = "\t" if options.delimiter == "tab" else options.delimiter
    return {name: value for name, value in given.items() if value is not None}


def _reading(
    data: FileData | TableData, sample: Sample, options: InitOptions, dialogue: Dialogue
) -> _Reading:
    columns, rows = look(sample.rows, sample.names, options.time_format), len(sample.rows)
    print(f"The first {rows:,} rows of {sample.where}:\n\n{describe(columns, rows)}\n")
    choices = _choices(sample.names)
    usable = [column for column in columns if column.name in choices.values()]
    shown = {name: label for label, name in choices.items()}
    given = _given_columns(options.column, choices)
    chosen = propose(usable, rows) | given
    generated = {"comment_id"} if options.generate_ids else set()
    has_day = isinstance(data, FileData) and ("{dt}" in data.path or options.day is not None)
    if has_day and "created_at" not in chosen:
        generated.add("created_at")
    chosen = {field: column for field, column in chosen.items() if field not in generated}
    for field in [field for field in _REQUIRED if field not in {*given, *generated}]:
        proposed = shown.get(chosen.get(field, ""))
        chosen[field] = choices[_column(field, proposed, [*choices], dialogue)]
    times = None
    if (name := chosen.pop("created_at", None)) is not None:
        [forms] = [column.formats for column in usable if column.name == name]
        form = _form(shown[name], forms, options, dialogue)
        zone = None if form.has_zone else _timezone(shown[name], options, dialogue)
        times = Times(column=name, form=form, zone=zone)
    named = filter(None, (options.votes or "").split(","))
    votes = [_known(name, choices, "--votes") for name in named]
    score = _score(propose_score(usable, rows), choices, options, dialogue)
    read = {**chosen, "created_at": name, "prob": score}
    as_read = {field: column for field, column in read.items() if column is not None}
    print(f"\n{describe_choice(as_read, usable, sample.names, rows)}")
    if generated:
        print(f"Without a column: {', '.join(sorted(generated))} (--generate-ids, --day).")
    return _Reading(columns=chosen, times=times, score=score, votes=votes)


def _column(field: str, proposed: str | None, choices: Sequence[str], dialogue: Dialogue) -> str:
    """Return the column of a required field; SettingsError that says why none can be proposed."""
    meaning, option = _REQUIRED[field]
    if proposed is None and dialogue.yes:
        hint = ", or --delimiter: the first line names only one" if len(choices) == 1 else ""
        raise SettingsError(
            f"no column can be {meaning}; add {option}{hint}; if the names above are damaged, add "
            "--encoding"
        )
    question = f"Column with {meaning}" + ("" if proposed else f", or start again with {option}")
    return dialogue.choose(question, choices, proposed, option)


def _choices(names: Sequence[str]) -> dict[str, str]:
    """Return the columns that can be chosen, by what is shown of their names."""
    usable = set(usable_names(names))
    pairs = zip(shown_names(names), names, strict=True)
    return {shown: name for shown, name in pairs if name in usable}


def _timezone(shown: str, options: InitOptions, dialogue: Dialogue) -> str:
    if options.timezone is None and options.yes:
        print(f"The times in {shown} have no time zone; they are read as UTC (--timezone).")
    return options.timezone or dialogue.ask(
        f"The times in {shown} have no time zone. Zone", "UTC", "--timezone"
    )


def _score(
    proposed: str | None,
    choices: Mapping[str, str],
    options: InitOptions,
    dialogue: Dialogue,
) -> str | None:
    """Return the column of probabilities; None: there is none."""
    answer = options.own_scores or dialogue.ask(
        "Column with probabilities of a model of yours, or none", proposed or "none", "--own-scores"
    )
    return None if answer == "none" else _known(answer, choices, "--own-scores")


def _known(name: str, choices: Mapping[str, str], option: str) -> str:
    """Return a column that an option names, by its name or by what is shown of it."""
    column = choices.get(name, name)
    if column not in choices.values():
        raise SettingsError(
            f"there is no column {name!r}; correct {option}; it may be {', '.join(choices)}"
        )
    return column


def _given_columns(given: Sequence[str], choices: Mapping[str, str]) -> dict[str, str]:
    pairs = dict(pair.partition("=")[::2] for pair in given)
    for field, column in pairs.items():
        if field not in (*FILLABLE, "created_at"):
            raise SettingsError(
                f"--column {field}=… sets no column of Modwatch; it may set "
                f"created_at, {', '.join(FILLABLE)}"
            )
        pairs[field] = _known(column, choices, f"--column {field}")
    return pairs


def _form(
    shown: str, forms: Sequence[TimeFormat], options: InitOptions, dialogue: Dialogue
) -> TimeFormat:
    """Return how times are written; the order of day and month is asked for if it is open."""
    if not forms:
        raise SettingsError(
            f"the values of {shown} are not times that Modwatch can read (ISO 8601, numbers "
            "since 1970, or day, month and year with . / or -); set --column created_at=COLUMN, "
            "--time-format, or --day without this column"
        )
    if len(forms) == 1:
        return forms[0]
    first = {"%d": "day", "%m": "month"}
    by_first = {first[str(form.written)[:2]]: form for form in forms}
    order = "day" if options.day_first else "month" if options.month_first else None
    return by_first[
        order
        or dialogue.choose(
            f"Which comes first in {shown}", [*by_first], None, "--day-first or --month-first"
        )
    ]


def _last_whole_day(days: Counter[datetime.date]) -> datetime.date:
    """Return the last day that is not much smaller than the others."""
    usual = median(days.values())
    return max(day for day, rows in days.items() if rows * 2 >= usual)


def _source_settings(
    data: FileData | TableData, sample: Sample, reading: _Reading, options: InitOptions
) -> dict[str, object]:
    """Return the settings of the source, by their name after MODWATCH_SOURCE__."""
    wanted = dict(reading.columns) | ({"prob": reading.score} if reading.score else {})
    values: dict[str, object] = {}
    times = reading.times
    if isinstance(data, FileData):
        form = {name.upper(): value for name, value in _text_format(options).items()}
        values = {"KIND": "files", "PATH": data.path, **form}
        values["GENERATE_IDS"] = options.generate_ids or None
        if times is None:
            values["DAY"] = "{dt}" if "{dt}" in data.path else str(options.day)
    elif times is not None:
        time = next(row[times.column] for row in sample.rows if row[times.column])
        columns = [*wanted.values(), *reading.votes]
        query, undated = data.queries(columns, wanted["comment_id"], times, time)
        values = {"KIND": "sql", "URL": data.url, "QUERY": query, "UNDATED_QUERY": undated}
    renamed = {name: column for name, column in wanted.items() if name != column}
    values |= {
        "TIMESTAMP_COLUMN": times and times.column,
        "TIMESTAMP_FORMAT": times and times.form.written,
        "ASSUME_TIMEZONE": times and times.zone,
        "PLATFORM": options.platform,
        "COLUMNS": renamed or None,
        "VOTES": reading.votes or None,
        "OWN_SCORES": True if reading.score else None,
    }
    return {name: value for name, value in values.items() if value is not None}


def _entries(
    source: Mapping[str, object], first: datetime.date, options: InitOptions
) -> list[Entry]:
    home = (options.home or Path("modwatch-home")).expanduser().absolute()
    values = {
        "MODWATCH_HOME": str(home),
        "MODWATCH_DATABASE_URL": EMBEDDED,
        "MODWATCH_FIRST_DAY": first.isoformat(),
        **dict(_other_ports()),
    }
    for name, value in source.items():
        written = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        values[f"MODWATCH_SOURCE__{name}"] = written
    known = [variable for variable in variables() if variable.source in (None, source["KIND"])]
    comments = {variable.name: str(variable.info.description) for variable in known}
    return [Entry(name=n, value=value, comment=comments[n]) for n, value in values.items()]


def _other_ports() -> Iterator[tuple[str, str]]:
    """Yield another address of each part whose default port is in use."""
    for part in _PARTS:
        name = f"{part.lower()}_url"
        url = urlsplit(str(Settings.model_fields[name].default))
        port = next(free for free in range(url.port or 0, 65_536) if is_free(free))
        if port != url.port:
            yield f"MODWATCH_{part}_URL", f"http://127.0.0.1:{port}"
