# Sapwood in a container: data in /data (SQLite), or in MongoDB with SAPWOOD_DATABASE_URL.
FROM python:3.11-slim AS build
WORKDIR /source
RUN python -m venv /sapwood
COPY requirements.lock .
RUN /sapwood/bin/pip install --no-cache-dir --requirement requirements.lock
COPY pyproject.toml README.md LICENSE ./
COPY storage storage
COPY schema schema
COPY server server
RUN /sapwood/bin/pip install --no-cache-dir --no-deps --no-build-isolation .

FROM python:3.11-slim
RUN useradd --system --uid 10001 sapwood && install --directory --owner sapwood /data
COPY --from=build /sapwood /sapwood
ENV PATH=/sapwood/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    SAPWOOD_HOST=0.0.0.0 \
    SAPWOOD_DATA_DIR=/data \
    SAPWOOD_LOG_FORMAT=json
USER sapwood
VOLUME /data
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=5s --start-period=20s CMD ["python", "-c", \
    "import os, urllib.request as r; r.urlopen(f'http://127.0.0.1:{os.environ.get(\"SAPWOOD_PORT\", 8000)}/healthz', timeout=4)"]
CMD ["sapwood", "serve"]
