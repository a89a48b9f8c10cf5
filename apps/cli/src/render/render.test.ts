import assert from "node:assert/strict";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { type TemporaryFolder, temporaryFolder } from "@hone/testing";
import { decodeFrames } from "modern-gif";
import { UsageError } from "../errors.ts";
import { Painter, type Painting } from "./painter.ts";
import { captionOf, type StoredFrame, storedFrames } from "./stored-frames.ts";
import { formatOf, writeFrames } from "./write-frames.ts";

const { signal } = new AbortController();
const RED = [255, 0, 0];
const BLUE = [0, 0, 255];
const WHITE = [255, 255, 255];
/** Two pixels, red and blue. */
const PNG =
  "iVBORw0KGgoAAAANSUhEUgAAAAIAAAABCAIAAAB7QOjdAAAADUlEQVR4nGP4zwAE/wEHAAH/4iOeWQAAAABJRU5ErkJggg==";

const square = (color: string, size = 40, inner = "") =>
  `<svg xmlns="http://www.w3.org/2000/svg" width="${size}" height="${size}"><rect width="${size}" height="${size}" fill="${color}"/>${inner}</svg>`;
const frame = (changes: Partial<StoredFrame> = {}): StoredFrame => ({
  after: null,
  action: null,
  reward: null,
  text: "P_\n_G",
  ...changes,
});

async function paint(frames: readonly StoredFrame[], scale = 1, hasCaption = false): Promise<Painting[]> {
  const painter = await Painter.open({ scale, hasCaption });
  return [...painter.paint(frames)];
}

/** The colour of a pixel, by default of the one in the middle. */
function colorAt({ width, height, rgba }: Painting, x = width >> 1, y = height >> 1): number[] {
  return Array.from(rgba.subarray((y * width + x) * 4, (y * width + x) * 4 + 3));
}

/** Number of pixels that are not white. */
const inked = ({ rgba }: Painting) =>
  Array.from({ length: rgba.length / 4 }, (_, at) => rgba.subarray(at * 4, at * 4 + 3)).filter((pixel) =>
    pixel.some((value) => value < 200),
  ).length;

describe("a painter", () => {
  test("puts pictures into the middle of canvases of the same size, and enlarges them", async () => {
    const frames = [frame({ svg: square("#f00") }), frame({ svg: square("#00f", 100) })];
    const [small, large] = await paint(frames);
    assert.deepEqual([small?.width, small?.height], [264, 124]);
    assert.deepEqual([large?.width, large?.height], [264, 124]);
    assert.deepEqual(colorAt(small!), RED);
    assert.deepEqual(colorAt(large!), BLUE);
    assert.deepEqual(colorAt(small!, 132, 30), WHITE);
    assert.deepEqual(colorAt(large!, 132, 30), BLUE);
    const [doubled] = await paint(frames, 4);
    assert.deepEqual([doubled?.width, doubled?.height], [424, 424]);
  });

  test("keeps the edges of a PNG file's pixels", async () => {
    const [painted] = await paint([frame({ png: PNG })], 10);
    assert.deepEqual([painted?.width, painted?.height], [264, 34]);
    assert.deepEqual(colorAt(painted!, 131), RED);
    assert.deepEqual(colorAt(painted!, 132), BLUE);
    const broken = Buffer.from(PNG, "base64").subarray(0, 40).toString("base64");
    const [shown] = await paint([frame({ png: broken, text: "P√" })]);
    const [text] = await paint([frame({ text: "P√" })]);
    assert.deepEqual(shown, text, "what is no PNG file after all is shown by its text");
  });

  test("sets texts with blanks, lines and symbols, and captions", async () => {
    const [plain] = await paint([frame({ text: "P√" })]);
    const [indented] = await paint([frame({ text: "   P√" })]);
    assert.ok(inked(plain!) > 50, `${inked(plain!)} pixels`);
    assert.equal(inked(indented!) > 50, true);
    const [twoLines] = await paint([frame({ text: "P√\nP√" })]);
    assert.ok(twoLines!.height > plain!.height);
    const [captioned] = await paint([frame({ text: "" })], 1, true);
    assert.ok(inked(captioned!) > 50, "start is written below an empty picture");
    const [none] = await paint([frame({ text: "" })]);
    assert.equal(inked(none!), 0);
  });

  test("takes any text, also markup, control characters and very long lines", async () => {
    const text = `<text>&amp;\u0000\u0007\uD800 ]]> ${"x".repeat(10_000)}\n${"\n".repeat(1_000)}`;
    const [painted] = await paint([frame({ text, action: text, after: 1 })], 1, true);
    assert.ok(painted!.width < 900 && painted!.height < 1_400, `${painted!.width} x ${painted!.height}`);
  });

  test("reads no file and nothing from the network for a document", async () => {
    const asked: string[] = [];
    const server = createServer((request, response) => {
      asked.push(request.url ?? "");
      response.end(Buffer.from(PNG, "base64"));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    await using folder = await temporaryFolder("painter");
    const secret = path.join(folder.path, "secret.png");
    await writeFile(secret, Buffer.from(PNG, "base64"));
    const inner = [secret, `file://${secret}`, `http://127.0.0.1:${port}/a.png`]
      .map((href) => `<image href="${href}" width="40" height="40" preserveAspectRatio="none"/>`)
      .join("");
    const [painted] = await paint([frame({ svg: square("#fff", 40, `${inner}<script>throw 1</script>`) })]);
    server.close();
    assert.equal(inked(painted!), 0);
    assert.deepEqual(asked, []);
  });

  test("refuses what is no picture, and what would be too large", async () => {
    await assert.rejects(
      paint([frame(), frame({ svg: "<svg" })]),
      /frame 2 cannot be read as SVG.*FILE\.txt/s,
    );
    await assert.rejects(
      paint([frame({ svg: square("#fff", 10_000) })]),
      /10000 x 10000 pixels.*smaller --scale/s,
    );
    const fontFile = path.join(import.meta.dirname, "absent.ttf");
    await assert.rejects(
      Painter.open({ scale: 1, hasCaption: false, fontFile }),
      /absent\.ttf cannot be read/,
    );
  });
});

describe("writing frames", () => {
  let folder: TemporaryFolder;
  before(async () => {
    folder = await temporaryFolder("render");
  });
  after(() => folder[Symbol.asyncDispose]());

  const frames = [
    frame({ svg: square("#f00") }),
    frame({ svg: square("#00f"), after: 0, action: "Right", reward: 1, text: "_P" }),
  ];
  const options = { scale: 1, hasCaption: true, delayMs: 400, signal };

  test("an animation has every frame with its time, and the last one stays longer", async () => {
    const file = path.join(folder.path, "lake.gif");
    assert.equal(await writeFrames(frames, file, options), "2 frames of 264 x 94 pixels");
    const decoded = decodeFrames(await readFile(file));
    assert.deepEqual(
      decoded.map(({ width, height, delay }) => [width, height, delay]),
      [
        [264, 94, 400],
        [264, 94, 1_200],
      ],
    );
    const middles = decoded.map(({ data, width }) =>
      Array.from(data.subarray((32 * width + 132) * 4, (32 * width + 132) * 4 + 3)),
    );
    assert.deepEqual(middles, [RED, BLUE]);
  });

  test("a folder gets one PNG file a frame, and must be empty", async () => {
    const target = path.join(folder.path, "frames");
    assert.equal(await writeFrames(frames, target, options), "2 frames as PNG files");
    assert.deepEqual((await readdir(target)).sort(), ["frame-0000.png", "frame-0001.png"]);
    assert.equal((await readFile(path.join(target, "frame-0001.png"))).readUInt32BE(16), 264);
    await assert.rejects(writeFrames(frames, target, options), /is not empty; give a new or empty one/);
  });

  test("a text has each state with what led to it", async () => {
    const file = path.join(folder.path, "lake.txt");
    await writeFrames(frames, file, options);
    assert.equal(await readFile(file, "utf8"), "== start\nP_\n_G\n\n== turn 1: Right, reward 1\n_P\n");
  });

  test("other endings and places that cannot be written are refused", async () => {
    assert.throws(() => formatOf("lake.mp4"), /ends with \.gif or \.txt, or a folder for PNG files/);
    assert.throws(() => formatOf("frame.png"), UsageError);
    await mkdir(path.join(folder.path, "taken.gif"));
    await assert.rejects(
      writeFrames(frames, path.join(folder.path, "taken.gif"), options),
      /cannot be written/,
    );
  });
});

test("a caption says the turn, its action and its reward in one line", () => {
  assert.equal(captionOf(frame()), "start");
  assert.equal(captionOf(frame({ after: 2, action: "Left", reward: 0 })), "turn 3: Left");
  assert.equal(captionOf(frame({ after: 2, action: "", reward: -0.1 })), "turn 3: no action, reward -0.1");
  assert.equal(captionOf(frame({ after: 0, action: "go\n to  1" })), "turn 1: go to 1");
  assert.equal(captionOf(frame({ after: 0 })), "turn 1");
});

describe("storedFrames()", () => {
  let server: Server;
  let place: Parameters<typeof storedFrames>[0];
  const error = (message: string) => ({ error: { code: "x", message } });
  const pages: Record<string, readonly [status: number, body: unknown]> = {
    "/api/runs/run-1": [200, {}],
    "/api/runs/run-1/rollouts/train.1.0.0/frames": [
      200,
      { source: "environment", notice: "", frames: [frame({ svg: square("#fff") })] },
    ],
    "/api/runs/run-1/rollouts/train.1.0.1/frames": [410, error("it is no longer kept")],
    "/api/runs/run-1/rollouts/train.1.0.2/frames": [200, { source: "record", notice: "why", frames: [] }],
    "/api/runs/run-1/rollouts/train.1.0.3/frames": [200, { frames: [{ png: "no Base64!" }] }],
  };
  before(async () => {
    server = createServer((request, response) => {
      const [status, body] = pages[request.url ?? ""] ?? [404, error("nothing is stored under this name")];
      response.writeHead(status).end(JSON.stringify(body));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const pageUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    place = { pageUrl, token: "t", signal };
  });
  after(() => {
    server.closeAllConnections();
    server.close();
  });

  test("reads the frames of a rollout", async () => {
    const { frames } = await storedFrames(place, "run-1", "train.1.0.0");
    assert.deepEqual(frames, [frame({ svg: square("#fff") })]);
  });

  test("says what is unknown, gone or empty", async () => {
    const refused = (run: string, rollout: string, message: RegExp) =>
      assert.rejects(storedFrames(place, run, rollout), (thrown) => {
        assert.ok(thrown instanceof UsageError);
        assert.match(thrown.message, message);
        return true;
      });
    await refused("run-2", "train.1.0.0", /^the tracer has no run run-2; hone status shows the runs$/);
    await refused("run-1", "train.9.9.9", /^nothing is stored under this name$/);
    await refused("run-1", "train.1.0.1", /^it is no longer kept$/);
    await refused("run-1", "train.1.0.2", /ended before its first turn, so there is nothing to show/);
    await refused("run-1", "train.1", /"train\.1" does not name a rollout; give it as the page does/);
    await refused("run-1", "train.1.0.3", /not the expected JSON/);
  });
});
