# The sinks for W&B, SwanLab and Trackio: the services' image and a Python that has what services/tracer/python/pyproject.toml
# names. Made by images/build.sh.
ARG SERVICES_IMAGE=docker.io/hone/services:0.1.0

FROM ${SERVICES_IMAGE}
USER root
RUN apt-get update \
    && apt-get install --yes --no-install-recommends python3 python3-venv \
    && rm -rf /var/lib/apt/lists/*
# Each file that is fetched has the SHA-256 that requirements.txt names. Hone's own part is run where it lies, as it shares the table
# of names with the tracer.
RUN python3 -m venv /opt/sinks \
    && /opt/sinks/bin/pip install --no-cache-dir --disable-pip-version-check --only-binary :all: --require-hashes \
         --requirement /app/services/tracer/python/requirements.txt \
    && rm -rf /root/.cache
ENV PYTHONDONTWRITEBYTECODE=1
WORKDIR /app/services/tracer/python
USER 1000:1000
CMD ["/opt/sinks/bin/python", "-m", "hone_sinks"]
