# The model server: one process by default, and every node of the Ray cluster of rayservice.yaml.
#
# `modwatch-base` is a named build context, not an image to pull; without compose:
#
#   docker build --file docker/base.Dockerfile --tag modwatch/base:0.5.0 .
#   docker build --file docker/serving.Dockerfile --tag modwatch/serving:0.5.0 \
#       --build-context modwatch-base=docker-image://modwatch/base:0.5.0 .
#
# With a read-only root it needs a volume or tmpfs at /var/lib/modwatch, for the models that it
# downloads, and one at /tmp:
#
#   docker run --read-only --tmpfs /tmp --volume served:/var/lib/modwatch --publish 127.0.0.1:8095:8095 \
#       --env MODWATCH_MLFLOW_URL=… --env MODWATCH_SCORER_TOKEN=… modwatch/serving:0.5.0
FROM modwatch-base

LABEL org.opencontainers.image.title="modwatch-serving" \
      org.opencontainers.image.description="Modwatch's model server" \
      org.opencontainers.image.version="0.5.0"

ENV RAY_USAGE_STATS_ENABLED=0 \
    RAY_SERVE_HTTP_PROXY_CALLBACK_IMPORT_PATH=modwatch.installation.ray_proxy.middlewares

USER 10001:10001
EXPOSE 8095
# The first start downloads the model.
HEALTHCHECK --interval=30s --timeout=10s --start-period=300s --retries=3 \
    CMD ["python", "healthcheck.py", "http://127.0.0.1:8095/v2/health/ready"]
CMD ["modwatch", "serve", "--host", "0.0.0.0", "--port", "8095"]
