"use strict";

const TEMPERATURES = [0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1,
  1.25, 1.5, 2, 2.5, 3, 4, 5, 5.66, 7, 10, 20, 50];
// The texts of the rows and the columns of each kind of attention.
const AXES = { encoder: ["source", "source"], decoder: ["target", "target"],
  cross: ["target", "source"] };
let chosen = 2;

/** Whether row t may look at column s. */
function mayLook(t, s, numColumns, { causal, padding }) {
  return !(causal && s > t) && !(padding && s >= numColumns - data.numPads);
}

/** The weights of a head [T, S], with some choices. */
function weightsOf(head, choices) {
  const { query, key } = head;
  const factor = (choices.scale ? Math.sqrt(query[0].length) : 1)
    * choices.temperature;
  return query.map((q, t) => softmax(key.map((k, s) =>
    mayLook(t, s, key.length, choices) ? dot(q, k) / factor : -Infinity)));
}

/** -sum p log2 p. */
function entropy(weights) {
  return sum(weights.map((p) => (p > 0 ? -p * Math.log2(p) : 0)));
}

function choices() {
  return {
    temperature: TEMPERATURES[find("temperature").value],
    scale: find("scale").checked,
    causal: find("causal").checked && !find("causal").disabled,
    padding: find("padding").checked,
  };
}

function draw() {
  const head = data.heads[find("head").value];
  const [rows, columns] = AXES[head.attention].map((name) => data.texts[name]);
  const real = rows.slice(0, -data.numPads);
  const now = choices();
  const weights = weightsOf(head, now);
    const top = html("tr", {}, html("td", { class: "corner" }),
    ...columns.map((token) => html("th", { scope: "col", class: "turned" },
      html("span", {}, token))),
    html("th", { scope: "col", class: "turned" },
      html("span", {}, "entropy, bits")));
  chosen = Math.min(chosen, real.length - 1);
  const buttons = real.map((token, t) => {
    const button = html("button", { type: "button",
      "aria-pressed": t === chosen }, token);
    button.addEventListener("click", () => {
      chosen = t;
      draw();
      find("weights").querySelectorAll("button")[t].focus();
    });
    return button;
  });
  const lines = real.map((token, t) => html("tr",
    { class: t === chosen ? "chosen" : "" },
    html("th", { scope: "row" }, buttons[t]),
    ...columns.map((_, s) => cell(weights[t], s,
      mayLook(t, s, columns.length, now))),
    html("td", { class: "entropy" }, decimal(entropy(weights[t])))));
  find("weights").replaceChildren(html("thead", {}, top),
    html("tbody", {}, ...lines));
  rove(buttons, alongColumn(buttons.length), chosen);
  find("says").textContent = inWords(real, columns, weights[chosen], now);
}

function cell(row, s, isSeen) {
  if (!isSeen) return html("td", { class: "off" }, "–");
  const isMost = row[s] === Math.max(...row);
  const node = html("td", { class: isMost ? "most" : "" }, decimal(row[s]));
  node.style.background = blue(row[s]);
  return node;
}

function inWords(rows, columns, row, now) {
  const seen = columns.filter((_, s) =>
    mayLook(chosen, s, columns.length, now)).length;
  const best = row.indexOf(Math.max(...row));
  const isPad = best >= columns.length - data.numPads;
  const pads = sum(row.slice(-data.numPads));
  return `“${rows[chosen]}” may look at ${seen} `
    + `${seen === 1 ? "token" : "tokens"}. The greatest weight, `
    + `${percent(row[best])}, is on ${isPad ? "a PAD" : `“${columns[best]}”`}. `
    + `All PAD together have ${percent(pads)}. The entropy is ${decimal(entropy(row))} of at most `
    + `${decimal(Math.log2(seen))} bits.`;
}

const temperatureChanged = control("temperature", draw,
  (value) => String(TEMPERATURES[value]));

/** The masks of a head as it was trained. */
function reset() {
  const head = data.heads[find("head").value];
  find("temperature").value = TEMPERATURES.indexOf(1);
  find("scale").checked = find("padding").checked = true;
  // Rows and columns of two texts have no order between them.
  find("causal").disabled = head.attention === "cross";
  find("causal").checked = head.attention === "decoder";
  temperatureChanged();
}

find("temperature").max = TEMPERATURES.length - 1;
find("sentence").textContent = data.sentence;
find("translation").textContent = data.translation;
find("root").textContent = `√${data.heads[0].query[0].length}`;
find("legend").append(legend("0", "1: a weight, linear. A frame and bold "
  + "digits mark the greatest of a row."));
fillSelect(find("head"), data.heads.map(({ attention, layer, head }) =>
  `${attention}, layer ${layer}, head ${head}`));
find("head").addEventListener("input", reset);
for (const id of ["scale", "causal", "padding"]) {
  find(id).addEventListener("input", draw);
}
find("reset").addEventListener("click", reset);
reset();
