/**
 * A small server with the part of the hub's protocol that its client uses, for tests: revisions, trees and files. Large files
 * are redirected to another host, which supports ranges. Development only.
 */
import { createHash } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export const COMMIT = "0123456789abcdef0123456789abcdef01234567";
export const TOKEN = "hf_test";

export interface HubServer extends AsyncDisposable {
  readonly endpoint: string;
  /** Method, path and range of all requests. */
  readonly requests: string[];
  /** Contents by name; safetensors files count as large. */
  readonly files: Map<string, Uint8Array>;
  /** Bytes of a large file after which the connection breaks, for the next answers. */
  readonly breakAfter: number[];
  /** Awaited before a connection breaks. */
  untilBreak: (sentBytes: number) => Promise<void>;
  /** Whether a token must be sent. */
  isPrivate: boolean;
  /** Whether large files are sent with one byte changed. */
  isDamaging: boolean;
  /** Whether listings never end. */
  isEndless: boolean;
  /** The size that is listed for each file instead of its own. */
  listedSize: number | undefined;
  /** Answers all requests with this status instead. */
  status: number | undefined;
}

/** Serves the repository `owner/name` with one commit, which `main` names. */
export async function startHubServer(): Promise<HubServer> {
  const server = createServer((request, response) => answer(hub, request, response));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const hub: HubServer = {
    endpoint: `http://127.0.0.1:${port}`,
    requests: [],
    files: new Map(),
    breakAfter: [],
    untilBreak: async () => undefined,
    isPrivate: false,
    isDamaging: false,
    isEndless: false,
    listedSize: undefined,
    status: undefined,
    [Symbol.asyncDispose]: () => close(server),
  };
  return hub;
}

function answer(hub: HubServer, request: IncomingMessage, response: ServerResponse): void {
  const url = new URL(request.url!, hub.endpoint);
  const range = request.headers.range;
  hub.requests.push(`${request.method} ${url.pathname}${range === undefined ? "" : ` ${range}`}`);
  const isAllowed = !hub.isPrivate || request.headers.authorization === `Bearer ${TOKEN}`;
  if (url.pathname.startsWith("/cdn/")) sendLarge(hub, url, request, response);
  else if (hub.status !== undefined) sendJson(response, hub.status, { error: "as the test wants it" });
  else if (!isAllowed) sendJson(response, 401, { error: "Invalid username or password." });
  else if (url.pathname.startsWith("/api/")) sendListing(hub, url, response);
  else sendFile(hub, url, request, response);
}

function sendJson(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}

function sendListing(hub: HubServer, url: URL, response: ServerResponse): void {
  switch (url.pathname.replace(/^\/api\/(models|datasets)\/owner\/name\//, "")) {
    case "revision/main":
    case `revision/${COMMIT}`:
      sendJson(response, 200, {
        _id: "1",
        id: "owner/name",
        sha: COMMIT,
        lastModified: "2026-01-01T00:00:00Z",
      });
      return;
    case `tree/${COMMIT}`:
      if (hub.isEndless) sendWithoutEnd(response);
      else {
        const size = hub.listedSize;
        const entries = [...hub.files].map(entryOf);
        sendJson(
          response,
          200,
          size === undefined ? entries : entries.map((each) => ({ ...each, size, lfs: undefined })),
        );
      }
      return;
    default:
      sendJson(response, 404, { error: "Repository not found" });
  }
}

function sendWithoutEnd(response: ServerResponse): void {
  response.writeHead(200, { "content-type": "application/json" });
  const send = () => {
    while (!response.destroyed && response.write(" ".repeat(65_536)));
  };
  response.on("drain", send);
  send();
}

function sendFile(hub: HubServer, url: URL, request: IncomingMessage, response: ServerResponse): void {
  const name = url.pathname.split(`/owner/name/resolve/${COMMIT}/`)[1] ?? "";
  const content = hub.files.get(name);
  if (content === undefined) sendJson(response, 404, { error: "Entry not found" });
  else if (!isLarge(name)) response.writeHead(200).end(content);
  else {
    // The hub also redirects to another host, which must not get the token.
    const { port } = request.socket.address() as AddressInfo;
    response.writeHead(302, { location: `http://localhost:${port}/cdn/${name}` }).end();
  }
}

function sendLarge(hub: HubServer, url: URL, request: IncomingMessage, response: ServerResponse): void {
  if (request.headers.authorization !== undefined) {
    response.writeHead(400).end();
    return;
  }
  const content = Uint8Array.from(hub.files.get(url.pathname.slice("/cdn/".length))!);
  if (hub.isDamaging) content[content.length - 1]! ^= 1;
  const begin = Number(/^bytes=(\d+)-$/.exec(request.headers.range ?? "")?.[1] ?? 0);
  const left = content.subarray(begin);
  response.writeHead(begin === 0 ? 200 : 206, { "content-length": left.length });
  const breakAfter = hub.breakAfter.shift();
  if (breakAfter === undefined) response.end(left);
  else {
    response.write(left.subarray(0, breakAfter));
    void hub.untilBreak(begin + breakAfter).then(() => response.destroy());
  }
}

function entryOf([path, content]: [string, Uint8Array]): object {
  const hex = (algorithm: string, ...parts: (string | Uint8Array)[]) =>
    parts.reduce((hash, part) => hash.update(part), createHash(algorithm)).digest("hex");
  if (!isLarge(path)) {
    return {
      type: "file",
      path,
      size: content.length,
      oid: hex("sha1", `blob ${content.length}\0`, content),
    };
  }
  const lfs = { oid: hex("sha256", content), size: content.length, pointerSize: 134 };
  return { type: "file", path, size: content.length, oid: hex("sha1", path), lfs };
}

function isLarge(name: string): boolean {
  return name.endsWith(".safetensors");
}

async function close(server: Server): Promise<void> {
  const closed = new Promise((resolve) => server.close(resolve));
  server.closeAllConnections();
  await closed;
}
