# The review console: the page and the HTTP API that moderators work with.
#
# `modwatch-base` is a named build context, not an image to pull: compose.yaml points it at the
# image of base.Dockerfile.
FROM modwatch-base

LABEL org.opencontainers.image.title="modwatch-console" \
      org.opencontainers.image.description="Modwatch's review console" \
      org.opencontainers.image.version="0.5.0"

USER 10001:10001
EXPOSE 8090
HEALTHCHECK --interval=30s --timeout=10s --start-period=30s --retries=3 \
    CMD ["python", "healthcheck.py", "http://127.0.0.1:8090/readyz"]
CMD ["modwatch", "console", "--host", "0.0.0.0", "--port", "8090"]
