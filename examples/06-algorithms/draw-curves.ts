/** Draws the curves of a comparison as an image in SVG. */

import { byResult, meanCurve, type NamedRuns, resultOf } from "./measured.ts";

const WIDTH = 860;
const HEIGHT = 420;
const PLOT = { left: 46, top: 14, right: 600, bottom: 372 };
const LINE_HEIGHT = 24;
const GRID = [0, 0.25, 0.5, 0.75, 1];
/** Okabe and Ito's colours, which differ for everyone; the second round is dashed. */
const COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"];

/** Held-out success by episodes, one line for the runs of each algorithm, named in the order of their results. */
export function drawCurves(measured: readonly NamedRuns[]): string {
  const curves = byResult(measured).map(([name, runs]) => ({
    name: `${name} ${resultOf(runs).toFixed(2)}`,
    points: meanCurve(runs),
  }));
  const most = Math.max(1, ...curves.flatMap(({ points }) => points.map(({ episodes }) => episodes)));
  const x = (episodes: number) => PLOT.left + (episodes / most) * (PLOT.right - PLOT.left);
  const y = (success: number) => PLOT.bottom - success * (PLOT.bottom - PLOT.top);
  const lines = curves.flatMap(({ name, points: curve }, index) => {
    const colour = COLOURS[index % COLOURS.length]!;
    const dash = index < COLOURS.length ? "" : ' stroke-dasharray="6 4"';
    const points = curve.map(({ episodes, success }) => `${round(x(episodes))},${round(y(success))}`);
    const at = PLOT.top + LINE_HEIGHT * (index + 0.5);
    return [
      `<polyline points="${points.join(" ")}" fill="none" stroke="${colour}" stroke-width="2"${dash}/>`,
      `<line x1="624" x2="652" y1="${at}" y2="${at}" stroke="${colour}" stroke-width="2"${dash}/>`,
      `<text x="660" y="${at + 4}">${name}</text>`,
    ];
  });
  const grid = GRID.flatMap((success) => [
    `<line x1="${PLOT.left}" x2="${PLOT.right}" y1="${y(success)}" y2="${y(success)}" stroke="#ddd"/>`,
    `<text x="${PLOT.left - 8}" y="${y(success) + 4}" text-anchor="end">${success}</text>`,
  ]);
  const middle = (PLOT.left + PLOT.right) / 2;
  return `${[
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="sans-serif" font-size="13">`,
    "<title>Held-out success of algorithms by episodes of training</title>",
    `<rect width="${WIDTH}" height="${HEIGHT}" fill="#fff"/>`,
    ...grid,
    ...lines,
    `<text x="${middle}" y="${PLOT.bottom + 34}" text-anchor="middle">held-out success by episodes of training, 0 to ${most.toLocaleString("en")}</text>`,
    "</svg>",
  ].join("\n")}\n`;
}

function round(value: number): string {
  return value.toFixed(1);
}
