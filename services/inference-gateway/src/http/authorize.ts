/** Lets only those pass who know the key, where there is one. */

import { secretCheck } from "@hone/core";
import { ApiRequestError, bearerToken } from "@hone/service-kit";
import type { MiddlewareHandler } from "hono";

/** @param apiKey undefined = whoever reaches the address may ask. */
export function authorize(apiKey: string | undefined): MiddlewareHandler {
  const isKey = apiKey === undefined ? undefined : secretCheck(apiKey);
  return async function checkBearerToken(c, next) {
    const given = bearerToken(c.req.header("authorization"));
    if (isKey !== undefined && (given === undefined || !isKey(given))) {
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
