"""`modwatch init`: from a folder or a database of comments to a settings file."""

import datetime
import json
import shlex
import socket
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from urllib.parse import urlsplit

from modwatch.common.days import require_possible
from modwatch.common.errors import SettingsError
from modwatch.data.sources.delimited import TextFormat
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
from modwatch.data.sources.own_data import FileData, Sample, TableData, database_url, table_names
from modwatch.settings import EMBEDDED, Settings
from modwatch.settings.fields import variables
from modwatch.settings.file import DEFAULT, VARIABLE, Entry, render, write

_REQUIRED = {"comment_id": "the id", "text": "the text", "created_at": "the time"}
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
    encoding: str
    platform: str | None
    #: Column of probabilities, or `none`.
    own_scores: str | None
    #: First day to run.
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
            raise SettingsError(f"{question} is open; answer with {option}, or run on a terminal")
        shown = f" [{proposed}]" if proposed is not None else ""
        while True:
            answer = input(f"{question}{shown}: ").strip() or proposed
            if answer:
                return answer

    def choose(
        self, question: str, choices: Sequence[str], proposed: str | None, option: str
    ) -> str:
        """Return one of `choices`."""
        while True:
            answer = self.ask(f"{question} ({', '.join(choices)})", proposed, option)
            if answer in choices:
                return answer
            if self.yes or not sys.stdin.isatty():
                raise SettingsError(
                    f"{answer!r} is not one of {', '.join(choices)}; correct {option}"
                )
            print(f"{answer!r} is not one of them")


@dataclass(frozen=True, kw_only=True)
class _Reading:
    """How to read a source."""

    columns: Mapping[str, str]
    time_column: str
    form: "TimeFormat"
    timezone: str | None
    #: Column of probabilities; None: a model scores.
    score: str | None


def write_settings(options: InitOptions) -> datetime.date:
    """Write a settings file for comments of a file, folder or database; return the day to run.

    What the options leave open is asked on the terminal.

    Raises:
        SettingsError: a question is open and cannot be asked, an answer is impossible, or the
            settings file exists.
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
    reading = _reading(sample, options, dialogue)
    data = data.dated(reading.time_column, reading.form, reading.timezone)
    days = data.days(reading.time_column, reading.form, reading.timezone)
    chosen = options.day or _last_whole_day(days)
    require_possible(chosen, min(days))
    source = _source_settings(data, sample, reading, options)
    of_source = "" if "://" in given else f", of `modwatch init {given}`"
    entries = _entries(source, min(days), options)
    write(options.output, render(f"Settings of Modwatch{of_source}.", entries))
    print(f"\n{options.output} is written; {len(days)} days were found, the last is {max(days)}.")
    return chosen


def _data(given: str, options: InitOptions, dialogue: Dialogue) -> FileData | TableData:
    url = database_url(given)
    if url is None:
        return FileData.find(given, form=TextFormat(encoding=options.encoding))
    tables = table_names(url)
    proposed = options.table or (tables[0] if len(tables) == 1 else None)
    return TableData(
        url=url,
        table=dialogue.choose("Table", tables, proposed, "--table")
        if options.table is None
        else _known(options.table, tables),
    )


def _known(table: str, tables: Sequence[str]) -> str:
    if table not in tables:
        raise SettingsError(f"there is no table {table!r}; --table may be {', '.join(tables)}")
    return table


def _reading(sample: Sample, options: InitOptions, dialogue: Dialogue) -> _Reading:
    columns, rows = look(sample.rows, sample.names), len(sample.rows)
    print(f"The first {rows:,} rows of {sample.where}:\n\n{describe(columns, rows)}\n")
    choices = _choices(sample.names)
    usable = [column for column in columns if column.name in choices.values()]
    shown = {name: label for label, name in choices.items()}
    given = _given_columns(options.column, choices)
    chosen = propose(usable, rows) | given
    for field, meaning in _REQUIRED.items():
        if field not in given:
            proposed = shown[chosen[field]] if field in chosen else None
            question, option = f"Column with {meaning}", f"--column {field}=COLUMN"
            chosen[field] = choices[dialogue.choose(question, [*choices], proposed, option)]
    time_column = chosen.pop("created_at")
    [forms] = [column.formats for column in usable if column.name == time_column]
    form = _form(shown[time_column], forms, options, dialogue)
    timezone = None if form.has_zone else _timezone(shown[time_column], options, dialogue)
    score = _score(propose_score(usable, rows), choices, options, dialogue)
    as_read = {**chosen, "created_at": time_column, **({"prob": score} if score else {})}
    print(f"\n{describe_choice(as_read, usable, sample.names, rows)}")
    return _Reading(
        columns=chosen, time_column=time_column, form=form, timezone=timezone, score=score
    )


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
    column = choices.get(answer, answer)
    if answer == "none":
        return None
    if column not in choices.values():
        raise SettingsError(f"there is no column {answer!r}; correct --own-scores")
    return column


def _given_columns(given: Sequence[str], choices: Mapping[str, str]) -> dict[str, str]:
    pairs = dict(pair.partition("=")[::2] for pair in given)
    for field, column in pairs.items():
        if field not in (*FILLABLE, "created_at"):
            raise SettingsError(
                f"--column {field}=… sets no column of Modwatch; it may set "
                f"created_at, {', '.join(FILLABLE)}"
            )
        pairs[field] = choices.get(column, column)
        if pairs[field] not in choices.values():
            raise SettingsError(
                f"--column {field}={column}: there is no column {column!r}, or several have this "
                f"name; it may be {', '.join(choices)}"
            )
    return pairs


def _form(
    shown: str, forms: Sequence[TimeFormat], options: InitOptions, dialogue: Dialogue
) -> TimeFormat:
    """Return how times are written; the order of day and month is asked for if it is open."""
    if not forms:
        raise SettingsError(
            f"the values of {shown} are not times that Modwatch can read (ISO 8601, numbers "
            "since 1970, or day, month and year with . / or -); set --column created_at=COLUMN"
        )
    if len(forms) == 1:
        return forms[0]
    day_first = next(form for form in forms if str(form.written).startswith("%d"))
    month_first = next(form for form in forms if form is not day_first)
    order = "day" if options.day_first else "month" if options.month_first else None
    if order is None:
        if options.yes:
            raise SettingsError(
                f"the times in {shown} can be read with the day or the month first; add "
                "--day-first or --month-first"
            )
        order = dialogue.choose(
            f"Which comes first in {shown}",
            ["day", "month"],
            None,
            "--day-first or --month-first",
        )
    return day_first if order == "day" else month_first


def _last_whole_day(days: Counter[datetime.date]) -> datetime.date:
    """Return the last day that is not much smaller than the others."""
    usual = median(days.values())
    return max(day for day, rows in days.items() if rows * 2 >= usual)


def _source_settings(
    data: FileData | TableData, sample: Sample, reading: _Reading, options: InitOptions
) -> dict[str, str]:
    """Return the settings of the source, by their name after MODWATCH_SOURCE__."""
    wanted = dict(reading.columns) | ({"prob": reading.score} if reading.score else {})
    values: dict[str, str | None] = {}
    if isinstance(data, FileData):
        encoding = None if data.form.encoding == "utf-8" else data.form.encoding
        values = {"KIND": "files", "PATH": data.path, "ENCODING": encoding}
    else:
        time = next(row[reading.time_column] for row in sample.rows if row[reading.time_column])
        query = data.query(wanted, reading.time_column, reading.form, time)
        values = {"KIND": "sql", "URL": data.url, "QUERY": query}
    renamed = {name: column for name, column in wanted.items() if name != column}
    values |= {
        "TIMESTAMP_COLUMN": reading.time_column,
        "TIMESTAMP_FORMAT": reading.form.written,
        "ASSUME_TIMEZONE": reading.timezone,
        "PLATFORM": options.platform,
        "COLUMNS": json.dumps(renamed, ensure_ascii=False) if renamed else None,
        "OWN_SCORES": "true" if reading.score else None,
    }
    return {name: value for name, value in values.items() if value is not None}


def _entries(source: Mapping[str, str], first: datetime.date, options: InitOptions) -> list[Entry]:
    home = (options.home or Path("modwatch-home")).expanduser().absolute()
    values = {
        "MODWATCH_HOME": str(home),
        "MODWATCH_DATABASE_URL": EMBEDDED,
        "MODWATCH_FIRST_DAY": first.isoformat(),
        **dict(_other_ports()),
        **{f"MODWATCH_SOURCE__{name}": value for name, value in source.items()},
    }
    kind = source["KIND"]
    known = {
        variable.name: variable.info.description
        for variable in variables()
        if variable.source in (None, kind)
    }
    return [
        Entry(name=name, value=value, comment=str(known[name])) for name, value in values.items()
    ]


def _other_ports() -> Iterator[tuple[str, str]]:
    """Yield another address of each part whose default port is in use."""
    for part in _PARTS:
        name = f"{part.lower()}_url"
        url = urlsplit(str(Settings.model_fields[name].default))
        port = next(free for free in range(url.port or 0, 65_536) if _is_free(free))
        if port != url.port:
            yield f"MODWATCH_{part}_URL", f"http://127.0.0.1:{port}"


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
