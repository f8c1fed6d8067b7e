// Languages in a model's name: "phrases_en_de" -> English, German.

const PAIR = /(?:^|_)([a-z]{2})_([a-z]{2})(?:_|$)/;

/** Code and name of source and target, or null if the name says none. */
export function languagesOf(model) {
  const codes = PAIR.exec(model)?.slice(1);
  if (!codes) {
    return null;
  }
  const names = new Intl.DisplayNames(["en"], { type: "language" });
  const found = codes.map((code) => ({ code, name: names.of(code) }));
  return found.every(({ code, name }) => name !== code) ? found : null;
}
