"use strict";
// What all four pages use. `data` is what `python docs/play_pages.py` wrote.

const data = JSON.parse(document.getElementById("data").textContent);
const SVG = "http://www.w3.org/2000/svg";
const find = (id) => document.getElementById(id);

/** An element of HTML with attributes and children (nodes or texts). */
function html(name, attributes = {}, ...children) {
  return filled(document.createElement(name), attributes, children);
}

/** The same of SVG. */
function svg(name, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, name), attributes, children);
}

function filled(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
}

/** A number with a true minus. */
function decimal(value, decimals = 2) {
  if (!Number.isFinite(value)) return value < 0 ? "−∞" : "∞";
  return value.toFixed(decimals).replace("-", "−");
}

const percent = (share, decimals = 0) => `${decimal(100 * share, decimals)}\u00a0%`;
const sum = (values) => values.reduce((one, other) => one + other, 0);
const dot = (x, y) => x.reduce((total, value, i) => total + value * y[i], 0);
const range = (size) => [...Array(size).keys()];

/** exp(x_s) / sum_r exp(x_r). What is -Infinity gets 0; so does all, alone. */
function softmax(scores) {
  const most = Math.max(...scores);
  if (most === -Infinity) return scores.map(() => 0);
  const powers = scores.map((score) => Math.exp(score - most));
  const total = sum(powers);
  return powers.map((power) => power / total);
}

/** Numbers that are kept as 16 bits each: {shape, values}. */
function unpacked({ shape, halves }) {
  const bytes = Uint8Array.from(atob(halves), (one) => one.charCodeAt(0));
  const view = new DataView(bytes.buffer);
  const values = range(bytes.length / 2).map((place) => {
    const bits = view.getUint16(2 * place, true);
    const exponent = (bits >> 10) & 31, fraction = bits & 1023;
    const size = exponent ? (1 + fraction / 1024) * 2 ** (exponent - 15)
      : fraction * 2 ** -24;
    return bits & 32768 ? -size : size;
  });
  return { shape, values };
}

/** The same as a list of rows. */
function rowsOf(packed) {
  const { shape: [count, width], values } = unpacked(packed);
  return range(count).map((row) =>
    values.slice(row * width, (row + 1) * width));
}

/** The blue of a share between 0 and 1. */
const blue = (share) => "color-mix(in srgb, var(--glow) "
  + `${(100 * Math.min(1, Math.max(0, share))).toFixed(2)}%, var(--paper))`;

/** What the blues mean. */
function legend(low, high) {
  return html("p", { class: "legend note" }, html("span", {}, low),
    html("i", { "aria-hidden": true }), html("span", {}, high));
}

/** Gives a `<select>` its options; their values are their places. */
function fillSelect(select, names) {
  select.replaceChildren(...names.map((name, value) =>
    html("option", { value }, name)));
}

/** One stop of the tab key; `next` says where a key leads. */
function rove(buttons, next, start = 0) {
  buttons.forEach((button, place) => {
    button.tabIndex = place === start ? 0 : -1;
    button.addEventListener("focus", () => buttons.forEach((other) => {
      other.tabIndex = other === button ? 0 : -1;
    }));
    button.addEventListener("keydown", (event) => {
      const to = buttons[next(event.key, place)];
      if (to) {
        event.preventDefault();
        to.focus();
      }
    });
  });
}

/** The keys of buttons below each other. */
const alongColumn = (size) => (key, place) => ({
  ArrowUp: place - 1, ArrowDown: place + 1, Home: 0, End: size - 1,
})[key];

/**
 * A line chart.
 *
 * @param curves lists of [x, y]; the second is dashed
 * @param at an x that is marked
 */
function lineChart(curves, { low, high, xs, at, label, xName }) {
  const [width, height, left, bottom] = [320, 170, 44, 34];
  const [first, last] = xs;
  const x = (value) =>
    left + (width - left - 8) * (value - first) / (last - first);
  const y = (value) =>
    height - bottom - (height - bottom - 12) * (value - low) / (high - low);
  const path = (curve) => curve.map(([one, other], i) =>
    `${i ? "L" : "M"}${x(one).toFixed(1)} ${y(other).toFixed(1)}`).join("");
  const ticks = [low, (low + high) / 2, high];
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`,
    width, height, role: "img", "aria-label": label },
  svg("path", { class: "axis",
    d: `M${left} 8V${height - bottom}H${width - 8}` }),
  ...ticks.map((tick) => svg("text", { x: left - 4, y: y(tick) + 4,
    "text-anchor": "end", class: "quiet" }, decimal(tick, 1))),
  ...[first, last].map((tick) => svg("text", { x: x(tick),
    y: height - bottom + 16, "text-anchor": tick === first ? "start" : "end",
    class: "quiet" }, String(tick))),
  svg("text", { x: (left + width) / 2, y: height - 4, class: "quiet",
    "text-anchor": "middle" }, xName),
  ...curves.map((curve, i) => svg("path", { d: path(curve),
    class: i ? "curve second" : "curve" })));
  if (at !== undefined) {
    picture.append(svg("line", { class: "mark", x1: x(at), x2: x(at), y1: 8,
      y2: height - bottom }));
  }
  return picture;
}

/** A select or a slider that says what it stands at, and calls `draw`. */
function control(id, draw, told) {
  const node = find(id);
  const changed = () => {
    const text = told?.(Number(node.value));
    if (text) {
      find(`${id}-told`).textContent = text;
      node.setAttribute("aria-valuetext", text);
    }
    draw();
  };
  node.addEventListener("input", changed);
  return changed;
}

function showOrigin() {
  const { model, data: texts, seed, command, commit } = data.origin;
  find("origin").append(
    `Model: ${model}. Data: ${texts}. Seed: ${seed}. Package at commit `
    + `${commit}. Made by `, html("code", {}, command),
    ". All else is computed in this page, which asks no server.");
}
showOrigin();
