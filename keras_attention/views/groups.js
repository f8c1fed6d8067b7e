// The maps of a model in their order: layers, heads, their mean, the rollout.

import { lazy } from "./lazy.js";

// A browser takes seconds for so many products, in slices.
const MOST_PRODUCTS = 1e9;
// What rows and columns of a map are, in words.
const AXES = {
  source: "tokens of the text",
  pair: "tokens of the second text",
  input: "tokens that are read",
  target: "tokens that are written",
};

/**
 * A kind of map, with a line for each layer, and one for the rollout. The
 * weights of a map are a function, see `lazy`. Where the text is too long for a
 * rollout, `note` says so.
 *
 * @param name such as "cross"
 * @param layers weights [layers, heads, rows, columns]
 * @param levels which of "layers" and "heads" the model has
 * @param axes what rows and columns are, such as ["target", "source"]
 * @param names those of rows and columns, each null where they are no tokens
 * @param encoder the layers that made what the columns are, or null
 */
export function groupOf({ name, layers, levels, axes, names, encoder }) {
  const [rowAxis, columnAxis] = axes;
  // Experts have no heads.
  const hasHeads = levels.includes("heads") && columnAxis !== "experts";
  const lines = layers.map((heads, layer) => ({
    name: levels.includes("layers") ? `layer ${layer + 1}` : "",
    maps: hasHeads ? mapsOf(heads) : [{ name: "", weights: () => heads[0] }],
  }));
  const rolled = rollout(name, layers, encoder);
  const note = rolled ? tooLong(encoder ?? layers) : "";
  if (rolled && !note) {
    lines.push({ name: "rollout", maps: [{ name: "", weights: rolled }] });
  }
  const [first] = layers[0];
  return {
    name,
    lines,
    note,
    rows: names[0] ?? placesOf(rowAxis, first.length),
    columns: names[1] ?? placesOf(columnAxis, first[0].length),
    isWritten: rowAxis === "target",
    isAlignment: rowAxis === "target" && columnAxis === "source",
    axes: axes.map((axis) => AXES[axis] ?? axis),
  };
}

function mapsOf(heads) {
  const maps = heads.map((weights, head) => ({
    name: `head ${head + 1}`,
    weights: () => weights,
  }));
  const weights = lazy(() => mean(heads));
  return heads.length > 1
    ? [...maps, { name: "mean of the heads", weights }]
    : maps;
}

/** Such as "slot 0" and "hop 1", where the rows are no tokens. */
function placesOf(axis, count) {
  const word = axis.replace(/s$/, "");
  const first = axis === "hops" ? 1 : 0;
  return Array.from({ length: count }, (_, i) => `${word} ${first + i}`);
}

/** Why a text has no rollout through its layers, or "". */
function tooLong(layers) {
  const length = layers[0][0][0]?.length ?? 0;
  return layers.length * length ** 3 > MOST_PRODUCTS
    ? `No rollout: ${length} tokens in ${layers.length} layers are too many ` +
      "for a browser."
    : "";
}

/**
 * Attention rollout (Abnar and Zuidema 2020, arXiv 2005.00928): how much of
 * each token below comes to a token above, if each layer passes on half of its
 * own input. Null for maps that no layers lie below.
 */
function rollout(name, layers, encoder) {
  if (name === "cross" && encoder) {
    return lazy(function* () {
      const top = yield* mean(layers.at(-1));
      return yield* product(top, yield* rolled(encoder));
    });
  }
  return ["encoder", "decoder"].includes(name) && layers.length > 1
    ? lazy(() => rolled(layers))
    : null;
}

// These pause after each row.

function* rolled(layers) {
  let below = null;
  for (const heads of layers) {
    const half = (yield* mean(heads)).map((weights, i) =>
      weights.map((weight, j) => (weight + (i === j ? 1 : 0)) / 2),
    );
    below = below ? yield* product(half, below) : half;
  }
  return below;
}

function* mean(heads) {
  const means = [];
  for (const [i, row] of heads[0].entries()) {
    means.push(row.map((_, j) =>
      heads.reduce((sum, head) => sum + head[i][j], 0) / heads.length));
    yield;
  }
  return means;
}

function* product(left, right) {
  const rows = [];
  for (const row of left) {
    const sums = right[0].map(() => 0);
    // Row by row, which is far faster than column by column.
    row.forEach((weight, i) =>
      right[i].forEach((other, j) => {
        sums[j] += weight * other;
      }),
    );
    rows.push(sums);
    yield;
  }
  return rows;
}
