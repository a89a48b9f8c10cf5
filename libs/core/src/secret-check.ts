/** Comparing secrets in constant time. */

import { createHash, timingSafeEqual } from "node:crypto";

/** @returns a function that tells whether a text is the secret. It keeps only the secret's digest. */
export function secretCheck(secret: string): (given: string) => boolean {
  const wanted = digestOf(secret);
  // timingSafeEqual() needs equal lengths, which digests have.
  return (given) => timingSafeEqual(digestOf(given), wanted);
}

function digestOf(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
