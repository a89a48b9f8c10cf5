#!/bin/sh
# Regenerates src/ from proto/onnx.proto. src/index.ts is part of what this writes, as buf cleans the folder.
set -eu
cd "$(dirname "$0")"
PATH="$PWD/../../node_modules/.bin:$PATH" buf generate
cat > src/index.ts <<'TS'
/** ONNX messages generated from proto/onnx.proto by generate.sh; nothing else. */
export * from "./onnx_pb.ts";
TS
