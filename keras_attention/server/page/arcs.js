// The weights of one head as lines between two lists of tokens.

import { html, svg } from "./elements.js";
import { drawLegend, isTooLarge } from "./heat_map.js";
import { decimal, greatestOf } from "./numbers.js";
import { alongColumn, rove } from "./roving.js";

const HEIGHT = 28; // Of a token, as in inside.css.
const FAINTEST = 0.01; // Of the greatest weight. Fainter lines are not seen.

/**
 * Draws a reading's weights as lines: rows on the left, columns on the right.
 * Choose a row to see its lines alone.
 */
export function drawArcs(parent, { rows, columns, weights }) {
  if (isTooLarge(parent, { rows, columns }, "lines")) {
    return;
  }
  const greatest = greatestOf(weights);
  const height = HEIGHT * Math.max(rows.length, columns.length);
  const picture = svg("svg", {
    viewBox: `0 0 100 ${height}`, preserveAspectRatio: "none",
    "aria-hidden": true,
  });
  // As an attribute it would lose to the height of every svg in the CSS.
  picture.style.height = `${height}px`;
  const looked = columns.map(({ text }) => html("span", {}, text));
  const buttons = rows.map(({ text }) =>
    html("button", { type: "button", "aria-pressed": false }, text));
  const arcs = html("div", { class: "arcs" },
    html("ol", { "aria-label": "Rows" },
      ...buttons.map((button) => html("li", {}, button))),
    picture,
    html("ol", { "aria-label": "Columns" },
      ...looked.map((node) => html("li", {}, node))));

  function draw(chosen) {
    const lines = weights.flatMap((row, i) =>
      row.flatMap((weight, j) =>
        (chosen !== null && i !== chosen) || weight < FAINTEST * greatest
          ? []
          : [svg("line", {
            x1: 0, y1: HEIGHT * (i + 0.5), x2: 100, y2: HEIGHT * (j + 0.5),
            "stroke-opacity": weight / greatest,
          })]));
    picture.replaceChildren(...lines);
    looked.forEach((node, j) => {
      const share = chosen === null ? 0 : weights[chosen][j] / greatest;
      node.style.setProperty("--weight", share);
      node.title = chosen === null ? "" : decimal(weights[chosen][j]);
    });
    buttons.forEach((button, i) =>
      button.setAttribute("aria-pressed", i === chosen));
  }
  let chosen = null;
  buttons.forEach((button, i) =>
    button.addEventListener("click", () => {
      chosen = chosen === i ? null : i;
      draw(chosen);
    }));
  rove(buttons, alongColumn(buttons));
  draw(null);
  parent.replaceChildren(arcs,
    drawLegend(greatest, "Choose a token on the left for its lines alone."));
}
