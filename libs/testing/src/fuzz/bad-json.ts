/** Bodies of HTTP requests that anybody may send: nearly valid JSON, and text that is not JSON. */

import fc from "fast-check";
import { absurdJson, absurdText } from "./absurd-values.ts";
import { damaged } from "./bad-messages.ts";

type Place = readonly (string | number)[];

/** Texts that are variations of a valid value. Most are not valid, some are by chance. */
export function badJson(valid: object): fc.Arbitrary<string> {
  const places = placesIn(valid, []);
  const replaced = fc
    .tuple(fc.constantFrom(...places), absurdJson)
    .map(([place, value]) => JSON.stringify(replacedAt(valid, place, value)));
  const bytes = new TextEncoder().encode(JSON.stringify(valid));
  return fc.oneof(
    { arbitrary: replaced, weight: 5 },
    { arbitrary: damaged(bytes).map((broken) => new TextDecoder().decode(broken)), weight: 2 },
    { arbitrary: absurdText, weight: 2 },
    { arbitrary: absurdJson.map((value) => JSON.stringify(value)), weight: 1 },
  );
}

/** Every key and index, at any depth. */
function placesIn(value: unknown, above: Place): Place[] {
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) => {
    const place = [...above, Array.isArray(value) ? Number(key) : key];
    return [place, ...placesIn(inner, place)];
  });
}

function replacedAt(valid: object, place: Place, value: unknown): object {
  const copy = structuredClone(valid);
  const last = place.at(-1)!;
  let holder: object = copy;
  for (const key of place.slice(0, -1)) holder = Reflect.get(holder, key) as object;
  Reflect.set(holder, last, value);
  return copy;
}
