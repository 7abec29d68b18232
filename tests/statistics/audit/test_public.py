"""The library: what `modwatch.statistics.audit` exports, and what importing it does not load."""

import subprocess
import sys

import modwatch.statistics.audit

HEAVY = (
    "airflow", "alembic", "deltalake", "fsspec", "great_expectations", "jinja2", "matplotlib",
    "mlflow", "modwatch.data.lake.schemas", "modwatch.settings", "pyarrow", "sqlalchemy", "torch",
)  # fmt: skip


def test_every_exported_name_exists_once() -> None:
    assert sorted(set(modwatch.statistics.audit.__all__)) == sorted(
        modwatch.statistics.audit.__all__
    )
    for name in modwatch.statistics.audit.__all__:
        assert getattr(modwatch.statistics.audit, name) is not None


def test_importing_the_package_loads_nothing_heavy() -> None:
    # pandas loads pyarrow by itself where it is installed, and metrics need pandas.
    script = (
        "import sys, pandas; before = {*sys.modules}; import modwatch.statistics.audit"
        ", modwatch.audits.dsa; "
        f"print(*({{*sys.modules}} - before) & {{*{HEAVY!r}}})"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert loaded.stdout.split() == []
