/** One text for one value: JSON with sorted keys and without spaces, so that equal values have equal digests. */

/** Numbers that JSON cannot hold become null, and absent members are left out, as in `JSON.stringify`. */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_, part: unknown) =>
    part !== null && typeof part === "object" && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)))
      : part,
  );
}
