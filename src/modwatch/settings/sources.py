"""The settings of sources of comments, `MODWATCH_SOURCE__…`: a frozen object for each kind."""

import datetime
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, SecretStr


class _SourceSettings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


_Delimiter = Annotated[str, AfterValidator(lambda given: "\t" if given == "tab" else given)]


class _RecordSettings(_SourceSettings):
    """Records with named columns."""

    timestamp_column: str = Field("created_at", description="Column with the time of a comment")
    timestamp_format: str | None = Field(
        None,
        description="Format of times as text, such as `%d.%m.%Y %H:%M`, in the notation of "
        "Python's strptime, with English names of days and months; default: ISO 8601 "
        "(`2026-03-01T12:00:00Z`), or seconds to nanoseconds since 1970",
    )
    assume_timezone: str | None = Field(
        None, description="IANA time zone of times without one, such as `Europe/Berlin`"
    )
    platform: str | None = Field(None, description="Platform name for rows without one")
    columns: dict[str, str] = Field(
        default_factory=dict,
        description="The source's name of each Modwatch column that it names differently, as "
        'JSON; `""` leaves a column out',
    )
    votes: tuple[str, ...] = Field(
        (),
        description="Columns with one vote each, as JSON; the known label is that of most votes, "
        "and unknown of a tie",
    )
    own_scores: bool = Field(
        False,
        description="The source brings scores, in the columns `prob` and, as far as it has them, "
        "`model_version` and `flagged`; then no model scores its comments",
    )
    own_threshold: float = Field(
        0.5,
        ge=0,
        le=1,
        description="Of a source of scores without a column `flagged`: comments with a higher "
        "`prob` are flagged",
    )
    own_model_version: str = Field(
        "own",
        pattern=r"^[A-Za-z0-9._:@/+-]{1,100}$",
        description="Of a source of scores without a column `model_version`: the version that "
        "gave them",
    )


class FileSourceSettings(_RecordSettings):
    """Comments in files."""

    kind: Literal["files"] = "files"
    path: str = Field(description="File, folder or glob; `{dt}` stands for the day")
    encoding: str = Field("utf-8", description="Text encoding of CSV and JSON files")
    delimiter: _Delimiter | None = Field(
        None,
        description="Character between the fields of a CSV file, or `tab`; default: as its first "
        "lines show, and a tab in `*.tsv`",
    )
    quoting: Literal["minimal", "none"] | None = Field(
        None,
        description="`minimal`: fields may be in quotation marks, and a text of several lines is "
        "one whatever they look like; `none`: a quotation mark is a character like others; "
        "default: as the first lines show",
    )
    escape: str | None = Field(
        None,
        description="Character that makes a quotation mark or delimiter part of a field, such as "
        "`\\`; empty: none; default: as the first lines show",
    )
    generate_ids: bool = Field(
        False,
        description="The files have no ids: an id is a hash of file name, line and values; rows "
        "that are added above others change their ids",
    )
    day: str | None = Field(
        None,
        pattern=r"^(\d{4}-\d\d-\d\d|\{dt\})$",
        description="The files have no times: the day of all rows, such as `2026-03-13`, or "
        "`{dt}`, that of the path",
    )


class SqlSourceSettings(_RecordSettings):
    """Comments in a database."""

    kind: Literal["sql"] = "sql"
    url: SecretStr = Field(description="SQLAlchemy URL")
    query: str = Field(
        description="Query with the parameters `:start` (inclusive) and `:end` (exclusive)"
    )
    undated_query: str | None = Field(
        None,
        description="Query that counts the rows on no day; `:start` and `:end` are the bounds of "
        "the days that can be",
    )


class ReplaySourceSettings(_SourceSettings):
    """A labelled corpus, replayed over consecutive days."""

    kind: Literal["replay"] = "replay"
    corpus: str = Field("wikipedia_talk", description="Format of the published corpus")
    path: Path = Field(description="File or folder of the corpus")
    first_day: datetime.date = Field(description="First day of the replay")
    days: int = Field(
        10, ge=1, description="Number of days that a corpus without times is spread over"
    )


class CommunitySourceSettings(_SourceSettings):
    """The synthetic community."""

    kind: Literal["community"] = "community"
    seed: int = Field(7, description="Random seed")
    comments_per_day: int = Field(2000, ge=0, description="Mean number of comments per day")
    dirt_rate: float = Field(0.0, ge=0, le=0.2, description="Share of defective rows")
    drift_from: datetime.date | None = Field(
        None, description="First day of a drift: new topics and new insults"
    )
    drift_platform: str | None = Field(
        None,
        description="A platform that is new on that day, to which the drift is confined: 40 % of "
        "the comments, 40 % of them toxic; default: the drift is everywhere",
    )


#: In the order of the documentation.
SOURCES = (FileSourceSettings, SqlSourceSettings, ReplaySourceSettings, CommunitySourceSettings)


def _with_kind(given: object) -> object:
    """Return the settings of a source with its kind, if only one kind can have just these."""
    if not isinstance(given, dict) or "kind" in given:
        return given
    names = {str(name).lower() for name in given}
    fitting = [
        source.model_fields["kind"].default
        for source in SOURCES
        if names <= source.model_fields.keys()
        and {name for name, setting in source.model_fields.items() if setting.is_required()}
        <= names
    ]
    return {**given, "kind": fitting[0]} if len(fitting) == 1 else given


SourceSettings = Annotated[
    Annotated[
        FileSourceSettings | SqlSourceSettings | ReplaySourceSettings | CommunitySourceSettings,
        Field(discriminator="kind"),
    ],
    BeforeValidator(_with_kind),
]
