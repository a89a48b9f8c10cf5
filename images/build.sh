#!/bin/sh
# Builds the images with BuildKit, each with an SBOM and its provenance attached, and pushes them.
#
#   images/build.sh REGISTRY/hone TAG [linux/amd64,linux/arm64]
#
# Needs docker with buildx, and Node 24 for the context. NODE_IMAGE names another base, such as a mirror's, by its digest.
set -eu
repository=${1:?usage: images/build.sh REGISTRY/hone TAG [PLATFORMS]}
tag=${2:?usage: images/build.sh REGISTRY/hone TAG [PLATFORMS]}
platforms=${3:-linux/amd64}
root=$(cd "$(dirname "$0")/.." && pwd)
context=$(mktemp -d)
trap 'rm -rf "$context"' EXIT

if [ "$tag" = latest ]; then
  echo "The tag latest, which moves, is refused by the chart: give another one" >&2
  exit 2
fi

case ${NODE_IMAGE:-@sha256:} in
  *@sha256:*) ;;
  *)
    echo "NODE_IMAGE is $NODE_IMAGE, a tag that can move: name the base with its digest, as $NODE_IMAGE@sha256:…" >&2
    exit 2
    ;;
esac

node "$root/scripts/image-context.ts" "$context/files"
docker buildx build --push --sbom=true --provenance=mode=max --platform "$platforms" \
  ${NODE_IMAGE:+--build-arg NODE_IMAGE="$NODE_IMAGE"} \
  --metadata-file "$context/services.json" \
  --file "$root/images/services.Dockerfile" --tag "$repository/services:$tag" "$context/files"
# The trainer's base is what was pushed just now, whatever its tag names meanwhile.
services=$(node --print 'JSON.parse(fs.readFileSync(process.argv[1], "utf8"))["containerimage.digest"]' "$context/services.json")

# For amd64: services/trainer/torch/requirements.txt has the wheels for arm64 too, which nobody has built with yet.
docker buildx build --push --sbom=true --provenance=mode=max --platform linux/amd64 \
  --build-arg SERVICES_IMAGE="$repository/services:$tag@$services" \
  --file "$root/images/trainer.Dockerfile" --tag "$repository/trainer:$tag" "$context/files"

docker buildx build --push --sbom=true --provenance=mode=max --platform linux/amd64 \
  --build-arg SERVICES_IMAGE="$repository/services:$tag@$services" \
  --file "$root/images/sinks.Dockerfile" --tag "$repository/sinks:$tag" "$context/files"

# What npm installed, for whoever has no registry that shows attached SBOMs.
mkdir -p "$root/images/out"
node "$root/scripts/sbom.ts" > "$root/images/out/services.cdx.json"
echo "pushed $repository/services:$tag ($services), $repository/trainer:$tag and $repository/sinks:$tag; SBOM in images/out/services.cdx.json"
