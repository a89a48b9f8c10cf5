#!/usr/bin/env node
// `hone` on the PATH: the same as `npm run hone --`.
process.argv.splice(2, 0, "apps/cli/src/main.ts");
await import("../../../scripts/bootstrap.mjs");
