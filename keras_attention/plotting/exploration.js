// The page of `explore`: the views of what the data of the page hold.

import { setLine, showLine } from "../views/attention.js";
import { showBeam } from "../views/beam.js";
import { shade, showGiven, viewChoices } from "../views/choices.js";
import { html } from "../views/elements.js";
import { groupOf } from "../views/groups.js";
import { viewMaps } from "../views/map_viewer.js";
import { units, unitsFrom } from "../views/tokens.js";

const data = JSON.parse(document.getElementById("data").textContent);
const part = (id) => document.getElementById(id);

/** Each map with its weights as [layers, heads, rows, columns]. */
function unpacked({ weights, greatest, layers, heads, rows, columns }) {
  const bytes = Uint8Array.from(atob(weights), (c) => c.charCodeAt(0));
  const values = new Uint16Array(bytes.buffer);
  let place = 0;
  const filled = (count, fill) => Array.from({ length: count }, fill);
  return filled(layers, () => filled(heads, () => filled(rows.length, () =>
    filled(columns.length, () => (values[place++] / 65535) * greatest))));
}

function groups() {
  const weights = Object.fromEntries(
    data.maps.map((map) => [map.name, unpacked(map)]));
  const columnsOf = (name) =>
    data.maps.find((map) => map.name === name)?.axes[1];
  return data.maps
    .filter(({ rows, columns }) => rows.length && columns.length)
    .map(({ name, axes, rows, columns }) => groupOf({
      name,
      layers: weights[name],
      levels: ["layers", "heads"],
      axes,
      names: [rows, columns],
      encoder: columnsOf("encoder") === axes[1] ? weights.encoder : null,
    }));
}

/** The tokens that are read, each text as a line. */
function showRead() {
  const lines = [["Read", data.source_tokens],
    ["Read beside it", data.pair_tokens]];
  for (const [title, tokens] of lines.filter(([, { length }]) => length)) {
    const line = html("p", { class: "columns", dir: "auto" });
    const found = units(tokens);
    setLine(line, found.map(({ isMark }) =>
      html("span", { class: isMark ? "unit mark" : "unit" })), found);
    part("texts").append(html("p", { class: "note" }, title), line);
  }
}

/** The prompt; and what is written, each token with its choices; or a label. */
function showWritten() {
  const isText = data.input_tokens.length > 0;
  const { num_given: numGiven, target_tokens: tokens } = data;
  const seen = {
    tokens,
    numGiven,
    probabilities: data.probabilities,
    best: data.best.map((step) =>
      step.map(([token, probability]) => ({ token, probability }))),
  };
  if (numGiven) {
    const prompt = html("p", { class: "columns", dir: "auto", id: "prompted" });
    showGiven(prompt, seen);
    part("texts").append(html("p", { class: "note" }, "Given"), prompt);
  }
  const choices = html("div", { class: "choice" });
  const view = viewChoices(choices, Infinity, null, isText);
  const line = html("div", {
    class: "rows large", role: "group", dir: "auto",
    "aria-label": "Tokens. Arrow keys move.",
  });
  const rows = unitsFrom(numGiven, tokens);
  const buttons = showLine(line, rows);
  view.update(seen, tokens.length - 1);
  shade(buttons, rows, seen, view.open);
  part("texts").append(
    html("p", { class: "note" }, isText ? "Written" : "The label"), line,
    html("p", { class: "note legend glows" }, html("span", {}, "0 %"),
      html("i", { "aria-hidden": true }),
      html("span", {}, "100 %: how probable a " + (isText ? "token" : "label") +
        " is. Linear.")),
    choices);
  if (rows.length) {
    view.open(numGiven);
  }
}

showRead();
showWritten();
viewMaps(part("looked"))(groups());
if (data.tree.length) {
  part("beam").hidden = false;
  showBeam(part("beam"), data.tree.map(
    ({ log_probability: logProbability, ...node }) =>
      ({ ...node, logProbability })));
}
