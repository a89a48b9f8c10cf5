/**
 * A small OTLP/HTTP receiver: it reads the protobuf requests on the wire, by field numbers of
 * opentelemetry/proto/trace/v1/trace.proto. Of requests in JSON it keeps path and headers.
 */

import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import { gunzipSync } from "node:zlib";

export interface ReceivedSpan {
  readonly service: string;
  /** Attributes of the resource; of an array, its bytes as text. */
  readonly resource: Readonly<Record<string, string | number | boolean>>;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string;
  readonly name: string;
  readonly kind: number;
  readonly attributes: Readonly<Record<string, string | number | boolean>>;
  readonly numLinks: number;
  readonly events: ReadonlyArray<{ name: string; attributes: Record<string, string | number | boolean> }>;
  readonly statusCode: number;
  readonly statusMessage: string;
}

export interface OtlpReceiver extends AsyncDisposable {
  readonly url: string;
  readonly spans: ReceivedSpan[];
  readonly paths: string[];
  /** The headers of each request, in the order of `paths`. */
  readonly headers: IncomingHttpHeaders[];
  numRequests(): number;
}

/** @param options.isSilent never answers: a receiver that hangs. */
export async function startOtlpReceiver(
  options: { readonly isSilent?: boolean } = {},
): Promise<OtlpReceiver> {
  const spans: ReceivedSpan[] = [];
  const paths: string[] = [];
  const headers: IncomingHttpHeaders[] = [];
  const open = new Set<ServerResponse>();
  const server = createServer(async (request, response) => {
    paths.push(request.url ?? "");
    headers.push(request.headers);
    if (options.isSilent === true) {
      open.add(response);
      return;
    }
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const sent = Buffer.concat(chunks);
    const body = request.headers["content-encoding"] === "gzip" ? gunzipSync(sent) : sent;
    if (request.headers["content-type"] === "application/x-protobuf") spans.push(...readRequest(body));
    response.writeHead(200, { "content-type": "application/x-protobuf" }).end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  const port = address !== null && typeof address === "object" ? address.port : 0;
  return {
    url: `http://127.0.0.1:${port}`,
    spans,
    paths,
    headers,
    numRequests: () => paths.length,
    async [Symbol.asyncDispose]() {
      for (const response of open) response.destroy();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

interface Field {
  readonly number: number;
  readonly bytes: Buffer;
  readonly value: bigint;
}

function readFields(buffer: Buffer): Field[] {
  const fields: Field[] = [];
  let at = 0;
  const varint = () => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = buffer[at++]!;
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  };
  const nothing = Buffer.alloc(0);
  while (at < buffer.length) {
    const tag = Number(varint());
    const number = tag >> 3;
    switch (tag & 7) {
      case 0:
        fields.push({ number, bytes: nothing, value: varint() });
        break;
      case 1:
        fields.push({ number, bytes: buffer.subarray(at, at + 8), value: buffer.readBigUInt64LE(at) });
        at += 8;
        break;
      case 2: {
        const length = Number(varint());
        fields.push({ number, bytes: buffer.subarray(at, at + length), value: 0n });
        at += length;
        break;
      }
      case 5:
        fields.push({ number, bytes: buffer.subarray(at, at + 4), value: BigInt(buffer.readUInt32LE(at)) });
        at += 4;
        break;
      default:
        throw new Error(`wire type ${tag & 7} at ${at}`);
    }
  }
  return fields;
}

function all(buffer: Buffer, number: number): Buffer[] {
  return readFields(buffer)
    .filter((field) => field.number === number)
    .map((field) => field.bytes);
}

function readRequest(body: Buffer): ReceivedSpan[] {
  return all(body, 1).flatMap((resourceSpans) => {
    const [resource] = all(resourceSpans, 1);
    const attributes = readAttributes(all(resource ?? Buffer.alloc(0), 1));
    return all(resourceSpans, 2)
      .flatMap((scopeSpans) => all(scopeSpans, 2))
      .map((span) => readSpan(attributes, span));
  });
}

function readSpan(resource: ReceivedSpan["resource"], span: Buffer): ReceivedSpan {
  const fields = readFields(span);
  const first = (number: number) => fields.find((field) => field.number === number);
  const many = (number: number) =>
    fields.filter((field) => field.number === number).map((field) => field.bytes);
  const status = first(15)?.bytes ?? Buffer.alloc(0);
  const statusFields = readFields(status);
  return {
    service: String(resource["service.name"] ?? ""),
    resource,
    traceId: first(1)?.bytes.toString("hex") ?? "",
    spanId: first(2)?.bytes.toString("hex") ?? "",
    parentSpanId: first(4)?.bytes.toString("hex") ?? "",
    name: first(5)?.bytes.toString() ?? "",
    kind: Number(first(6)?.value ?? 0n),
    attributes: readAttributes(many(9)),
    events: many(11).map((event) => ({
      name: all(event, 2)[0]?.toString() ?? "",
      attributes: readAttributes(all(event, 3)),
    })),
    numLinks: many(13).length,
    statusCode: Number(statusFields.find((field) => field.number === 3)?.value ?? 0n),
    statusMessage: statusFields.find((field) => field.number === 2)?.bytes.toString() ?? "",
  };
}

function readAttributes(pairs: readonly Buffer[]): Record<string, string | number | boolean> {
  return Object.fromEntries(
    pairs.map((pair) => {
      const key = all(pair, 1)[0]?.toString() ?? "";
      const [value] = readFields(all(pair, 2)[0] ?? Buffer.alloc(0));
      return [key, value === undefined ? "" : readValue(value)];
    }),
  );
}

function readValue(field: Field): string | number | boolean {
  if (field.number === 2) return field.value === 1n;
  if (field.number === 3) return Number(BigInt.asIntN(64, field.value));
  if (field.number === 4) return field.bytes.readDoubleLE();
  return field.bytes.toString();
}
