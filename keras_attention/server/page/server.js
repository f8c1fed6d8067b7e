// The server's REST API. Addresses are relative to the page's.

/** Why there is no answer: the server's own words, and what to do. */
export class ServerError extends Error {
  constructor(message, status) {
    super(message);
    this.advice = ADVICE[status] ?? "";
    // To ask the same once more does not help.
    this.isFinal = [400, 413, 501].includes(status);
  }
}

const ADVICE = {
  0: "See whether the server still runs, then try again.",
  400: "Change what you typed.",
  404: "This version may be gone. Try again, or choose another one.",
  408: "Try again.",
  413: "Send a shorter text.",
  429: "The server is busy. Try again in a moment.",
  500: "The server's log says more.",
  501: "Choose another model.",
  503: "The server is busy or about to end. Try again in a moment.",
  504: "Try again, or send a shorter text.",
};

/** Name of each model -> its versions that can answer. */
export async function listModels() {
  // Before the server is ready, it lists what it has with the status 503.
  const { models } = await (await fetched("readyz")).json();
  return models ?? {};
}

/** A version of a model. An empty version is the newest. */
export async function openModel(name, version) {
  let path = `v1/models/${encodeURIComponent(name)}`;
  if (version) {
    path += `/versions/${version}`;
  }
  const { metadata } = await answer(await fetched(`${path}/metadata`));
  const { signature_def, kind, card } = metadata;
  return new Model(name, path, signature_def.signature_def, kind, card);
}

class Model {
  /** A SavedModel of another package has no kind and no card. */
  constructor(name, path, signatures, kind, card) {
    this.name = name;
    this.path = path;
    this.signatures = signatures;
    this.kind = kind; // See serving/kinds.py,
    this.card = card; // and serving/cards.py.
  }

  has(signature) {
    return signature in this.signatures;
  }

  /** Name of each output -> its rows. See server/rewriting.py for options. */
  async call(signature, inputs, signal, options) {
    const body = JSON.stringify(
      { signature_name: signature, inputs, ...options });
    const headers = { "content-type": "application/json" };
    const { outputs } = await answer(
      await fetched(`${this.path}:predict`, {
        method: "POST", body, headers, signal,
      }),
    );
    // An only output comes without its name.
    const names = Object.keys(this.signatures[signature].outputs);
    return names.length === 1 ? { [names[0]]: outputs } : outputs;
  }

  /** The same for one row: name of each output -> its value. */
  async ask(signature, row, signal, options) {
    const inputs = mapValues(row, (value) => [value]);
    const outputs = await this.call(signature, inputs, signal, options);
    return mapValues(outputs, (rows) => rows[0]);
  }
}

function mapValues(object, change) {
  return Object.fromEntries(
    Object.entries(object).map(([name, value]) => [name, change(value)]),
  );
}

async function fetched(path, options) {
  try {
    return await fetch(path, options);
  } catch (error) {
    if (error.name === "AbortError") {
      throw error;
    }
    throw new ServerError("The server does not answer.", 0);
  }
}

async function answer(response) {
  const text = await response.text();
  if (response.ok) {
    return JSON.parse(quoted(text));
  }
  const words = wordsOf(text) || `The server answers ${response.status}.`;
  throw new ServerError(words, response.status);
}

// The server writes NaN, Infinity and -Infinity, which JSON does not have.
function quoted(text) {
  return text.replace(/"(?:[^"\\]|\\.)*"|-?Infinity|NaN/g, (part) =>
    part.startsWith('"') ? part : `"${part}"`,
  );
}

function wordsOf(text) {
  try {
    return JSON.parse(text).error ?? text;
  } catch {
    return text;
  }
}
