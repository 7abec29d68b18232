# MLflow: dashboards, model registry and artifacts. Clients send artifacts through it, so that they
# need no access to the folder.
#
# `modwatch-base` is a named build context, not an image to pull: compose.yaml points it at the
# image of base.Dockerfile.
FROM modwatch-base

LABEL org.opencontainers.image.title="modwatch-mlflow" \
      org.opencontainers.image.description="MLflow tracking server and model registry" \
      org.opencontainers.image.version="0.5.0"

# Its background jobs score language-model traces, of which there are none here.
ENV MLFLOW_SERVER_ENABLE_JOB_EXECUTION=false

USER 10001:10001
EXPOSE 5000
# For every host name, whatever MLFLOW_SERVER_ALLOWED_HOSTS says, and without a log-in.
HEALTHCHECK --interval=30s --timeout=10s --start-period=60s --retries=3 \
    CMD ["python", "healthcheck.py", "http://127.0.0.1:5000/health"]
CMD ["mlflow", "server", "--host", "0.0.0.0", "--workers", "2", \
    "--artifacts-destination", "/var/lib/mlflow/artifacts"]
