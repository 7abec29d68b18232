"""Lets Celery workers import the packages of the tasks once, before they fork processes for them.

Without this module each task imports what its step uses: two to eight seconds of a core. Use it as
`AIRFLOW__CELERY__EXTRA_CELERY_CONFIG='{"imports": ["modwatch.pipeline.airflow.celery_worker"]}'`.
Restart the workers after Modwatch or a package was updated: tasks run what they have imported.
"""

import gc

from celery.signals import worker_init

from modwatch.pipeline.airflow.executor import preload
from modwatch.settings import load_settings


@worker_init.connect  # type: ignore[untyped-decorator]
def import_packages(**_: object) -> None:
    """Import the packages in the main process of the worker; its children share the memory."""
    preload(load_settings())
    gc.freeze()  # collections in a child would copy the pages
