/** Converts OTLP attribute values to plain JSON values. */

import type { AnyValue } from "@hone/otlp-proto";

export type PlainValue = string | number | boolean | null | PlainValue[] | { [key: string]: PlainValue };

/** A 64-bit integer beyond 2^53 becomes a text, and bytes become hexadecimal text. */
export function plainValue(value: AnyValue | undefined): PlainValue {
  const kind = value?.value;
  switch (kind?.case) {
    case "stringValue":
    case "boolValue":
    case "doubleValue":
      return kind.value;
    case "intValue": {
      const number = Number(kind.value);
      return Number.isSafeInteger(number) ? number : String(kind.value);
    }
    case "bytesValue":
      return Buffer.from(kind.value).toString("hex");
    case "arrayValue":
      return kind.value.values.map(plainValue);
    case "kvlistValue":
      return Object.fromEntries(kind.value.values.map((entry) => [entry.key, plainValue(entry.value)]));
    default:
      return null;
  }
}
