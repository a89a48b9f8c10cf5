#!/bin/sh
# Regenerates src/gen from proto/, which holds files of github.com/open-telemetry/opentelemetry-proto at ac2c4b5.
set -eu
cd "$(dirname "$0")"
PATH="$PWD/../../node_modules/.bin:$PATH" buf generate
