#!/bin/sh
# Writes src/gen anew from proto/onnx.proto.
set -eu
cd "$(dirname "$0")"
PATH="$PWD/../../node_modules/.bin:$PATH" buf generate
