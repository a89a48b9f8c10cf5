/** Makes wheels for tests. */

import { createHash } from "node:crypto";
import { strToU8, zipSync } from "fflate";

export interface WheelParts {
  /** @default "tiny" */
  readonly name?: string;
  /** Files by path, beside the wheel's own. */
  readonly files: Readonly<Record<string, string>>;
  /** Lines of METADATA after its first three. */
  readonly metadata?: readonly string[];
  /** Changes the files before they are packed, after RECORD was written. */
  readonly tamper?: (files: Record<string, Uint8Array>) => void;
}

/** A wheel of version 1.0, with a RECORD of its files. */
export function makeWheel({ name = "tiny", files, metadata = [], tamper }: WheelParts): Uint8Array {
  const info = `${name}-1.0.dist-info`;
  const contents: Record<string, Uint8Array> = {};
  for (const [path, text] of Object.entries(files)) contents[path] = strToU8(text);
  const lines = ["Metadata-Version: 2.4", `Name: ${name}`, "Version: 1.0", ...metadata];
  contents[`${info}/METADATA`] = strToU8(`${lines.join("\n")}\n\nText: about it\n`);
  contents[`${info}/WHEEL`] = strToU8("Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n");
  const record = Object.entries(contents).map(([path, bytes]) => {
    const digest = createHash("sha256").update(bytes).digest("base64url");
    return `${path.includes(",") ? `"${path}"` : path},sha256=${digest},${bytes.length}\n`;
  });
  contents[`${info}/RECORD`] = strToU8(`${record.join("")}${info}/RECORD,,\n`);
  tamper?.(contents);
  return zipSync(contents);
}
