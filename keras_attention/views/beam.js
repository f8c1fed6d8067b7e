// The beam as a tree. One walks it by clicks or by the arrow keys.

import { html, svg } from "./elements.js";
import { decimal } from "./numbers.js";
import { rove } from "./roving.js";
import { quoted, textOf, units } from "./tokens.js";

// A node's room and size, as in inside.css.
const NODE_COLUMN = 104;
const NODE_ROW = 36;
const NODE_WIDTH = 84;
const NODE_HEIGHT = 28;
const BEAM_HINT =
  "A column has the tokens of a step. A thick frame ends a text. " +
  "Choose a token, or go by the arrow keys.";
const SIDEWAYS = " Scroll sideways to see the other steps.";

/**
 * Shows the beam: a column a step, and a line from each token to its next.
 *
 * @param parent keeps what it holds, such as a heading
 * @param tree nodes, each after its parent
 */
export function showBeam(parent, tree) {
  if (!parent.querySelector(".tree")) {
    parent.append(
      html("p", { class: "note hint" }),
      html("p", { class: "way", "aria-live": "polite" }),
      html("div", {
        class: "scroll tree", role: "group", "aria-label": "The beam as a tree",
      }));
  }
  const nodes = inColumns(tree);
  const depth = Math.max(...nodes.map((node) => node.depth)) + 1;
  const size = {
    width: NODE_COLUMN * depth,
    height: NODE_ROW * (Math.max(...nodes.map((node) => node.rank)) + 1),
  };
  const lines = nodes.map((node) => drawLine(node, nodes[node.parent]));
  const buttons = nodes.map((node, place) => {
    const { text, isMark } = units([node.token])[0];
    const name = text || "a space";
    const button = html("button", {
      type: "button", title: name, "aria-pressed": false,
      class: node.score === null ? "" : "finished",
    }, name);
    button.classList.toggle("mark", isMark);
    button.style.left = `${NODE_COLUMN * node.depth}px`;
    button.style.top = `${NODE_ROW * node.rank}px`;
    button.addEventListener("click", () => button.focus());
    button.addEventListener("focus", () => choose(place));
    return button;
  });
  function choose(place) {
    const way = wayTo(nodes, place);
    buttons.forEach((button, i) => {
      button.classList.toggle("on", way.includes(i));
      button.setAttribute("aria-pressed", i === place);
      lines[i].classList.toggle("on", way.includes(i));
    });
    parent.querySelector(".way").textContent =
      inWords(way.map((i) => nodes[i]));
  }
  const ends = nodes.filter((node) => node.score !== null)
    .sort((one, other) => other.score - one.score);
  const start = Math.max(nodes.indexOf(ends[0]), 0);
  const picture = svg("svg", { ...size, "aria-hidden": true }, ...lines);
  const box = html("div", { class: "nodes" }, picture, ...buttons);
  box.style.width = `${size.width}px`;
  box.style.height = `${size.height}px`;
  const pane = parent.querySelector(".tree");
  pane.replaceChildren(box);
  parent.querySelector(".hint").textContent = BEAM_HINT +
    (pane.scrollWidth > pane.clientWidth ? SIDEWAYS : "");
  rove(buttons, (key, place) => {
    const { depth: column, rank, parent: before } = nodes[place];
    const at = (other) => nodes.findIndex(
      (node) => node.depth === column && node.rank === other);
    return {
      ArrowLeft: before,
      ArrowRight: nodes.findIndex((node) => node.parent === place),
      ArrowUp: at(rank - 1),
      ArrowDown: at(rank + 1),
      Home: 0,
      End: start,
    }[key];
  }, start);
  choose(start);
}

/** Each node with its column, `depth`, and its place there, `rank`. */
function inColumns(tree) {
  const nodes = [];
  const used = [];
  for (const node of tree) {
    const depth = node.parent === null ? 0 : nodes[node.parent].depth + 1;
    used[depth] = (used[depth] ?? -1) + 1;
    nodes.push({ ...node, depth, rank: used[depth] });
  }
  return nodes;
}

function drawLine(node, before) {
  if (!before) {
    return svg("line");
  }
  return svg("line", {
    x1: NODE_COLUMN * before.depth + NODE_WIDTH,
    y1: NODE_ROW * before.rank + NODE_HEIGHT / 2,
    x2: NODE_COLUMN * node.depth,
    y2: NODE_ROW * node.rank + NODE_HEIGHT / 2,
  });
}

/** The places from the first token to this one. */
function wayTo(nodes, place) {
  const { parent } = nodes[place];
  return parent === null ? [place] : [...wayTo(nodes, parent), place];
}

function inWords(way) {
  const { logProbability, score } = way.at(-1);
  const isEnded = score !== null;
  const tokens = way.map(({ token }) => token);
  const text = textOf(isEnded ? tokens.slice(0, -1) : tokens).trim();
  const end = isEnded ? `. It ends with the score ${decimal(score)}` : "";
  return `${quoted(text)}: log-probability ${decimal(logProbability)}${end}.`;
}
