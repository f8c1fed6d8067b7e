"use strict";

const tables = data.embeddings.map(rowsOf);
const times = data.times.map(rowsOf);
const output = rowsOf(data.output); // [D, answers]
const width = tables[0][0].length;
const wordIds = new Map(data.words.map((word, i) => [word, data.firstWord + i]));
const things = data.things.map((thing) => `the ${thing}`);
let struck = new Set();

/** sum_j l_j * A x_j of the words of a sentence: [D]. */
function encoded(table, sentence) {
  const words = sentence.split(" ");
  const size = words.length;
  const result = Array(width).fill(0);
  words.forEach((word, place) => {
    const row = table[wordIds.get(word)], j = place + 1;
    for (let k = 1; k <= width; k++) {
      const weight = (1 - j / size) - (k / width) * (1 - (2 * j) / size);
      result[k - 1] += weight * row[k - 1];
    }
  });
  return result;
}

const added = (x, y) => x.map((value, i) => value + y[i]);

/**
 * The network.
 *
 * @returns for each hop its weights over the sentences, and the logits after
 *     0, 1, ... hops
 */
function answered(sentences, question) {
  const last = sentences.length - 1;
  const memories = tables.map((table, i) => sentences.map((sentence, place) =>
    added(encoded(table, sentence), times[i][last - place])));
  let u = encoded(tables[0], question);
  const logits = [logitsOf(u)], weights = [];
  for (const [hop, m] of memories.slice(0, -1).entries()) {
    const p = softmax(m.map((one) => dot(u, one)));
    memories[hop + 1].forEach((c, i) => {
      u = u.map((value, k) => value + p[i] * c[k]);
    });
    weights.push(p);
    logits.push(logitsOf(u));
  }
  return { weights, logits };
}

const logitsOf = (u) => data.places.map((_, place) =>
  sum(u.map((value, k) => value * output[k][place])));

const story = () => data.stories[find("story").value];
const questionOf = (asked) => `where is ${asked}`;
const names = [...data.people, ...things];

function draw() {
  const { sentences, facts, question } = story();
  const asked = questionOf(names[find("asked").value]);
  const numHops = Number(find("hops").value);
  const kept = sentences.filter((_, i) => !struck.has(i));
  const { weights, logits } = answered(kept, asked);
  const focused = document.activeElement?.closest("#weights button");
  const place = focused ? Number(focused.value) : -1;
  const head = html("tr", {}, html("td", { class: "corner" }),
    ...weights.map((_, hop) => html("th", { scope: "col" }, `hop ${hop + 1}`)));
  const supports = (i) => asked === question && facts.includes(i);
  const buttons = sentences.map((sentence, i) => strikable(sentence, i,
    kept.length, supports(i) ? "★ " : ""));
  const lines = sentences.map((_, i) => {
    const at = range(i).filter((other) => !struck.has(other)).length;
    return html("tr", {}, html("th", { scope: "row" }, buttons[i]),
      ...weights.map((of, hop) => cell(of, at, hop < numHops, struck.has(i))));
  });
  find("weights").replaceChildren(html("thead", {}, head),
    html("tbody", {}, ...lines));
  rove(buttons, alongColumn(buttons.length), Math.max(0, place));
  if (place >= 0) buttons[place].focus();
  showAnswers(softmax(logits[numHops]), numHops, asked);
}

function strikable(sentence, i, numKept, mark) {
  const isStruck = struck.has(i);
  const button = html("button", { type: "button", value: i,
    "aria-pressed": isStruck, "aria-label": `Strike out: ${sentence}` },
  mark, html(isStruck ? "s" : "span", {}, sentence));
  button.addEventListener("click", () => {
    // One sentence stays: a softmax needs something to weigh.
    if (isStruck) struck.delete(i);
    else if (numKept > 1) struck.add(i);
    draw();
  });
  return button;
}

function cell(weights, at, isDone, isStruck) {
  if (!isDone || isStruck) return html("td", { class: "off" }, "–");
  const isMost = weights[at] === Math.max(...weights);
  const node = html("td", { class: isMost ? "most" : "" },
    decimal(weights[at]));
  node.style.background = blue(weights[at]);
  return node;
}

function showAnswers(probabilities, numHops, asked) {
  const most = Math.max(...probabilities);
  find("answers").replaceChildren(...data.places.flatMap((place, i) => {
    const bar = html("i", { "aria-hidden": true });
    bar.style.setProperty("--share", probabilities[i]);
    return [html(probabilities[i] === most ? "b" : "span", {}, place), bar,
      html("span", {}, percent(probabilities[i]))];
  }));
  const { question, answer } = story();
  const best = data.places[probabilities.indexOf(most)];
  const own = asked === question && !struck.size
    ? ` The right answer is ${answer}.` : "";
  const after = ["without a hop", "after 1 hop", "after 2 hops",
    "after 3 hops"][numHops];
  find("says").textContent = `“${asked}?” It answers “${best}” with `
    + `${percent(most)} ${after}.${own}`
    + (numHops < tables.length - 1
      ? " It has learned to answer after all three." : "");
}

/** A story as it is told, and its own question. */
function begin() {
  struck = new Set();
  const { question } = story();
  find("asked").value = names.findIndex((name) =>
    questionOf(name) === question);
  draw();
}

fillSelect(find("story"), data.stories.map(({ question }, i) =>
  `${i + 1}: ${question}`));
fillSelect(find("asked"), names);
find("hops").max = tables.length - 1;
find("hops").value = tables.length - 1;
find("right").textContent = percent(data.right, 2);
find("legend").append(legend("0", "1: a weight, linear. A frame and bold "
  + "digits mark the greatest of a hop."));
find("story").addEventListener("input", begin);
find("asked").addEventListener("input", draw);
const hopsChanged = control("hops", draw, (value) => `${value}`);
begin();
hopsChanged();
