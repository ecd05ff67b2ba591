/** Patterns for names as the monitor takes them: * and ?, and sets of characters in brackets. */

/**
 * The pattern that matches only this name.
 * @param {string} name
 */
export function escapePattern(name) {
  return name.replace(/[*?[]/g, "[$&]");
}

/**
 * Whether a name matches, like Python's fnmatchcase.
 *
 * Only the last * that was met is ever gone back to: one before it could take no more than that one does. So a pattern
 * with many of them takes no longer than its length times that of the name.
 * @param {string} pattern
 * @param {string} name
 */
export function fits(pattern, name) {
  const parts = partsOf(pattern);
  const signs = [...name];
  let [at, part, star, taken] = [0, 0, -1, 0];
  while (at < signs.length) {
    const wanted = parts[part];
    if (wanted === "*") [star, taken, part] = [part, at, part + 1];
    else if (wanted?.(signs[at])) [at, part] = [at + 1, part + 1];
    else if (star < 0) return false;
    else [taken, at, part] = [taken + 1, taken + 1, star + 1];
  }
  return parts.slice(part).every((rest) => rest === "*");
}

/** @typedef {"*" | ((sign: string) => boolean)} Part a * or what one character must be */

/** @type {{pattern: string, parts: Part[]}} the one that was asked for last: it is asked for each name */
let last = { pattern: "", parts: [] };

/** @param {string} pattern */
function partsOf(pattern) {
  if (last.pattern !== pattern) {
    const found = [...pattern.matchAll(/\[(!?)(\]?[^\]]*)\]|[\s\S]/gu)].map(([text, not, set]) =>
      set === undefined ? single(text) : oneOf(set, not === "!"),
    );
    last = { pattern, parts: found.filter((part, place) => part !== "*" || found[place - 1] !== "*") };
  }
  return last.parts;
}

/**
 * @param {string} text
 * @returns {Part}
 */
function single(text) {
  if (text === "*") return "*";
  return text === "?" ? () => true : (sign) => sign === text;
}

/**
 * @param {string} set
 * @param {boolean} not
 * @returns {Part}
 */
function oneOf(set, not) {
  try {
    const form = new RegExp(`^[${set.replace(/[\\\]^[&|~]/g, "\\$&")}]$`, "su");
    return (sign) => form.test(sign) !== not;
  } catch {
    return () => not; // such as the set [z-a], in which nothing is
  }
}
