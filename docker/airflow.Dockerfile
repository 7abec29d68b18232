# Airflow with Modwatch's DAGs and plugin. One image, four programs: the API server (the default),
# `airflow scheduler`, `airflow dag-processor` and `airflow triggerer`.
#
# `modwatch-base` is a named build context, not an image to pull: compose.yaml points it at the
# image of base.Dockerfile.
FROM modwatch-base

LABEL org.opencontainers.image.title="modwatch-airflow" \
      org.opencontainers.image.description="Airflow with Modwatch's DAGs and plugin" \
      org.opencontainers.image.version="0.5.0"

# What `modwatch airflow dags-folder` prints here. The plugin needs no folder: Airflow finds it by
# the entry point of the installed package.
ENV AIRFLOW__CORE__DAGS_FOLDER=/opt/venv/lib/python3.11/site-packages/modwatch/dags \
    AIRFLOW__CORE__LOAD_EXAMPLES=False \
    AIRFLOW__USAGE_DATA_COLLECTION__ENABLED=False

USER 10001:10001
EXPOSE 8080
HEALTHCHECK --interval=30s --timeout=10s --start-period=90s --retries=3 \
    CMD ["python", "healthcheck.py", "http://127.0.0.1:8080/api/v2/monitor/health"]
CMD ["airflow", "api-server", "--host", "0.0.0.0", "--port", "8080"]
