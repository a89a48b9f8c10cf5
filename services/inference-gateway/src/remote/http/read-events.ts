/** Reads the data of server-sent events (HTML standard, 9.2), as far as inference servers use them. */

/** Longest line of a valid answer; with cumulative chunks it holds a whole generation. */
const MAX_LINE_CHARACTERS = 64 * 2 ** 20;

/** @param bytes may be split anywhere, also within a character. */
export async function* readEvents(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = "";
  let data: string[] = [];
  for await (const part of bytes) {
    const lines = decoder.decode(part, { stream: true }).split("\n");
    lines[0] = rest + lines[0]!;
    rest = lines.pop()!;
    if (rest.length > MAX_LINE_CHARACTERS) {
      throw new Error(`a line of more than ${MAX_LINE_CHARACTERS} characters`);
    }
    for (const ended of lines) {
      const line = ended.endsWith("\r") ? ended.slice(0, -1) : ended;
      if (line === "") {
        if (data.length > 0) yield data.join("\n");
        data = [];
      } else if (line.startsWith("data:")) data.push(line.slice(line.startsWith("data: ") ? 6 : 5));
    }
  }
}
