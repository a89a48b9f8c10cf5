/** Finds the HTTP address of a service of a stack. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import path from "node:path";
import type { TestStack } from "./stack.ts";

/** @returns the address without a slash at its end. */
export function serviceUrl({ stateFolder }: TestStack, service: string): string {
  const { services } = JSON.parse(readFileSync(path.join(stateFolder, "stack.json"), "utf8")) as {
    services: Record<string, { httpPort: number } | undefined>;
  };
  const { httpPort } = services[service] ?? assert.fail(`no service ${service}`);
  return `http://127.0.0.1:${httpPort}`;
}
