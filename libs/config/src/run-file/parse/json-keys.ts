/** Finds repeated keys in a JSON text, of which JSON.parse() silently keeps the last. */

/**
 * Finds the first key that is repeated within one object, in a text that is known to be valid JSON.
 * @returns the key and the position of its second occurrence; undefined if no key is repeated.
 */
export function findDuplicateKey(json: string): { readonly key: string; readonly at: number } | undefined {
  // The keys so far of each object that is open; undefined for an open list.
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

/** The position after the closing quote. */
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
