"use strict";

const HEADS = 2;
const readers = Object.fromEntries(Object.entries(data.kinds).map(
  ([kind, { weights }]) => [kind, Object.fromEntries(
    Object.entries(weights).map(([name, packed]) => [name,
      packed.shape.length === 2 ? rowsOf(packed) : unpacked(packed).values]))]));
let seed = 1;

/** Vaswani's sinusoids of a place: [width]. */
const sinusoids = (place, width) => range(width).map((i) => {
  const angle = place / 10000 ** ((i - (i % 2)) / width);
  return i % 2 ? Math.cos(angle) : Math.sin(angle);
});

/** RoPE: each pair of a vector turned by an angle of the place. */
function turned(vector, place) {
  const result = [...vector];
  for (let i = 0; i < vector.length; i += 2) {
    const angle = place / 10000 ** (i / vector.length);
    const [c, s] = [Math.cos(angle), Math.sin(angle)];
    result[i] = vector[i] * c - vector[i + 1] * s;
    result[i + 1] = vector[i] * s + vector[i + 1] * c;
  }
  return result;
}

/** ALiBi's slope of head h, counted from 0. */
const slope = (h) => 2 ** ((-8 * (h + 1)) / HEADS);

/** x W + b. */
function linear(x, kernel, bias) {
  const result = [...bias];
  x.forEach((value, i) => kernel[i].forEach((weight, j) => {
    result[j] += value * weight;
  }));
  return result;
}

function normalized(x, gain, shift) {
  const mean = sum(x) / x.length;
  const variance = sum(x.map((value) => (value - mean) ** 2)) / x.length;
  return x.map((value, i) =>
    (value - mean) / Math.sqrt(variance + 1e-6) * gain[i] + shift[i]);
}

const part = (vector, h) => {
  const size = vector.length / HEADS;
  return vector.slice(h * size, (h + 1) * size);
};

/** The row of Shaw's table for a word `back` places before. */
const rowOf = (table, back) => table[Math.max(0, (table.length - 1) / 2 - back)];

/**
 * A reader of one layer, as in chapter 13.
 *
 * @returns logits [T][10], and weights [heads][T] of lists of 1 ... T numbers
 */
function read(kind, ids, start = 0) {
  const w = readers[kind];
  const x = ids.map((id, t) => (kind === "sinusoids"
    ? w.words[id].map((value, i) =>
      value + sinusoids(start + t, w.words[id].length)[i])
    : w.words[id]));
  const seen = x.map((one) => normalized(one, w.lookGain, w.lookShift));
  const [q, k, v] = ["query", "key", "value"].map((name) =>
    seen.map((one) => linear(one, w[name], w[`${name}Bias`])));
  const heads = range(HEADS).map((h) => attend(kind, w, h, start,
    ...[q, k, v].map((rows) => rows.map((one) => part(one, h)))));
  const logits = x.map((one, t) => {
    const context = heads.flatMap(({ contexts }) => contexts[t]);
    const looked = linear(context, w.output, w.outputBias)
      .map((value, i) => value + one[i]);
    const wide = linear(normalized(looked, w.thinkGain, w.thinkShift), w.wide,
      w.wideBias).map((value) => Math.max(0, value));
    const thought = linear(wide, w.narrow, w.narrowBias)
      .map((value, i) => value + looked[i]);
    return linear(thought, w.answers, w.answersBias);
  });
  return { logits, weights: heads.map(({ weights }) => weights) };
}

/** One head, causal: contexts [T][d] and weights [T]. */
function attend(kind, w, h, start, query, key, value) {
  if (kind === "RoPE") {
    query = query.map((one, t) => turned(one, start + t));
    key = key.map((one, s) => turned(one, start + s));
  }
  const root = Math.sqrt(query[0].length);
  const weights = query.map((q, t) => softmax(range(t + 1).map((s) => {
    let score = dot(q, key[s]);
    if (kind === "Shaw") score += dot(q, rowOf(w.keyTable, t - s));
    return score / root - (kind === "ALiBi" ? slope(h) * (t - s) : 0);
  })));
  const contexts = weights.map((row, t) => {
    const result = Array(query[0].length).fill(0);
    row.forEach((p, s) => {
      const added = kind === "Shaw" ? rowOf(w.valueTable, t - s) : null;
      value[s].forEach((one, i) => {
        result[i] += p * (one + (added ? added[i] : 0));
      });
    });
    return result;
  });
  return { weights, contexts };
}

/** What a distance is worth before training. */
function similarity(kind, distance) {
  if (kind === "sinusoids") {
    return dot(sinusoids(distance, 32), sinusoids(0, 32)) / 16;
  }
  const ones = Array(16).fill(1);
  return dot(turned(ones, distance), ones) / 16;
}

function drawSimilarities() {
  const at = Number(find("distance").value);
  const all = range(192);
  const charts = ["sinusoids", "RoPE"].map((kind) => [kind,
    [all.map((d) => [d, similarity(kind, d)])], -1, 1]);
  charts.push(["ALiBi", range(HEADS).map((h) =>
    all.map((d) => [d, -slope(h) * d])), -12, 0]);
  find("similarities").replaceChildren(...charts.map(
    ([kind, curves, low, high]) => html("figure", {},
      html("figcaption", {}, kind),
      lineChart(curves, { low, high, xs: [0, 191], at, xName: "distance",
        label: `${kind} by distance` }))));
  find("similar").textContent = `At the distance ${at}: sinusoids `
    + `${decimal(similarity("sinusoids", at))}, RoPE `
    + `${decimal(similarity("RoPE", at))}, ALiBi `
    + `${decimal(-slope(0) * at)} and ${decimal(-slope(1) * at)}.`;
}

/** Words by a generator of Park and Miller. */
function drawnText(length) {
  let state = 1000 * seed + 7;
  return range(length).map(() => {
    state = (state * 48271) % 2147483647;
    return Math.floor((state / 2147483647) * 10);
  });
}

function drawReader() {
  const kind = find("kind").selectedOptions[0].textContent;
  const [length, start] = ["length", "start"].map((id) =>
    Number(find(id).value));
  const ids = drawnText(length);
  const { logits, weights } = read(kind, ids, start);
  const isRight = logits.map((row, t) =>
    row.indexOf(Math.max(...row)) === ids[t - data.back]);
  find("text").replaceChildren(...ids.map((id, t) => {
    const state = t < data.back ? "off" : isRight[t] ? "right" : "wrong";
    const isNew = start + t >= data.trainedAt ? " new" : "";
    return html("li", { class: state + isNew },
      state === "wrong" ? html("s", {}, String(id)) : String(id));
  }));
  const counted = isRight.slice(data.back);
  const right = counted.filter(Boolean).length;
  const told = `${kind}: ${right} of ${counted.length} words are right, `
    + `${percent(right / counted.length)}.`;
  const last = weights.map((rows) => rows.at(-1)[length - 1 - data.back]);
  find("says").textContent = `${told} The last word puts `
    + `${last.map((one) => decimal(one)).join(" and ")} on the word three `
    + "places back.";
  find("looks").replaceChildren(lineChart(weights.map((rows) =>
    rows.at(-1).map((p, s) => [length - 1 - s, p]).reverse()),
  { low: 0, high: 1, xs: [0, length - 1], at: data.back, xName: "distance",
    label: `Weights of the last word. ${told}` }));
}

function drawShares() {
  const head = html("tr", {}, html("td", { class: "corner" }),
    ...data.triedAt.map((length) =>
      html("th", { scope: "col" }, `${length} words`)));
  const lines = Object.entries(data.kinds).map(([kind, { shares }]) =>
    html("tr", {}, html("th", { scope: "row" }, kind),
      ...data.triedAt.map((_, i) => {
        const of = shares.map((row) => row[i]);
        const mean = sum(of) / of.length;
        const cell = html("td", {}, `${decimal(mean)} (${decimal(
          Math.min(...of))} to ${decimal(Math.max(...of))})`);
        cell.style.background = blue(mean);
        return cell;
      })));
  find("shares").replaceChildren(html("thead", {}, head),
    html("tbody", {}, ...lines));
}

fillSelect(find("kind"), Object.keys(data.kinds));
find("kind").addEventListener("input", drawReader);
find("other").addEventListener("click", () => {
  seed += 1;
  drawReader();
});
find("legend").append(legend("0", "1: the mean share, linear."));
drawShares();
for (const [id, draw] of [["distance", drawSimilarities],
  ["length", drawReader], ["start", drawReader]]) {
  control(id, draw, (value) => `${value}`)();
}
