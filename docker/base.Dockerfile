# The environment that all images share; it is built once, as `modwatch-base`.
#
# airflow.Dockerfile, console.Dockerfile, mlflow.Dockerfile and serving.Dockerfile each add a program
# to it and nothing else. They stay separate files because each is deployed, scaled and given rights of its own; the
# environment is one because the lock is one, and because layers that the images share are stored
# and pulled once.
#
# Images are pinned by tag. To pin one by content as well, look its digest up once
# (`docker buildx imagetools inspect python:3.11.15-slim-bookworm`) and append it: `tag@sha256:…`.

# The full image has the compiler that a package without a wheel may ask for; it stays behind here.
FROM python:3.11.15-bookworm AS build

# Where pip looks besides its usual index. On a machine without a GPU, name the index of torch's CPU
# builds: they are a tenth of the size. Build arguments can be read from the build's history, so
# never put a password in this one.
ARG PIP_EXTRA_INDEX_URL=""

RUN python -m venv /opt/venv
ENV PATH="/opt/venv/bin:${PATH}"
WORKDIR /build

# The lock limits every version, and development tools stay out. First the package is empty: an
# edited source file must not install everything again.
COPY LICENSE README.md pyproject.toml requirements.txt setup.py ./
RUN mkdir src dags plugins \
    && pip install --no-cache-dir --constraint requirements.txt setuptools \
    && pip install --no-cache-dir --constraint requirements.txt --no-build-isolation \
        ".[airflow,celery,console,mlflow,models,pipeline,ray,s3]"

COPY src/ src/
COPY dags/ dags/
COPY plugins/ plugins/
RUN pip install --no-cache-dir --no-deps --no-build-isolation --force-reinstall .


FROM python:3.11.15-slim-bookworm

LABEL org.opencontainers.image.title="modwatch-base" \
      org.opencontainers.image.description="Modwatch and all that it needs" \
      org.opencontainers.image.version="0.5.0"

# A numeric user, so that an orchestrator can tell that it is not root. The folders are its only
# writable places; a volume mounted on one takes over the owner.
RUN groupadd --gid 10001 modwatch \
    && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /tmp \
        --shell /usr/sbin/nologin modwatch \
    && install --directory --owner 10001 --group 10001 --mode 0700 \
        /var/lib/modwatch /var/lib/modwatch-witnesses /var/lib/airflow /var/lib/mlflow

COPY --from=build /opt/venv /opt/venv
COPY docker/healthcheck.py /opt/modwatch/

# HOME is /tmp because matplotlib, transformers and others want to write in it, and everything else
# is read-only. The slim image has no git, which MLflow would warn of at every start.
ENV PATH="/opt/venv/bin:${PATH}" \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    HOME=/tmp \
    GIT_PYTHON_REFRESH=quiet \
    MODWATCH_HOME=/var/lib/modwatch \
    AIRFLOW_HOME=/var/lib/airflow

WORKDIR /opt/modwatch
USER 10001:10001

# Nothing runs here for long: the programs have checks of their own.
HEALTHCHECK NONE
CMD ["modwatch", "--help"]
