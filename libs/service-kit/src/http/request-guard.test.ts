import assert from "node:assert/strict";
import { request } from "node:http";
import { after, before, describe, test } from "node:test";
import { Hono } from "hono";
import { type HttpServer, startHttpServer } from "./http-server.ts";

const JSON_TYPE = { "content-type": "application/json" };

describe("what a web page makes a browser send", () => {
  let server: HttpServer;
  before(async () => {
    server = await startHttpServer({
      host: "127.0.0.1",
      port: 0,
      allowedHosts: ["hone.example.com", ".svc"],
      health: new Hono().get("/livez", (c) => c.text("alive")),
    });
    server.serve(
      new Hono().all("/runs", async (c) => c.text(`took ${await c.req.text()}`)),
      ["sessions.lan"],
    );
  });
  after(() => server.close(AbortSignal.abort()));

  /** `fetch` sets Host and Origin by itself, so it cannot play a page. */
  const send = (headers: Record<string, string>, { method = "GET", body = "", path = "/runs" } = {}) =>
    new Promise<{ status: number; text: string }>((resolve, reject) => {
      const { host, port } = server.address;
      const sent = request({ host, port, path, method, headers, agent: false, timeout: 5_000 }, (answer) => {
        let text = "";
        answer.on("data", (chunk) => {
          text += chunk;
        });
        answer.on("end", () => resolve({ status: answer.statusCode ?? 0, text }));
      });
      sent.on("error", reject);
      sent.end(body);
    });

  for (const host of [
    "127.0.0.1:8080",
    "localhost",
    "LOCALHOST:1",
    "page.localhost:80",
    "10.2.3.4:8080",
    "[::1]:8080",
    "hone.example.com",
    "Hone.Example.Com:443",
    "hone-tracer.hone.svc:80",
    "sessions.lan:9",
  ]) {
    test(`answers for the host ${host}`, async () => {
      assert.equal((await send({ host })).status, 200);
    });
  }

  for (const host of [
    "evil.example",
    "evil.example:8080",
    "127.0.0.1.evil.example",
    "localhost.evil.example",
    "xhone.example.com",
    "svc",
    "evil.svc.example",
    "a b",
    "user@127.0.0.1",
    "127.0.0.1/evil",
  ]) {
    test(`does not answer for the host "${host}", be it a probe`, async () => {
      for (const path of ["/runs", "/livez"]) {
        const { status, text } = await send({ host }, { path });
        assert.ok(status === 421 || status === 400, `${status}: ${text}`);
        assert.doesNotMatch(text, /took|alive/);
      }
    });
  }

  const host = "127.0.0.1:8080";
  test("takes requests of its own pages and of programs, which send no origin", async () => {
    const own = { host, origin: `http://${host}`, "sec-fetch-site": "same-origin", ...JSON_TYPE };
    assert.equal((await send(own, { method: "POST", body: "{}" })).text, "took {}");
    assert.equal((await send({ host, ...JSON_TYPE }, { method: "POST", body: "{}" })).status, 200);
    const behindTls = { host: "hone.example.com", origin: "https://hone.example.com", ...JSON_TYPE };
    assert.equal((await send(behindTls, { method: "POST", body: "{}" })).status, 200);
    const followed = { host, "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate" };
    assert.equal((await send(followed)).status, 200);
  });

  for (const [what, headers] of Object.entries({
    "another origin": { origin: "https://evil.example" },
    "another port of this machine": { origin: "http://127.0.0.1:9999" },
    "a page without an origin": { origin: "null" },
    "an origin that is none": { origin: "127.0.0.1:8080" },
    "an image of another site": { "sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors" },
  })) {
    test(`refuses what ${what} sends`, async () => {
      for (const method of ["GET", "POST"]) {
        const { status, text } = await send(
          { host, ...headers, ...JSON_TYPE },
          { method, body: method === "POST" ? "{}" : "" },
        );
        assert.equal(status, 403, text);
      }
    });
  }

  for (const type of [
    "application/x-www-form-urlencoded",
    "",
    "multipart/form-data; boundary=x",
    "text/plain",
  ]) {
    test(`refuses a body of the type "${type}", which a form can send`, async () => {
      const headers: Record<string, string> = type === "" ? { host } : { host, "content-type": type };
      assert.equal((await send(headers, { method: "POST", body: "{}" })).status, 415);
      for (const credential of ["authorization", "x-api-key"]) {
        const program = await send({ ...headers, [credential]: "key" }, { method: "POST", body: "{}" });
        assert.equal(program.text, "took {}");
      }
    });
  }
});
