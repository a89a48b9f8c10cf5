import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Hono } from "hono";
import { pageAccess } from "./page-access.ts";

const TOKEN = "token-of-the-test";

function appWith(token: string | undefined) {
  const app = new Hono();
  app.use(pageAccess(token));
  app.all("*", (c) => c.text("let in"));
  return app;
}

describe("pageAccess()", () => {
  const app = appWith(TOKEN);
  const paths = ["/", "/runs/lake-1?step=3", "/page/main.js", "/api/runs", "/v1/traces"];

  for (const path of paths) {
    test(`${path} is refused without the token, with another one, and with a part of it`, async () => {
      const wrong: Record<string, string>[] = [
        {},
        { authorization: "Bearer other" },
        { authorization: `Bearer ${TOKEN.slice(0, -1)}` },
        { authorization: `Basic ${TOKEN}` },
        { cookie: `hone=${TOKEN}` },
      ];
      for (const headers of wrong) {
        const answer = await app.request(path, { headers });
        assert.equal(answer.status, 401);
        assert.doesNotMatch(await answer.text(), /let in|token-of/);
      }
    });

    test(`${path} is answered with the token as a bearer token`, async () => {
      const answer = await app.request(path, { headers: { authorization: `Bearer ${TOKEN}` } });
      assert.equal(await answer.text(), "let in");
    });
  }

  test("a link with the token sets a cookie and redirects to the address without the token", async () => {
    const answer = await app.request(`/runs/lake-1?step=3&token=${TOKEN}`);
    assert.equal(answer.status, 303);
    assert.equal(answer.headers.get("location"), "/runs/lake-1?step=3");
    const cookie = answer.headers.get("set-cookie") ?? "";
    assert.match(cookie, /; HttpOnly/);
    assert.match(cookie, /; SameSite=Lax/);
    for (const path of paths) {
      const followed = await app.request(path, { headers: { cookie: cookie.split(";")[0] ?? "" } });
      assert.equal(await followed.text(), "let in");
    }
  });

  test("a link with another token sets no cookie, and paths of programs accept no token in the address", async () => {
    for (const path of ["/?token=other", `/api/runs?token=${TOKEN}`, `/v1/traces?token=${TOKEN}`]) {
      const answer = await app.request(path);
      assert.equal(answer.status, 401);
      assert.equal(answer.headers.get("set-cookie"), null);
    }
  });

  test("a redirect leads to this server even if the path begins with two slashes", async () => {
    const answer = await app.request(`http://127.0.0.1//evil.example/?token=${TOKEN}`);
    assert.doesNotMatch(answer.headers.get("location") ?? "", /^\/\//);
  });

  test("every path is answered to everybody when no token is set", async () => {
    for (const path of paths) assert.equal(await (await appWith(undefined).request(path)).text(), "let in");
  });
});
