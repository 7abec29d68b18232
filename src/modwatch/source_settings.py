"""Where comments come from, as the settings say it: one class a kind of source."""

import datetime
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr


class FileSourceSettings(BaseModel):
    """Comments in files."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["files"] = "files"
    path: str = Field(description="File, folder or glob; `{dt}` stands for the day")
    timestamp_column: str = Field("created_at", description="Column that holds the time")
    assume_timezone: str | None = Field(None, description="Zone of times that carry none")
    encoding: str = Field("utf-8", description="Text encoding of CSV and JSONL files")
    platform: str | None = Field(None, description="Platform name for rows that carry none")
    columns: dict[str, str] = Field(
        default_factory=dict, description="Our column names to the file's, as JSON"
    )


class SqlSourceSettings(BaseModel):
    """Comments in a database."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["sql"] = "sql"
    url: SecretStr = Field(description="SQLAlchemy URL")
    query: str = Field(description="Query with :start and :end, half open")
    timestamp_column: str = Field("created_at", description="Column that holds the time")
    assume_timezone: str | None = Field(None, description="Zone of times that carry none")
    platform: str | None = Field(None, description="Platform name for rows that carry none")
    columns: dict[str, str] = Field(
        default_factory=dict, description="Our column names to the query's, as JSON"
    )


class ReplaySourceSettings(BaseModel):
    """A labelled corpus spread over consecutive days."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["replay"] = "replay"
    corpus: str = Field("wikipedia_talk", description="Which published format")
    path: Path = Field(description="File or folder of the corpus")
    first_day: datetime.date = Field(description="The day that gets the first rows")
    days: int = Field(10, ge=1, description="Over how many days the rows are spread")


class CommunitySourceSettings(BaseModel):
    """The synthetic community."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["community"] = "community"
    seed: int = Field(7, description="Seed of everything in it")
    comments_per_day: int = Field(2000, ge=0, description="Mean daily volume")
    dirt_rate: float = Field(0.0, ge=0, le=0.2, description="Share of rows broken on purpose")
    drift_from: datetime.date | None = Field(None, description="Day from which topics drift")


SourceSettings = Annotated[
    FileSourceSettings | SqlSourceSettings | ReplaySourceSettings | CommunitySourceSettings,
    Field(discriminator="kind"),
]
