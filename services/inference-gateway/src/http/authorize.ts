/** Refuses requests without the API key, if there is one. */

import { secretCheck } from "@hone/core";
import { ApiRequestError, bearerToken } from "@hone/service-kit";
import type { MiddlewareHandler } from "hono";

/** @param apiKey undefined = requests need no key. */
export function authorize(apiKey: string | undefined): MiddlewareHandler {
  const isKey = apiKey === undefined ? undefined : secretCheck(apiKey);
  return async function checkBearerToken(c, next) {
    const given = bearerToken(c.req.header("authorization"));
    if (isKey !== undefined && (given === undefined || !isKey(given))) {
      const problem = given === undefined ? "The request has no bearer token" : "The bearer token is wrong";
      throw new ApiRequestError(`${problem}; it must be the API key`, {
        status: 401,
        apiCode: "invalid_api_key",
      });
    }
    await next();
  };
}
