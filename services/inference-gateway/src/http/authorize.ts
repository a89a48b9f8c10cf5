/** Lets only those pass who know the key, where there is one. */

import { createHash, timingSafeEqual } from "node:crypto";
import type { MiddlewareHandler } from "hono";
import { ApiRequestError } from "./api-error.ts";

/** @param apiKey undefined = whoever reaches the address may ask. */
export function authorize(apiKey: string | undefined): MiddlewareHandler {
  const wanted = apiKey === undefined ? undefined : digestOf(apiKey);
  return async function checkBearerToken(c, next) {
    const given = /^Bearer +(\S+) *$/i.exec(c.req.header("authorization") ?? "")?.[1];
    // Digests are of one length, and comparing them tells nothing about the key.
    if (wanted !== undefined && (given === undefined || !timingSafeEqual(digestOf(given), wanted))) {
      const current = given === undefined ? "no bearer token" : "another one";
      throw new ApiRequestError(
        `Cannot answer as the bearer token must be the API key: current value is ${current}`,
        {
          status: 401,
          apiCode: "invalid_api_key",
        },
      );
    }
    await next();
  };
}

function digestOf(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
