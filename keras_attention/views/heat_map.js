// The weights as a picture, and the same as a table.

import { html, scrolled, svg } from "./elements.js";
import { decimal } from "./numbers.js";
import { rowTable } from "./row_table.js";
import { quoted } from "./tokens.js";

const CELL = 26;
const GAP = 8;
const LONGEST = 24;
// A picture may shrink so far to fit a small window. Then it scrolls.
const SMALLEST = 0.7;
// A browser takes seconds to draw more.
const MOST_CELLS = 5000;
const TOO_LARGE =
  "The text is too long for a heat map. Its rows are below, one at a time.";

/**
 * Draws a reading's weights: rows down the side, columns along the top. Of a
 * large one, it shows a row at a time as a table.
 *
 * @returns an object whose `mark(row)` points out a row, or none for null.
 */
export function drawHeatMap(parent, reading) {
  const { rows, columns } = reading;
  if (!rows.length || !columns.length) {
    parent.replaceChildren();
    return { mark() {} };
  }
  const isOpen = parent.querySelector("details")?.open ?? false;
  if (isTooLarge(reading)) {
    const { node, mark } = rowTable(reading, isOpen);
    parent.replaceChildren(html("p", { class: "note" }, TOO_LARGE), node);
    return { mark };
  }
  const most = Math.max(...reading.weights.flat());
  const lines = rows.map((row, i) => drawRow(row, i, reading, most));
  const frame = svg("rect", {
    x: -2, width: columns.length * CELL + 3, height: CELL + 3, rx: 4,
    class: "frame",
  });
  const picture = svg(
    "svg",
    { role: "img", "aria-label": "Heat map. The table below has its numbers." },
    ...columns.map(drawColumnName),
    ...lines,
    frame,
  );
  const pane = scrolled("Heat map", picture);
  const legend = drawLegend(most);
  parent.replaceChildren(pane, legend, drawTable(reading));
  parent.querySelector("details").open = isOpen;
  fit(picture);
  if (pane.scrollWidth > pane.clientWidth) {
    legend.lastChild.append(" Scroll sideways to see the other columns.");
  }
  return {
    mark(marked) {
      lines.forEach((line, row) => {
        line.classList.toggle("marked", row === marked);
      });
      frame.classList.toggle("marked", marked !== null);
      frame.setAttribute("y", (marked ?? 0) * CELL - 2);
    },
  };
}

/** Whether a reading is too large to be drawn. */
export function isTooLarge({ rows, columns }) {
  return rows.length * columns.length > MOST_CELLS;
}

/** What the blues mean: from 0 to the largest weight, which is `most`. */
export function drawLegend(most) {
  return html("p", { class: "note legend" }, html("span", {}, "0"),
    html("i", { "aria-hidden": true }),
    html("span", {}, `${decimal(most)}, the largest weight. Linear.`));
}

function drawColumnName(unit, column) {
  const x = (column + 0.5) * CELL;
  const transform = `translate(${x + 4} ${-GAP}) rotate(-60)`;
  return svg("text", { transform, class: markClass(unit) }, cut(unit.text));
}

function drawRow(unit, row, { columns, weights }, most) {
  const y = row * CELL;
  const name = svg(
    "text",
    { x: -GAP, y: y + CELL / 2, class: `row-name ${markClass(unit)}` },
    cut(unit.text),
  );
  const cells = columns.map((column, j) => {
    const weight = weights[row][j];
    const rect = { x: j * CELL, y, width: CELL - 1, height: CELL - 1, rx: 3 };
    return svg(
      "g",
      {},
      svg("rect", { ...rect, class: "paper" }),
      svg("rect", {
        ...rect, class: "weight", "fill-opacity": weight / most || 0,
      }),
      svg("title", {}, title(unit, column, weight)),
    );
  });
  return svg("g", {}, name, ...cells);
}

function title(row, column, weight) {
  return `${quoted(row.text)}, ${quoted(column.text)}: ${decimal(weight)}`;
}

function markClass(unit) {
  return unit.isMark ? "mark" : "";
}

function cut(text) {
  const letters = [...text]; // An emoji stays whole.
  return letters.length > LONGEST
    ? `${letters.slice(0, LONGEST - 1).join("")}…`
    : text;
}

/** Makes a picture as large as what is drawn in it, and a bold name. */
function fit(picture) {
  const { x, y, width, height } = picture.getBBox();
  const box = [x - 8, y - 2, width + 10, height + 4];
  picture.setAttribute("viewBox", box.join(" "));
  picture.setAttribute("width", box[2]);
  picture.setAttribute("height", box[3]);
  picture.style.minWidth = `${SMALLEST * box[2]}px`;
}

/** What the numbers are. Some models' rows are no shares of 1. */
function captionOf({ columns, weights }) {
  const sums = weights.map((row) =>
    columns.reduce((sum, _, j) => sum + Number(row[j]), 0),
  );
  // As exact as the decimals of the table.
  return sums.every((sum) => Math.abs(sum - 1) < 0.005)
    ? "Attention weights. Each row sums to 1."
    : "Attention weights. A row need not sum to 1.";
}

function drawTable(reading) {
  const { rows, columns, weights } = reading;
  const head = columns.map(({ text }) => html("th", { scope: "col" }, text));
  const body = rows.map(({ text }, i) =>
    html(
      "tr",
      {},
      html("th", { scope: "row" }, text),
      ...columns.map((_, j) => html("td", {}, decimal(weights[i][j]))),
    ),
  );
  const table = html(
    "table",
    {},
    html("caption", {}, captionOf(reading)),
    html("thead", {}, html("tr", {}, html("td"), ...head)),
    html("tbody", {}, ...body),
  );
  return html(
    "details",
    {},
    html("summary", {}, "The same as a table"),
    scrolled("Table", table),
  );
}
