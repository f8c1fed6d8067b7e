"use strict";

const [COLUMN, ROW, LEFT, TOP] = [52, 44, 44, 30];
const SIZE = [44, 28];
let forced = [];
let current = 0;

/** log(exp(x) + exp(y)). */
function logAdd(x, y) {
  const most = Math.max(x, y);
  return most === -Infinity ? most
    : most + Math.log(Math.exp(x - most) + Math.exp(y - most));
}

/** Whether a path may pass node (j, i) and all the given ones. */
const fits = (j, i, nodes) => nodes.every(([b, a]) =>
  (j <= b && i <= a) || (j >= b && i >= a));

/**
 * log alpha(j, i) [S][T + 1], and the log of the sum over all paths.
 *
 * @param lattice token [S][T], blank [S][T + 1], as logarithms
 * @param nodes pairs [j, i] that each path must pass
 */
function forward({ token, blank }, nodes = []) {
  const alpha = blank.map((row) => row.map(() => -Infinity));
  blank.forEach((row, j) => row.forEach((_, i) => {
    if (!fits(j, i, nodes)) return;
    const passed = j ? alpha[j - 1][i] + blank[j - 1][i] : -Infinity;
    const written = i ? alpha[j][i - 1] + token[j][i - 1] : -Infinity;
    alpha[j][i] = j || i ? logAdd(passed, written) : 0;
  }));
  return { alpha, total: alpha.at(-1).at(-1) + blank.at(-1).at(-1) };
}

/** log beta(j, i): the rest of the text, from there. */
function backward({ token, blank }, nodes = []) {
  const beta = blank.map((row) => row.map(() => -Infinity));
  const [S, T] = [blank.length, blank[0].length - 1];
  for (let j = S - 1; j >= 0; j--) {
    for (let i = T; i >= 0; i--) {
      if (!fits(j, i, nodes)) continue;
      const end = j === S - 1 && i === T ? 0 : -Infinity;
      const on = blank[j][i] + (j < S - 1 ? beta[j + 1][i] : end);
      const down = i < T ? token[j][i] + beta[j][i + 1] : -Infinity;
      beta[j][i] = logAdd(on, down);
    }
  }
  return beta;
}

/** The number of paths that pass some nodes: all arcs count 1. */
function countPaths({ token, blank }, nodes) {
  const ones = { token: token.map((row) => row.map(() => 0)),
    blank: blank.map((row) => row.map(() => 0)) };
  return Math.round(Math.exp(forward(ones, nodes).total));
}

const word = () => data.words[find("word").value];
const lattice = () => word().lattices[find("time").value];
const xOf = (j) => LEFT + COLUMN * j;
const yOf = (i) => TOP + ROW * i;

function draw() {
  const now = lattice();
  const { letters, sounds } = word();
  const { alpha, total } = forward(now, forced);
  const beta = backward(now, forced);
  const showsSums = find("shown").value === "forward";
  const step = showsSums ? Number(find("step").value) : Infinity;
  find("step-label").hidden = !showsSums;
  const share = (log) => (total === -Infinity ? 0 : Math.exp(log - total));
  const values = alpha.map((row, j) => row.map((log, i) =>
    (showsSums ? Math.exp(log) : share(log + beta[j][i]))));
  const lines = showsSums ? [] : arcs(now, alpha, beta, share);
  const size = { width: xOf(letters.length), height: yOf(sounds.length + 1) };
  const picture = svg("svg", { ...size, "aria-hidden": true }, ...lines,
    ...letters.map((letter, j) => svg("text", { x: xOf(j) + SIZE[0] / 2,
      y: TOP - 14, "text-anchor": "middle" }, letter)),
    ...sounds.map((sound, i) => svg("text", { x: LEFT - 14,
      y: yOf(i) + (ROW + SIZE[1]) / 2 + 4, "text-anchor": "end" }, sound)));
  const hadFocus = document.activeElement?.closest("#nodes") !== null;
  const buttons = values.flatMap((row, j) => row.map((value, i) =>
    nodeButton(j, i, value, j + i <= step)));
  const box = find("nodes");
  box.style.width = `${size.width}px`;
  box.replaceChildren(picture, ...buttons);
  current = Math.min(current, buttons.length - 1);
  rove(buttons, alongLattice(sounds.length + 1), current);
  if (hadFocus) buttons[current].focus();
  tell(now, alpha, total, step);
}

/** Lines as thick as the share of the paths that take them. */
function arcs({ token, blank }, alpha, beta, share) {
  const [S, T] = [blank.length, blank[0].length - 1];
  return blank.flatMap((row, j) => row.flatMap((_, i) => {
    const from = [xOf(j) + SIZE[0] / 2, yOf(i) + SIZE[1] / 2];
    const found = [];
    if (j < S - 1) {
      found.push([from[0] + COLUMN, from[1],
        share(alpha[j][i] + blank[j][i] + beta[j + 1][i])]);
    }
    if (i < T) {
      found.push([from[0], from[1] + ROW,
        share(alpha[j][i] + token[j][i] + beta[j][i + 1])]);
    }
    return found.map(([x2, y2, p]) => svg("line", { x1: from[0], y1: from[1],
      x2, y2, class: "arc", "stroke-width": 1 + 9 * p }));
  }));
}

function nodeButton(j, i, value, isReached) {
  const { letters, sounds } = word();
  const isForced = forced.some(([b, a]) => b === j && a === i);
  const written = i ? sounds.slice(0, i).join(" ") : "nothing";
  const button = html("button", { type: "button", "aria-pressed": isForced,
    "aria-label": `At ${letters[j]}, ${written} written`
      + (isReached ? `: ${decimal(value, 3)}` : "") },
  isReached ? decimal(value) : "");
  button.style.left = `${xOf(j)}px`;
  button.style.top = `${yOf(i)}px`;
  if (!isForced && isReached) button.style.background = blue(value);
  button.addEventListener("click", () => {
    current = j * (sounds.length + 1) + i;
    forced = isForced ? forced.filter(([b, a]) => b !== j || a !== i)
      : [...forced, [j, i]];
    draw();
    find("nodes").querySelectorAll("button")[current].focus();
  });
  return button;
}

/** The keys in a lattice whose columns have `height` nodes. */
const alongLattice = (height) => (key, place) => {
  const i = place % height;
  return { ArrowLeft: place - height, ArrowRight: place + height,
    ArrowUp: i ? place - 1 : -1,
    ArrowDown: i < height - 1 ? place + 1 : -1 }[key];
};

function tell(now, alpha, total, step) {
  const { letters, sounds, isRight } = word();
  const whole = forward(now).total;
  const number = countPaths(now, forced);
  const said = `${letters.slice(0, -1).join("")} as ${sounds.join(" ")}`
    + (isRight ? "" : " (which is wrong)");
  const all = forced.length
    ? `${number} of ${countPaths(now, [])} paths pass the chosen nodes. They `
      + `have ${fine(Math.exp(total - whole))} of the sum.`
    : `${number} paths lead through the lattice.`;
  find("says").textContent = `${said}: its probability is `
    + `${fine(Math.exp(whole))}, log p = ${decimal(whole, 3)}. ${all}`;
  if (step === Infinity) {
    find("node").textContent = "";
    return;
  }
  const reached = sum(alpha.flatMap((row, j) =>
    row.filter((_, i) => j + i === step).map(Math.exp)));
  find("node").textContent = `The nodes that are reached after ${step} `
    + `${step === 1 ? "move" : "moves"} have sums that add up to `
    + `${fine(reached)}. Behind the last blank, the sum is `
    + `${fine(Math.exp(total))}.`;
}

/** A share in percent, with digits that say something. */
function fine(share) {
  if (share >= 0.01 || share === 0) return percent(share, 2);
  const value = 100 * share;
  if (value >= 1e-4) return `${Number(value.toPrecision(2))}\u00a0%`;
  const [digits, power] = value.toExponential(1).split("e-");
  const raised = [...power].map((digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[digit]).join("");
  return `${digits} · 10⁻${raised}\u00a0%`;
}

/** Another word or model: any path, and all sums. */
function begin() {
  forced = [];
  current = 0;
  find("step").max = word().letters.length - 1 + word().sounds.length;
  find("step").value = find("step").max;
  stepChanged();
}

fillSelect(find("word"), data.words.map(({ letters, sounds, isRight }) =>
  `${letters.slice(0, -1).join("")}: ${sounds.join(" ")}`
  + (isRight ? "" : " (wrong)")));
fillSelect(find("time"), data.times.map((time, i) =>
  `${time}: ${percent(data.right[i], 1)} of words right`));
find("time").value = 2;
find("legend").append(legend("0", "1: the number in a node, linear."));
const stepChanged = control("step", draw, (value) => `${value}`);
find("word").addEventListener("input", begin);
find("time").addEventListener("input", draw);
find("shown").addEventListener("input", draw);
find("reset").addEventListener("click", begin);
begin();
