/** Keys that come twice in one object of a JSON text, of which the parser keeps the last in silence. */

/**
 * Finds the first one in a text that is known to be sound JSON.
 * @returns the key and where it stands again; undefined when every key comes once.
 */
export function findDuplicateKey(json: string): { readonly key: string; readonly at: number } | undefined {
  // Of each object or list that is open: its keys so far; lists have none.
  const open: (Set<string> | undefined)[] = [];
  for (let at = 0; at < json.length; at++) {
    const character = json[at];
    if (character === "{") open.push(new Set());
    else if (character === "[") open.push(undefined);
    else if (character === "}" || character === "]") open.pop();
    else if (character === '"') {
      const end = endOfString(json, at);
      const keys = open.at(-1);
      if (keys !== undefined && isKey(json, end)) {
        const key = JSON.parse(json.slice(at, end)) as string;
        if (keys.has(key)) return { key, at };
        keys.add(key);
      }
      at = end - 1;
    }
  }
  return undefined;
}

/** Position behind the closing quote. */
function endOfString(json: string, begin: number): number {
  for (let at = begin + 1; ; ) {
    const quote = json.indexOf('"', at);
    let slashes = 0;
    while (json[quote - 1 - slashes] === "\\") slashes++;
    at = quote + 1;
    if (slashes % 2 === 0) return at;
  }
}

function isKey(json: string, from: number): boolean {
  let at = from;
  while (/\s/.test(json[at] ?? "")) at++;
  return json[at] === ":";
}
