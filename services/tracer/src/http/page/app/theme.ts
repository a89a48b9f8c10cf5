/** The choice of light colours, dark colours, or those of the system; it is stored in this browser. */

import { replace, s } from "./dom.ts";

const KEY = "hone-theme";
const ORDER = ["system", "light", "dark"] as const;
type Theme = (typeof ORDER)[number];
const ICONS: Readonly<Record<Theme, string>> = {
  system: "M4 5h16v11H4z M9 20h6 M12 16v4",
  light:
    "M12 7.5a4.5 4.5 0 1 0 0 9a4.5 4.5 0 1 0 0-9z M12 2v2 M12 20v2 M2 12h2 M20 12h2 M4.9 4.9l1.4 1.4 M17.7 17.7l1.4 1.4 M4.9 19.1l1.4-1.4 M17.7 6.3l1.4-1.4",
  dark: "M20 14.5A8.5 8.5 0 0 1 9.5 4a8.5 8.5 0 1 0 10.5 10.5z",
};

function stored(): Theme {
  try {
    const value = localStorage.getItem(KEY);
    return ORDER.find((theme) => theme === value) ?? "system";
  } catch {
    // The browser may forbid storage; the choice then lasts until the page is closed.
    return "system";
  }
}

function keep(theme: Theme): void {
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // The browser forbids storage, as above.
    return;
  }
}

/** Applies the stored choice, and makes the button switch to the next of the three. */
export function setUpTheme(button: HTMLElement): void {
  let theme = stored();
  const apply = () => {
    if (theme === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    const label = `Colours: ${theme}`;
    button.setAttribute("aria-label", label);
    button.title = label;
    replace(
      button,
      s(
        "svg",
        { viewBox: "0 0 24 24", width: 18, height: 18, "aria-hidden": "true" },
        s("path", {
          d: ICONS[theme],
          fill: "none",
          stroke: "currentColor",
          "stroke-width": 1.8,
          "stroke-linecap": "round",
          "stroke-linejoin": "round",
        }),
      ),
    );
  };
  button.addEventListener("click", () => {
    theme = ORDER[(ORDER.indexOf(theme) + 1) % ORDER.length] ?? "system";
    keep(theme);
    apply();
  });
  apply();
}
