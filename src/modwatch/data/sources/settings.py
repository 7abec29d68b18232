"""The settings of the sources that come with Modwatch, `MODWATCH_SOURCE__…`."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import AfterValidator, Field, SecretStr

from modwatch.common.columns import Column
from modwatch.common.source_settings import SourceSettings

if TYPE_CHECKING:
    from modwatch.data.sources.files import FileSource
    from modwatch.data.sources.landing import OwnScores
    from modwatch.data.sources.sql import SqlSource
    from modwatch.data.sources.values import Vocabulary

#: Settings of a source that are not fields of it.
_OWN = (
    "made_up",
    "own_scores",
    "own_scale",
    "own_threshold",
    "own_model_version",
    "values",
)
_FORM = {"encoding", "delimiter", "quoting", "escape"}

_Delimiter = Annotated[str, AfterValidator(lambda given: "\t" if given == "tab" else given)]


class _RecordSettings(SourceSettings):
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
    decided_by: Literal["model", "rule", "person"] | None = Field(
        None, description="Who took the decisions of the platform that do not say"
    )
    columns: dict[str, str] = Field(
        default_factory=dict,
        description="The source's name of each column of Modwatch or of `MODWATCH_COLUMNS` that it "
        'names differently, as JSON; `""` leaves a column out',
    )
    values: tuple[str, ...] = Field(
        (),
        description="Meaning of words, as JSON: of labels and votes toxic or other "
        '(`["hate=toxic", "ok=other"]`; default: 1, true, yes and the like), abstain of people who '
        "did not judge, or missing for no label, besides `NA`, `null` and blanks; of decisions of "
        "the platform removed, limited or kept, and of who took them model, rule or person",
    )
    deleted_texts: tuple[str, ...] = Field(
        (),
        description="Texts that stand for a deleted comment, such as `[deleted]`, as JSON: these "
        "rows are left out and counted",
    )
    votes: tuple[str, ...] = Field(
        (),
        description="Columns with one vote each, as JSON; the known label is that of most votes, "
        "and unknown of a tie",
    )
    made_up: bool = Field(
        False,
        description="The comments are made up, as for a trial: what the demonstration model says "
        "of them counts, which it does not of others",
    )
    own_scores: bool = Field(
        False,
        description="The source brings scores, in the columns `prob` and, as far as it has them, "
        "`model_version` and `flagged`; then no model scores its comments",
    )
    own_scale: float = Field(
        1,
        gt=0,
        description="Of a source of scores: the largest score; 100 where they are in per cent",
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

    @property
    def invented(self) -> bool:
        """Whether nobody wrote its comments on a platform."""
        return self.made_up

    @property
    def brings_scores(self) -> bool:
        """Whether comments come with scores."""
        return self.own_scores

    def _own_scores(self) -> "OwnScores | None":
        """Return the defaults for missing columns of scores; None: the source has no scores."""
        from modwatch.data.sources.landing import OwnScores

        if not self.own_scores:
            return None
        return OwnScores(
            threshold=self.own_threshold,
            model_version=self.own_model_version,
            scale=self.own_scale,
        )

    def _vocabulary(self) -> "Vocabulary":
        from modwatch.data.sources.values import Vocabulary

        return Vocabulary.of(self.values)


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
        description="The files have no ids: an id is a hash of all values of a row; without times "
        "also of file name and line, so that rows added above others change their ids",
    )
    day: str | None = Field(
        None,
        pattern=r"^(\d{4}-\d\d-\d\d|\{dt\})$",
        description="The files have no times: the day of all rows, such as `2026-03-13`, or "
        "`{dt}`, that of the path",
    )

    def open(self, folder: Path | None = None, own: Sequence[Column] = (), /) -> "FileSource":
        """Return the files; `folder` keeps which days they hold."""
        from modwatch.data.sources.delimited import TextFormat
        from modwatch.data.sources.files import FileSource

        given = self.model_dump(exclude={"kind", *_OWN, *_FORM})
        form = TextFormat(**self.model_dump(include=_FORM))
        return FileSource(
            **given,
            form=form,
            own_scores=self._own_scores(),
            vocabulary=self._vocabulary(),
            index=folder,
            own=tuple(own),
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

    def open(self, _: Path | None = None, own: Sequence[Column] = (), /) -> "SqlSource":
        """Return the database."""
        from modwatch.data.sources.sql import SqlSource

        given = self.model_dump(exclude={"kind", "url", *_OWN})
        url = self.url.get_secret_value()
        scores, words = self._own_scores(), self._vocabulary()
        return SqlSource(url=url, **given, own_scores=scores, vocabulary=words, own=tuple(own))
