"""`modwatch init`: from a folder or a database of comments to a settings file."""

import datetime
import json
import re
import shlex
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
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
    NAMES,
    Column,
    TimeFormat,
    describe,
    look,
    shown_names,
    usual_name,
)
from modwatch.data.sources.landing import FILLABLE, SCORE_COLUMNS
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
from modwatch.data.sources.values import Vocabulary
from modwatch.installation.proposals import (
    PER_CENT,
    deletions,
    describe_choice,
    open_decisions,
    propose,
    propose_score,
    repetition,
    require_comments,
    why_no_text,
)
from modwatch.installation.stack.installation import is_free
from modwatch.installation.trial import try_source
from modwatch.settings import EMBEDDED, Settings
from modwatch.settings.fields import variables
from modwatch.settings.file import DEFAULT, VARIABLE, render, write
from modwatch.settings.sources import AnySource

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
#: What comes first in the date of a format.
_ORDERS = {"%d": "day", "%m": "month", "%y": "year"}
_PARTS = ("AIRFLOW", "MLFLOW", "CONSOLE")
#: The model that scores anything, of which nothing follows.
_DEMONSTRATION = "demonstration"
_WHICH = (
    "Which model scores the comments? A classifier, as its folder or its name on the Hugging Face "
    f"hub; a file with columns text and label to train one; or {_DEMONSTRATION}, to look around"
)
#: Days of a source that are run at first, at most.
_MOST_DAYS = 31


@dataclass(frozen=True, kw_only=True)
class InitOptions:
    """Answers that are known beforehand; None and empty ones are asked for."""

    #: File, folder or database URL.
    source: str | None
    #: Of a database.
    table: str | None
    #: `NAME=COLUMN`.
    column: Sequence[str]
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
    #: Meanings of words, as `Vocabulary.of` takes them.
    value: Sequence[str]
    #: Texts that stand for a deleted comment; `none`: there is none.
    deleted_text: Sequence[str]
    #: Who took the decisions that do not say.
    decided_by: str | None
    #: Column of probabilities, or `none`.
    own_scores: str | None
    #: `demonstration`, a file of labels, or a classifier's folder or name.
    model: str | None
    #: First day to run; of files without times, the day of all rows.
    day: datetime.date | None
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

    #: The column of each field; an empty name: none.
    columns: Mapping[str, str]
    #: None: the source has no times.
    times: Times | None
    #: The source brings scores; otherwise a model scores.
    has_scores: bool
    #: These are numbers up to 100.
    in_per_cent: bool
    votes: Sequence[str]
    #: Texts that stand for a deleted comment.
    deleted: Sequence[str]


def write_settings(options: InitOptions) -> tuple[list[datetime.date], str]:
    """Write a settings file for comments of a file, folder or database.

    What the options leave open is asked on the terminal.

    Returns:
        The days to run: those of files up to the last complete one, in order, the newest
        `_MOST_DAYS`; of a database the last day alone. And the command, without `modwatch`, that
        makes the model; empty where the source brings scores.

    Raises:
        SettingsError: a question is open and cannot be asked, an answer is impossible, the
            settings file exists, or validation of the first rows fails.
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
    data = data.dated(reading.times) if isinstance(data, FileData) else data
    source = _source_settings(data, reading, options)
    opened = _opened(source)
    if isinstance(data, FileData):
        found = data.days(reading.times) or Counter(filter(None, [options.day]))
        days = Counter({day: rows for day, rows in found.items() if can_have_comments(day)})
        _require_dated(found.total() - days.total(), found.total())
    else:
        days = data.days(cast(Times, reading.times))
        _require_dated(cast(SqlSource, opened).undated(), data.size())
    if not days:
        raise SettingsError("no time is of a day from 1990 to today; add --time-format")
    usual = median(days.values())  # the last day may not be whole
    chosen = options.day or max(day for day, rows in days.items() if 2 * rows >= usual)
    require_possible(chosen, min(days))
    print(f"\n{try_source(opened, chosen)}")
    of_source = "" if "://" in given else f", of `modwatch init {given}`"
    known = [variable for variable in variables() if variable.source in (None, source["KIND"])]
    comments = {variable.name: str(variable.info.description) for variable in known}
    text = render(f"Settings of Modwatch{of_source}.", _values(source, min(days)), comments)
    write(options.output, text)
    print(f"\n{options.output} is written; {len(days)} days were found, the last is {max(days)}.")
    making = "" if reading.has_scores else _making(options, dialogue)
    if options.day or not isinstance(data, FileData):
        return [chosen], making
    return sorted(day for day in days if day <= chosen)[-_MOST_DAYS:], making


def _making(options: InitOptions, dialogue: Dialogue) -> str:
    """Return the arguments of `modwatch` that make the model which scores the comments."""
    model = options.model or dialogue.ask(_WHICH, _DEMONSTRATION, "--model")
    if model == _DEMONSTRATION:
        print(
            "The demonstration model is for looking around: it was trained on invented comments, "
            "and its figures mean nothing."
        )
        return "train --data synthetic"
    if not Path(model).is_file():
        return shlex.join(["model", "register", model])
    given = [part for word in options.value for part in ("--value", word)]
    return shlex.join(["train", "--data", model, *given])


def _opened(source: Mapping[str, object]) -> FileSource | SqlSource:
    given = {name.lower(): value for name, value in source.items()}
    settings = TypeAdapter(AnySource).validate_python(given)
    return cast(FileSource | SqlSource, settings.open())


def _require_dated(undated: int, rows: int) -> None:
    """Print how many rows are on no day; SettingsError if most are."""
    remedy = (
        "read the times otherwise (--time-format, --timezone, or a view of the table with times of "
        "one kind), or correct them"
    )
    lost = f"{undated:,} of {rows:,} rows have no time, or one before 1990 or to come"
    if 2 * undated > rows:
        raise SettingsError(f"{lost}, so no settings are written; {remedy}")
    if undated:
        print(f"\n{lost}. They are on no day: {remedy}.")


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
    if "text" not in given:
        require_comments(sample.names)
    vocabulary = Vocabulary.of(options.value)
    chosen = _with_defaults(propose(usable, rows, vocabulary) | given, FILLABLE, choices)
    generated = {"comment_id"} if options.generate_ids else set()
    has_day = isinstance(data, FileData) and ("{dt}" in data.path or options.day is not None)
    if has_day and "created_at" not in chosen:
        generated.add("created_at")
    chosen = {field: column for field, column in chosen.items() if field not in generated}
    for field in [field for field in _REQUIRED if field not in {*chosen, *generated}]:
        if field == "comment_id" and dialogue.yes:
            _require_distinct(usable, shown)
        why = why_no_text(usable) if field in ("text", "comment_id") else ""
        chosen[field] = choices[_column(field, [*choices], dialogue, why)]
    name = chosen.pop("created_at", None)
    named = filter(None, (options.votes or "").split(","))
    votes = [_known(name, choices, "--votes") for name in named]
    if votes:
        chosen.pop("label", None)
    score = _score(propose_score(usable, rows), choices, options, dialogue)
    if score is not None:
        chosen = _with_defaults(chosen | {"prob": score}, SCORE_COLUMNS, choices)
    ballots = {f"vote {number}": vote for number, vote in enumerate(votes, start=1)}
    deleted = _deleted([row.get(chosen["text"]) for row in sample.rows], options)
    read = {**chosen, "created_at": name, **ballots}
    as_read = {field: column for field, column in read.items() if column}
    print(f"\n{describe_choice(as_read, usable, sample.names, rows)}")
    for line in open_decisions(usable, chosen, vocabulary, decided_by=options.decided_by):
        print(line)
    if generated:
        print(f"Without a column: {', '.join(sorted(generated))} (--generate-ids, --day).")
    if _REQUIRED.keys() - given.keys() - generated:
        answer = dialogue.ask(
            "Read the columns so? yes, or NAME=COLUMN", "yes", "--yes or --column"
        )
        if "=" in answer:
            changed = replace(options, column=[*options.column, answer])
            return _reading(data, sample, changed, dialogue)
    times = None
    if name is not None:
        [forms] = [column.formats for column in usable if column.name == name]
        form = _form(shown[name], forms, dialogue)
        zone = None if form.has_zone else _timezone(shown[name], options, dialogue)
        values = (row.get(name) for row in sample.rows)
        one = next((value for value in values if value not in (None, "")), None)
        times = Times(column=name, form=form, zone=zone, one=one)
    return _Reading(
        columns=chosen,
        times=times,
        has_scores=score is not None,
        in_per_cent=any(c.name == score and c.ends and c.ends[1] > 1 for c in columns),
        votes=votes,
        deleted=deleted,
    )


def _deleted(texts: Sequence[object], options: InitOptions) -> list[str]:
    """Return the texts that stand for deleted comments, and print how many rows have one."""
    found = deletions(texts) if not options.deleted_text else Counter[str]()
    if found:
        print(
            f"{found.total():,} of {len(texts):,} rows have the text {' or '.join(found)}, as of "
            "deleted comments; they are left out and counted (--deleted-text none keeps them)."
        )
    elif number := repetition(texts):
        print(
            f"{number:,} of {len(texts):,} rows have the same text; if it stands for deleted "
            "comments, leave them out with --deleted-text TEXT."
        )
    return [*found, *(text for text in options.deleted_text if text != "none")]


def _with_defaults(
    chosen: Mapping[str, str], fields: Sequence[str], choices: Mapping[str, str]
) -> dict[str, str]:
    """Return the columns, with those that a source reads since they have the names of `fields`."""
    others = {field for field in fields if field not in chosen and field not in _REQUIRED}
    return {**chosen, **{field: field for field in fields if field in others & {*choices.values()}}}


def _column(field: str, choices: Sequence[str], dialogue: Dialogue, why: str) -> str:
    """Return the column of a required field; SettingsError that says why none is proposed."""
    meaning, option = _REQUIRED[field]
    if dialogue.yes:
        hint = ", or --delimiter: the first line names only one" if len(choices) == 1 else why
        raise SettingsError(
            f"no column can be {meaning}; add {option}{hint}; if the names above are damaged, add "
            "--encoding"
        )
    question = f"Column with {meaning}, or start again with {option}"
    return dialogue.choose(question, choices, None, option)


def _require_distinct(columns: Sequence[Column], shown: Mapping[str, str]) -> None:
    """Raise SettingsError for a column that is named like an id, and has the same one twice."""
    for column in columns:
        if usual_name(column.name) in NAMES["comment_id"] and column.distinct < column.filled:
            rounded = any(re.fullmatch(r"\d[.,]?\d*[eE]\+\d+", word) for word in column.words)
            why = "; a spreadsheet rounded them: export them as text" if rounded else ""
            raise SettingsError(
                f"{shown[column.name]} is no id: {column.filled:,} rows that differ have "
                f"{column.distinct:,} values of it{why}; correct the source, or add --column "
                "comment_id=COLUMN with another column"
            )


def _choices(names: Sequence[str]) -> dict[str, str]:
    """Return the columns whose names a setting can hold, by what is shown of them."""
    pairs = zip(shown_names(names), names, strict=True)
    return {shown: name for shown, name in pairs if name.strip() and name.isprintable()}


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
        fields = ("created_at", *FILLABLE, *SCORE_COLUMNS[1:])
        if field not in fields:
            raise SettingsError(
                f"--column {field}=… sets no column of Modwatch; it may set {', '.join(fields)}"
            )
        is_none = column == "none" and column not in choices and field not in _REQUIRED
        pairs[field] = "" if is_none else _known(column, choices, f"--column {field}")
    return pairs


def _form(shown: str, forms: Sequence[TimeFormat], dialogue: Dialogue) -> TimeFormat:
    """Return how times are written; the order of day and month is asked for if it is open."""
    if not forms:
        raise SettingsError(
            f"the values of {shown} are not times that Modwatch can read (ISO 8601, numbers "
            "since 1970, or day, month and year with . / or -; a zone as +02:00, since a name such "
            "as PDT is that of several); set --column created_at=COLUMN, --time-format, or --day "
            "without this column"
        )
    if len(forms) == 1:
        return forms[0]
    by_first = {_ORDERS[re.findall("%[dmy]", str(form.written))[0]]: form for form in forms}
    option = " or ".join(f"--time-format '{form.written}'" for form in forms)
    return by_first[dialogue.choose(f"Which comes first in {shown}", [*by_first], None, option)]


def _source_settings(
    data: FileData | TableData, reading: _Reading, options: InitOptions
) -> dict[str, object]:
    """Return the settings of the source, by their name after MODWATCH_SOURCE__."""
    wanted = reading.columns
    values: dict[str, object] = {}
    times = reading.times
    if isinstance(data, FileData):
        form = {name.upper(): value for name, value in _text_format(options).items()}
        values = {"KIND": "files", "PATH": data.path, **form}
        values["GENERATE_IDS"] = options.generate_ids or None
        if times is None:
            values["DAY"] = "{dt}" if "{dt}" in data.path else str(options.day)
    elif times is not None:
        columns = [*filter(None, wanted.values()), *reading.votes]
        query, undated = data.queries(columns, wanted["comment_id"], times)
        values = {"KIND": "sql", "URL": data.url, "QUERY": query, "UNDATED_QUERY": undated}
    renamed = {name: column for name, column in wanted.items() if name != column}
    values |= {
        "TIMESTAMP_COLUMN": times and times.column,
        "TIMESTAMP_FORMAT": times and times.form.written,
        "ASSUME_TIMEZONE": times and times.zone,
        "DECIDED_BY": options.decided_by,
        "COLUMNS": renamed or None,
        "VOTES": reading.votes or None,
        "VALUES": options.value or None,
        "DELETED_TEXTS": reading.deleted or None,
        "OWN_SCORES": reading.has_scores or None,
        "OWN_SCALE": PER_CENT if reading.in_per_cent else None,
    }
    return {name: value for name, value in values.items() if value is not None}


def _values(source: Mapping[str, object], first: datetime.date) -> dict[str, str]:
    """Return the settings of an installation with this source, by the names of their variables."""
    values = {
        "MODWATCH_HOME": str(Path("modwatch-home").absolute()),
        "MODWATCH_DATABASE_URL": EMBEDDED,
        "MODWATCH_FIRST_DAY": first.isoformat(),
        **dict(_other_ports()),
    }
    for name, value in source.items():
        written = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        values[f"MODWATCH_SOURCE__{name}"] = written
    return values


def _other_ports() -> Iterator[tuple[str, str]]:
    """Yield another address of each part whose default port is in use."""
    for part in _PARTS:
        name = f"{part.lower()}_url"
        url = urlsplit(str(Settings.model_fields[name].default))
        port = next(free for free in range(url.port or 0, 65_536) if is_free(free))
        if port != url.port:
            yield f"MODWATCH_{part}_URL", f"http://127.0.0.1:{port}"
