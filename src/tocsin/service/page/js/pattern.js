/** Patterns for names as the monitor takes them: * and ?, and sets of characters in brackets. */

/**
 * The pattern that fits this name alone.
 * @param {string} name
 */
export function escapePattern(name) {
  return name.replace(/[*?[]/g, "[$&]");
}

/**
 * Whether a name fits, as Python's fnmatchcase has it.
 * @param {string} pattern
 * @param {string} name
 */
export function fits(pattern, name) {
  const source = pattern.replace(/\[(!?)(\]?[^\]]*)\]|[\s\S]/gu, (part, not, set) => {
    if (set !== undefined) return `[${not ? "^" : ""}${set.replace(/[\\\]^[&|~]/g, "\\$&")}]`;
    if (part === "*") return ".*";
    return part === "?" ? "." : part.replace(/[\\^$.|?*+()[\]{}/-]/g, "\\$&");
  });
  try {
    return new RegExp(`^${source}$`, "su").test(name);
  } catch {
    return false; // such as the set [z-a], in which nothing is
  }
}
