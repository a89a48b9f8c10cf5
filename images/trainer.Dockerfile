# The trainer with PyTorch, for the engine fsdp2: the services' image and a Python that has what
# services/trainer/torch/pyproject.toml names. Made by images/build.sh.
ARG SERVICES_IMAGE=docker.io/hone/services:0.1.0

FROM ${SERVICES_IMAGE}
USER root
# A compiler: attention in blocks is compiled for the GPU at hand. Python's headers are what it includes.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends python3 python3-dev python3-venv gcc g++ \
    && rm -rf /var/lib/apt/lists/*
# PyTorch's wheels bring the CUDA libraries; the node brings the driver. Each file that is fetched has the SHA-256 that
# requirements.txt names; Hone's own package is built from the context, with the setuptools of that list and no way to an index.
RUN python3 -m venv /opt/torch \
    && /opt/torch/bin/pip install --no-cache-dir --disable-pip-version-check --only-binary :all: --require-hashes \
         --requirement /app/services/trainer/torch/requirements.txt \
    && /opt/torch/bin/pip install --no-cache-dir --disable-pip-version-check --no-index --no-deps --no-build-isolation \
         /app/services/trainer/torch \
    && rm -rf /root/.cache /app/services/trainer/torch/build /app/services/trainer/torch/*.egg-info
# Compiled kernels are kept for the life of the pod.
ENV TORCHINDUCTOR_CACHE_DIR=/tmp/torchinductor TRITON_CACHE_DIR=/tmp/triton
USER 1000:1000
CMD ["node", "/app/services/trainer/src/main.ts"]
