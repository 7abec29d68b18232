"""MLflow's server as one process: `python -m modwatch.installation.stack.mlflow_server server …`.

`mlflow server` starts uvicorn as a child and waits for it, with all of MLflow in memory (200 MiB in
MLflow 3.17). Here uvicorn takes its place. A later MLflow that starts it in another way does so as
its command does: with a child.
"""

import os
from collections.abc import Mapping, Sequence
from typing import NoReturn


def main() -> None:
    """Run MLflow's command line, whose server replaces this process."""
    import mlflow.server
    from mlflow.cli import cli

    mlflow.server._exec_cmd = _become
    cli()


def _become(command: Sequence[str], *, extra_env: Mapping[str, str], **_: object) -> NoReturn:
    os.execvpe(command[0], list(command), {**os.environ, **extra_env})  # noqa: S606


if __name__ == "__main__":
    main()
