/**
 * `fetch` for the hub: its token goes to the hub and nowhere else.
 *
 * Large files of the hub lie on other hosts, which the hub redirects to, and pages of its listings are named by the hub's
 * answers. Redirects are followed here, one by one, so that whatever an answer names, the token is sent to the origin that
 * the operator set (HF_ENDPOINT) alone.
 */

/** As the standard has it for browsers. */
const MAX_REDIRECTS = 20;
const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

/**
 * @param endpoint of the hub.
 * @throws {TypeError} as `fetch` does, also for a redirect that leads from https to http, or to nowhere.
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
      if (!isSafe) throw new TypeError(`${url.host} redirects to ${next.origin}, which is no https address`);
      url = next;
    }
    throw new TypeError(`${url.host} redirects without end`);
  };
}
