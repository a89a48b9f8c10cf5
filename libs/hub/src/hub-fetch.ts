/**
 * A `fetch` for the hub that sends its token only to the hub.
 *
 * The hub redirects to other hosts for large files, and its answers name the next pages of its listings. Redirects are followed
 * here one by one, so that the token is sent only to the origin that the operator set (HF_ENDPOINT), whatever an answer names.
 */

/** The limit in the Fetch standard. */
const MAX_REDIRECTS = 20;
const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

/**
 * @param endpoint address of the hub.
 * @throws {TypeError} as `fetch` does, and for a redirect from https to http or to an invalid address.
 */
export function hubFetch(endpoint: string): typeof fetch {
  const { origin } = new URL(endpoint);
  return async function fetchFromHub(input, init) {
    const request = new Request(input, init);
    let url = new URL(request.url);
    for (let redirects = 0; redirects <= MAX_REDIRECTS; redirects++) {
      const headers = new Headers(request.headers);
      if (url.origin !== origin) {
        headers.delete("authorization");
        headers.delete("cookie");
      }
      const { method, signal } = request;
      const response = await fetch(url, { method, headers, signal, redirect: "manual" });
      const location = response.headers.get("location");
      if (!REDIRECTS.has(response.status) || location === null) return response;
      await response.body?.cancel();
      const next = new URL(location, url);
      const isSafe = next.protocol === "https:" || next.protocol === url.protocol;
      if (!isSafe)
        throw new TypeError(`${url.host} redirects to ${next.origin}, which is not an https address`);
      url = next;
    }
    throw new TypeError(`${url.host} redirects without end`);
  };
}
