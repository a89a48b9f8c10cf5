#!/bin/sh
# Builds the images with BuildKit, each with an SBOM and its provenance attached, and pushes them.
#
#   images/build.sh REGISTRY/hone TAG [linux/amd64,linux/arm64]
#
# Needs docker with buildx, and Node 24 for the context. NODE_IMAGE names another base, such as a mirror's by digest.
set -eu
repository=${1:?usage: images/build.sh REGISTRY/hone TAG [PLATFORMS]}
tag=${2:?usage: images/build.sh REGISTRY/hone TAG [PLATFORMS]}
platforms=${3:-linux/amd64}
root=$(cd "$(dirname "$0")/.." && pwd)
context=$(mktemp -d)
trap 'rm -rf "$context"' EXIT

if [ "$tag" = latest ]; then
  echo "Cannot tag images as latest, which moves: the chart refuses it" >&2
  exit 2
fi

node "$root/scripts/image-context.ts" "$context"
docker buildx build --push --sbom=true --provenance=mode=max --platform "$platforms" \
  ${NODE_IMAGE:+--build-arg NODE_IMAGE="$NODE_IMAGE"} \
  --file "$root/images/services.Dockerfile" --tag "$repository/services:$tag" "$context"

# PyTorch's wheels with CUDA are for amd64 alone.
docker buildx build --push --sbom=true --provenance=mode=max --platform linux/amd64 \
  --build-arg SERVICES_IMAGE="$repository/services:$tag" \
  --file "$root/images/trainer.Dockerfile" --tag "$repository/trainer:$tag" "$context"

# What npm installed, for whoever has no registry that shows attached SBOMs.
mkdir -p "$root/images/out"
node "$root/scripts/sbom.ts" > "$root/images/out/services.cdx.json"
echo "pushed $repository/services:$tag and $repository/trainer:$tag; SBOM in images/out/services.cdx.json"
