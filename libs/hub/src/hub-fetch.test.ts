import assert from "node:assert/strict";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, describe, test } from "node:test";
import { hubFetch } from "./hub-fetch.ts";

/* The attacker controls the hub's redirects and listings, as a mirror, a CDN or a repository does. */

const TOKEN = "Bearer hf_secret";

describe("fetch for the hub", () => {
  const seen: { readonly host: string; readonly url: string; readonly token: string | undefined }[] = [];
  const servers: Server[] = [];
  let routes: Readonly<Record<string, string>> = {};
  let hub: string;
  let elsewhere: string;
  const answer = (request: IncomingMessage, response: ServerResponse) => {
    const { host = "", authorization: token } = request.headers;
    const url = request.url ?? "";
    seen.push({ host, url, token });
    const location = routes[url];
    if (location === undefined) response.end(`range ${request.headers.range}`);
    else response.writeHead(302, { location }).end("moved");
  };
  before(async () => {
    for (let count = 0; count < 2; count++) {
      const server = createServer(answer);
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
      servers.push(server);
    }
    [hub = "", elsewhere = ""] = servers.map(
      (server) => `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    );
  });
  after(() => {
    for (const server of servers) server.close();
  });
  const ask = async (url: string, following: typeof routes = {}) => {
    seen.length = 0;
    routes = following;
    const response = await hubFetch(`${hub}/mirror`)(url, {
      headers: { authorization: TOKEN, range: "bytes=5-" },
    });
    return { text: await response.text(), tokens: seen.map(({ host, token }) => [`http://${host}`, token]) };
  };

  test("sends the token to the hub, also after a redirect within it, and all other headers", async () => {
    const { text, tokens } = await ask(`${hub}/a`, { "/a": "/b" });
    assert.equal(text, "range bytes=5-");
    assert.deepEqual(tokens, [
      [hub, TOKEN],
      [hub, TOKEN],
    ]);
  });

  test("sends the token to no other host or port, neither after a redirect nor when an answer names one", async () => {
    assert.deepEqual((await ask(`${hub}/a`, { "/a": `${elsewhere}/b` })).tokens, [
      [hub, TOKEN],
      [elsewhere, undefined],
    ]);
    // Such as the next page of a listing.
    assert.deepEqual((await ask(`${elsewhere}/page`)).tokens, [[elsewhere, undefined]]);
    // A redirect to another host and back: the hub gets the token again.
    assert.deepEqual((await ask(`${elsewhere}/a`, { "/a": `${hub}/b` })).tokens, [
      [elsewhere, undefined],
      [hub, TOKEN],
    ]);
  });

  test("does not follow endless redirects", async () => {
    await assert.rejects(ask(`${hub}/a`, { "/a": "/a" }), /redirects without end/);
    assert.ok(seen.length < 30);
  });
});
