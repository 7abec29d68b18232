"""`modwatch init`: what it proposes, asks, refuses and writes, read again as settings."""

import csv
import datetime as dt
import json
import os
import sqlite3
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from modwatch.cli.main import main
from modwatch.common.errors import SettingsError
from modwatch.installation.init import Dialogue
from modwatch.settings import load_settings
from modwatch.settings.file import apply_settings_file

MARK = "quillfeather"
DAYS = [dt.date(2026, 3, day) for day in (1, 2, 3)]


@pytest.fixture(autouse=True)
def _clean(monkeypatch, tmp_path):
    for name in [name for name in os.environ if name.startswith("MODWATCH_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


def comments(form: str = "%Y-%m-%dT%H:%M:%SZ", hours: int = 24) -> list[dict]:
    return [
        {
            "id": f"{day}-{number}",
            "body": f"an invented {MARK} remark {number}",
            "posted": dt.datetime.combine(day, dt.time(number % hours, 30)).strftime(form),
        }
        for day in DAYS
        for number in range(hours)
    ]


def write_csv(path: Path, rows: list[dict]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def run_init(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> str:
    """Run `init` without a question; return what it printed, which no comment is in."""
    assert main(["init", "--yes", "--no-run", *arguments]) == status
    captured = capsys.readouterr()
    shown = captured.out + captured.err
    assert MARK not in shown
    return shown


def read_days(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return how many sound rows the source of the written file has, day by day."""
    environ: dict[str, str] = {}
    apply_settings_file(environ)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    source = load_settings().source.open()
    counts = []
    for day in DAYS:
        rows = [row for batch in source.read(day) for row in batch.to_pylist()]
        assert {row["problem"] for row in rows} <= {None}
        assert all(MARK in row["text"] for row in rows)
        counts.append(len(rows))
    return counts


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet", "folder", "by_day"])
def test_files_of_every_format(kind, tmp_path, capsys, monkeypatch):
    rows, folder = comments(), tmp_path / "in"
    folder.mkdir()
    given = folder if kind in ("folder", "by_day") else folder / f"all.{kind}"
    if kind == "csv":
        write_csv(given, rows)
    elif kind == "jsonl":
        given.write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif kind == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), given)
    else:
        for day in DAYS:
            name = f"{day}.csv" if kind == "by_day" else f"part-{day:%d}.csv"
            write_csv(folder / name, [row for row in rows if row["id"].startswith(f"{day}")])
    shown = run_init(capsys, str(given))
    assert "2026-03-21T12:30:45Z-like" in shown
    assert read_days(monkeypatch) == [24, 24, 24]
    assert os.environ["MODWATCH_FIRST_DAY"] == "2026-03-01"
    assert ("{dt}" in os.environ["MODWATCH_SOURCE__PATH"]) == (kind == "by_day")


def test_files_of_days_in_another_zone_are_read_together(tmp_path, capsys, monkeypatch):
    folder = tmp_path / "in"
    folder.mkdir()
    rows = comments("%d.%m.%Y %H:%M")
    for day in DAYS:
        write_csv(folder / f"{day}.csv", [r for r in rows if r["id"].startswith(f"{day}")])
    run_init(capsys, str(folder), "--time-format", "%d.%m.%Y %H:%M", "--timezone", "Asia/Tokyo")
    # Nine hours of each day are of the day before in UTC.
    assert read_days(monkeypatch) == [24, 24, 15]
    assert os.environ["MODWATCH_SOURCE__PATH"] == str(folder)


@pytest.mark.parametrize(
    ("form", "declared"),
    [
        ("%Y-%m-%d %H:%M:%S", "TEXT"),
        ("%Y-%m-%dT%H:%M:%SZ", "TEXT"),
        ("%s", "INTEGER"),
    ],
)
def test_a_sqlite_file(form, declared, tmp_path, capsys, monkeypatch):
    with sqlite3.connect(tmp_path / "forum.db") as connection:
        connection.execute(f'CREATE TABLE "the posts" (id TEXT, body TEXT, posted {declared})')
        rows = [tuple(row.values()) for row in comments(form)]
        midnight = dt.datetime.combine(DAYS[1], dt.time()).strftime(form)
        rows.append(("midnight", f"a {MARK} remark", midnight))
        connection.executemany('INSERT INTO "the posts" VALUES (?, ?, ?)', rows)
    connection.close()
    run_init(capsys, "forum.db")
    assert read_days(monkeypatch) == [24, 25, 24]


@pytest.mark.parametrize("declared", ["timestamptz", "timestamp", "text", "bigint"])
def test_a_table_of_postgresql(declared, path_server, capsys, monkeypatch):
    from sqlalchemy import create_engine, text

    url = path_server.url(f"own_{declared}")
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.execute(text("DROP TABLE IF EXISTS posts"))
        connection.execute(text(f"CREATE TABLE posts (id text, body text, posted {declared})"))
        form = "%s" if declared == "bigint" else "%Y-%m-%d %H:%M:%S+00"
        for row in comments(form):
            posted = int(row["posted"]) if declared == "bigint" else row["posted"]
            connection.execute(
                text("INSERT INTO posts VALUES (:id, :body, :posted)"), {**row, "posted": posted}
            )
    engine.dispose()
    run_init(capsys, url, "--table", "posts")
    assert read_days(monkeypatch) == [24, 24, 24]


def test_the_order_of_day_and_month_is_never_guessed(tmp_path, capsys, monkeypatch):
    write_csv(tmp_path / "a.csv", comments("%d/%m/%Y %H:%M"))
    shown = run_init(capsys, "a.csv", status=1)
    formats = [f"--time-format '{order} %H:%M'" for order in ("%d/%m/%Y", "%m/%d/%Y")]
    assert f"add {' or '.join(formats)}" in shown
    assert not Path("modwatch.env").exists()
    run_init(capsys, "a.csv", "--time-format", "%d/%m/%Y %H:%M")
    assert read_days(monkeypatch) == [24, 24, 24]


def test_scores_of_a_column_are_proposed(tmp_path, capsys, monkeypatch):
    rows = [{**row, "toxicity": 0.25} for row in comments()]
    write_csv(tmp_path / "a.csv", rows)
    run_init(capsys, "a.csv")
    assert read_days(monkeypatch) == [24, 24, 24]
    assert load_settings().own_scores
    run_init(capsys, "a.csv", "--own-scores", "none", "--force")
    assert "OWN_SCORES" not in Path("modwatch.env").read_text()


@pytest.mark.parametrize(("rows", "chosen"), [(12, DAYS[-1]), (11, DAYS[-2])])
def test_a_day_with_half_of_the_usual_rows_is_complete(tmp_path, capsys, rows, chosen):
    whole = [row for row in comments() if row["id"].startswith(tuple(map(str, DAYS[:-1])))]
    last = [row for row in comments() if row["id"].startswith(str(DAYS[-1]))]
    write_csv(tmp_path / "a.csv", whole + last[:rows])
    assert f"modwatch run day {chosen}\n" in run_init(capsys, "a.csv")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "nowhere is no file and no folder with files"),
        (["forun.db"], "forun.db does not exist; correct the path"),
        (["a.csv", "--column", "text=boddy"], "there is no column 'boddy'"),
        (["a.csv", "--column", "words=body"], "--column words=… sets no column of Modwatch"),
        (["a.csv", "--column", "created_at=body"], "the values of body are not times"),
        (["a.csv", "--own-scores", "p"], "there is no column 'p'; correct --own-scores"),
        (["a.csv", "--day", "9999-12-31"], "9999-12-31 has not begun: today is"),
        (["a.csv", "--day", "2026-02-28"], "2026-02-28 is before 2026-03-01, the first day"),
        (["a.csv", "--timezone", "Berlin"], None),
        (["b.csv"], "id is no id: 72 rows that differ have 1 values of it"),
        (["c.csv"], "the first line of"),
    ],
)
def test_what_cannot_be_read_is_stated(arguments, message, tmp_path, capsys):
    form = "%Y-%m-%d %H:%M" if message is None else "%Y-%m-%dT%H:%M:%SZ"
    write_csv(tmp_path / "a.csv", comments(form))
    write_csv(tmp_path / "b.csv", [{**row, "id": "1"} for row in comments()])
    (tmp_path / "c.csv").write_text(f"1,oh {MARK} dear!,2026-03-01\n2,b,2026-03-01\n")
    shown = run_init(capsys, *arguments, status=1)
    assert (message or "Time zone 'Berlin' does not exist") in shown
    assert not Path("modwatch.env").exists()
    assert not Path("forun.db").exists()


def test_a_file_of_excel_with_strange_headers(tmp_path, capsys, monkeypatch):
    strange = {"Grad (°C)": 20, f"<script>{MARK}</script>": "x", f"{MARK}, {'x' * 40}": "x"}
    rows = [{**row, **strange, "Kanal": "app", "Sprache": "de"} for row in comments()]
    rows[0].update(Kanal="web", Sprache="fr")
    with (tmp_path / "a.csv").open("w", newline="") as file:
        writer = csv.writer(file, delimiter=";")
        writer.writerows([[*rows[0], "", ""], *([*row.values(), "", ""] for row in rows)])
    shown = run_init(capsys, "a.csv", "--column", "platform=Kanal")
    assert "  platform    from Kanal\n" in shown
    assert "Left out: Grad (°C), column 5, column 6, Sprache, column 9, column 10.\n" in shown
    assert "\nSprache: few values, like a language" in shown
    assert read_days(monkeypatch) == [24, 24, 24]


def test_a_column_with_a_strange_name_is_chosen_by_its_position(tmp_path, capsys, monkeypatch):
    strange = f"{MARK}'s <b>times</b>, all of them; in UTC"
    rows = [{"id": r["id"], "body": r["body"], strange: r["posted"]} for r in comments()]
    write_csv(tmp_path / "a.csv", rows)
    assert "created_at  from column 3" in run_init(capsys, "a.csv")
    run_init(capsys, "a.csv", "--force", "--column", "created_at=column 3")
    assert read_days(monkeypatch) == [24, 24, 24]
    assert load_settings().source.timestamp_column == strange


@pytest.mark.parametrize("strange", [" ", "tab\tof", "nul\0", "caf\udce9"])
def test_a_column_whose_name_no_setting_can_hold_is_not_chosen(tmp_path, capsys, strange):
    rows = [{**row, strange: "de"} for row in comments()]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)))
    shown = run_init(capsys, "a.jsonl", "--column", "language=column 4", status=1)
    assert "there is no column 'column 4'" in shown


def test_the_next_commands_name_a_settings_file_of_another_name(tmp_path, capsys):
    write_csv(tmp_path / "a.csv", comments())
    named = "MODWATCH_SETTINGS_FILE=v.env modwatch"
    shown = run_init(capsys, "a.csv", "--output", "v.env")
    steps = ("up --detach", "train --data synthetic", "run day 2026-03-03")
    assert f"Next: {', '.join(f'{named} {step}' for step in steps)}\n" in shown
    assert f"`{named} up` reads it" in run_init(capsys, "a.csv", "--output", "v.env", status=1)
    shown = run_init(capsys, "a.csv", "--output", "gone/v.env", status=1)
    assert "the settings file gone/v.env cannot be written" in shown


def test_a_settings_file_is_not_replaced_unasked(tmp_path, capsys):
    write_csv(tmp_path / "a.csv", comments())
    Path("modwatch.env").write_text("MODWATCH_HOME=/mine\n")
    assert "modwatch.env exists" in run_init(capsys, "a.csv", status=1)
    assert Path("modwatch.env").read_text() == "MODWATCH_HOME=/mine\n"


def test_questions_are_asked_with_their_proposals(tmp_path, capsys, monkeypatch):
    write_csv(tmp_path / "a.csv", comments("%d/%m/%Y %H:%M"))
    asked: list[str] = []
    answers = iter(["", "thread_id=id", "", "", "week", "day", "Europe/Berlin", ""])

    def answer(prompt: str) -> str:
        asked.append(prompt)
        return next(answers)

    monkeypatch.setattr("builtins.input", answer)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    assert main(["init", "a.csv", "--no-run"]) == 0
    assert MARK not in capsys.readouterr().out + "".join(asked)
    columns = [question for question in asked if "Read the columns so?" in question]
    assert len(columns) == 2
    assert '"thread_id": "id"' in Path("modwatch.env").read_text()
    assert "'%d/%m/%Y %H:%M'" in Path("modwatch.env").read_text()
    assert "ASSUME_TIMEZONE=Europe/Berlin" in Path("modwatch.env").read_text()


def test_without_a_terminal_the_option_is_named(tmp_path):
    with pytest.raises(SettingsError, match="add --timezone"):
        Dialogue(yes=False).ask("Zone", "UTC", "--timezone")
